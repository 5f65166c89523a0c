"""Numbers about a policy in a tiny world that are exact, because the world's own rules give them without sampling."""

from __future__ import annotations

import numpy as np

from rlplay.algorithms.settings import LossType
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.trace.records import Array, Survey
from rlplay.worlds.planning import Dynamics, dynamics, plan
from rlplay.worlds.world import World

_EQUALLY_GOOD = 1e-9
"""Optimal values of moves that differ by less are equal up to rounding."""


def figures(world: World, survey: Survey, loss_type: LossType, gamma: float) -> dict[str, float]:
    """The metrics of a survey of `world`.

    `greedy_rate` is the share of situations in which the likeliest move is one of the best, by the optimal values for
    `gamma`; equally likely moves share. Missing where these values are not finite.

    For a policy with values, `bellman_residual` is the mean over squares of |V(s) − Σ p·(r + γ·V(s′))|, with the best
    move in Q-learning, else on average over the moves of the policy. `greedy_reward` and `behaviour_reward` are
    expected sums of an episode's rewards, undiscounted, for the greedy policy of Q and for the ε-greedy one; an episode
    ends after `world.steps` moves at the latest, so they are always finite. All rewards are the world's own.
    """
    return _greedy_rate(world, survey, gamma) | _of_values(world, survey, loss_type, gamma)


def _greedy_rate(world: World, survey: Survey, gamma: float) -> dict[str, float]:
    try:
        best = plan(world, gamma).action_values
    except ValueError:  # a reward that can be earned for ever: no move is the best
        return {}
    worth = np.array([[best[state][action] for action in survey.actions] for state in survey.states])
    right = worth > worth.max(1, keepdims=True) - _EQUALLY_GOOD
    return {"greedy_rate": float((greedy(survey.logprobs) * right).sum(1).mean())}


def _of_values(world: World, survey: Survey, loss_type: LossType, gamma: float) -> dict[str, float]:
    rules, policy = dynamics(world), np.exp(survey.logprobs.astype(np.float64))
    if survey.action_values is None:
        if survey.values is None:
            return {}
        values = survey.values.astype(np.float64)
        return {"bellman_residual": _residual(values, (policy * rules.backed_up(values, gamma)).sum(1))}
    q = survey.action_values.astype(np.float64)
    if VALUE_LOSSES[loss_type].greedy:
        values = q.max(1)
        backed = rules.backed_up(values, gamma).max(1)
    else:
        values = (policy * q).sum(1)
        backed = (policy * rules.backed_up(values, gamma)).sum(1)
    return {
        "bellman_residual": _residual(values, backed),
        "greedy_reward": expected_reward(world, rules, greedy(q)),
        "behaviour_reward": expected_reward(world, rules, policy),
    }


def greedy(q: Array) -> Array:
    """The greedy policy [S, A] of Q, or of log-probabilities [S, A]: equally good moves share."""
    best = q == q.max(1, keepdims=True)
    return np.asarray(best / best.sum(1, keepdims=True))


def expected_reward(world: World, rules: Dynamics, policy: Array) -> float:
    """The expected sum of an episode's rewards under a policy [S, A], by dynamic programming over its moves left."""
    earned = (policy * rules.rewards).sum(1)
    leads = np.einsum("sa,sat->st", policy, rules.leads)
    values = np.zeros(len(rules.states))
    for _ in range(world.steps):
        values = earned + leads @ values
    return float(np.mean([values[rules.states.index(start)] for start in world.starts]))


def _residual(values: Array, backed: Array) -> float:
    return float(np.abs(values - backed).mean())

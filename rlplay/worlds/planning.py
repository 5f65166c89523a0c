"""What is optimal in a world, by dynamic programming: exact up to float64, without sampling.

Source: Sutton and Barto, Reinforcement Learning: An Introduction (2nd edition, 2018), sections 4.1 (policy
evaluation) and 4.4 (value iteration). The limit on the moves of an episode is left out: with γ < 1 or a cost per move
the best policy ends long before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rlplay.trace.numbers import compact
from rlplay.trace.records import Array
from rlplay.worlds.world import World

_TOLERANCE = 1e-12
_SWEEPS = 10_000
_ENDLESS = 1e12
"""Moves of an episode that count as one without an end: the largest condition number of 1 − γ·P."""

Values = dict[str, float]


@dataclass(frozen=True)
class OptimalValues:
    """The optimal values V*(s) and Q*(s, a) of every state that does not end an episode."""

    values: Values
    action_values: dict[str, Values]

    def best(self, state: str) -> str:
        """The best action, the first of equally good ones."""
        worth = self.action_values[state]
        return max(worth, key=worth.__getitem__)


@lru_cache(maxsize=16)
def plan(world: World, gamma: float) -> OptimalValues:
    """Value iteration: V(s) ← max_a Σ p·(r + γ·V(s')), until no value changes by more than 1e-12.

    Raises ValueError if the values do not settle, as with γ = 1 and a reward that can be earned for ever.
    """
    worth = _settled(world, gamma)
    if worth is None:
        raise ValueError(f"the values of this world do not settle with gamma={compact(gamma)}: choose a smaller gamma")
    rows = (dict(zip(world.actions, map(float, row), strict=True)) for row in worth)
    action_values = dict(zip(dynamics(world).states, rows, strict=True))
    return OptimalValues({state: max(each.values()) for state, each in action_values.items()}, action_values)


def evaluate(world: World, policy: Mapping[str, Mapping[str, float]], gamma: float) -> Values:
    """V(s) of a policy, given as the probability of each action in each state: the solution of V = r + γ·P·V.

    Raises ValueError if there is none, as for a policy that never ends an episode with γ = 1.
    """
    states = [state for state in world.states if not world.ends(state)]
    at = {state: i for i, state in enumerate(states)}
    system, rewards = np.eye(len(states)), np.zeros(len(states))
    for state, i in at.items():
        for action, share in policy[state].items():
            for probability, there, reward, over in world.outcomes(state, action):
                rewards[i] += share * probability * reward
                if not over:
                    system[i, at[there]] -= gamma * share * probability
    if not np.linalg.cond(system) < _ENDLESS:  # rounding hides an exact singularity
        raise ValueError(f"with gamma={compact(gamma)} this policy's values are not finite: it need never end")
    return dict(zip(states, map(float, np.linalg.solve(system, rewards)), strict=True))


@dataclass(frozen=True, eq=False)
class Dynamics:
    """A world's rules as arrays over the states that do not end an episode: expected `rewards` [S, A], and the
    probability `leads` [S, A, S] that a move leads to another such state."""

    states: list[str]
    rewards: Array
    leads: Array

    def backed_up(self, values: Array, gamma: float) -> Array:
        """What each move [S, A] is worth if what follows is worth `values` [S]."""
        return np.asarray(self.rewards + gamma * self.leads @ values)


@lru_cache(maxsize=8)
def dynamics(world: World) -> Dynamics:
    """The rules of `world` as arrays; float64."""
    states = [state for state in world.states if not world.ends(state)]
    rewards = np.zeros((len(states), len(world.actions)))
    leads = np.zeros((*rewards.shape, len(states)))
    for s, state in enumerate(states):
        for a, action in enumerate(world.actions):
            for outcome in world.outcomes(state, action):
                rewards[s, a] += outcome.probability * outcome.reward
                if not outcome.over:
                    leads[s, a, states.index(outcome.state)] += outcome.probability
    return Dynamics(states, rewards, leads)


@lru_cache(maxsize=16)
def _settled(world: World, gamma: float) -> Array | None:
    """Q* [S, A]; None if the values do not settle."""
    rules = dynamics(world)
    values = np.zeros(len(rules.states))
    for _ in range(_SWEEPS):
        worth = rules.backed_up(values, gamma)
        before, values = values, worth.max(1)
        if np.abs(values - before).max(initial=0.0) <= _TOLERANCE:
            return rules.backed_up(values, gamma)
    return None

"""A world as one update saw it: the policy on every square, what was visited, and what followed."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

from rlplay.trace.records import Array, Survey
from rlplay.trace.update import Update
from rlplay.worlds.world import World


@dataclass(frozen=True)
class Square:
    """One square, or one situation of a bandit; None is what the records do not say.

    `before` and `after` are the probabilities of the actions under the policy that sampled and under the new one.
    `mean_return` is the mean of the discounted returns of the moves that were made here. `action_values` are Q(s, ·),
    where they are learned: the newest known, and as the update began.
    """

    before: dict[str, float] | None = None
    after: dict[str, float] | None = None
    visits: int = 0
    value: float | None = None
    mean_return: float | None = None
    action_values: dict[str, float] | None = None
    action_values_before: dict[str, float] | None = None

    @property
    def greedy(self) -> dict[str, float] | None:
        """The greedy policy of Q: equally good actions share; None where no action values are learned."""
        if self.action_values is None:
            return None
        top = max(self.action_values.values())
        best = [action for action, worth in self.action_values.items() if worth == top]
        return dict.fromkeys(best, 1 / len(best))

    @property
    def policy(self) -> dict[str, float] | None:
        """The newest known probabilities."""
        return self.before if self.after is None else self.after


@dataclass(frozen=True)
class Chart:
    """Every square of a world by name, and the paths of the update's episodes by completion."""

    squares: dict[str, Square]
    paths: dict[int, list[str]] = field(default_factory=dict)


def chart(world: World, update: Update | None) -> Chart:
    """What the records of an update say about the squares of `world`."""
    if update is None or (sampled := update.sampled) is None:
        return Chart({state: Square() for state in world.states})
    newest = None if update.finished is None else update.finished.survey
    before, after = _policies(sampled.survey), _policies(newest)
    values = _values(newest if newest is not None else sampled.survey)
    q_before = _action_values(sampled.survey)
    q = q_before if newest is None else _action_values(newest)
    paths = {row: _path(world, update, row) for row in range(update.completions)}
    moves = {row: _moves(update, row) for row in paths}
    returns, visits = _returns(update, paths, moves), _visits(paths, moves)
    squares = {
        state: Square(
            before.get(state),
            after.get(state),
            visits.get(state, 0),
            values.get(state),
            returns.get(state),
            q.get(state),
            q_before.get(state),
        )
        for state in world.states
    }
    return Chart(squares, paths)


def _policies(survey: Survey | None) -> dict[str, dict[str, float]]:
    if survey is None:
        return {}
    rows = np.exp(survey.logprobs.astype(np.float64))
    return {
        state: dict(zip(survey.actions, map(float, row), strict=True))
        for state, row in zip(survey.states, rows, strict=True)
    }


def _action_values(survey: Survey | None) -> dict[str, dict[str, float]]:
    if survey is None or survey.action_values is None:
        return {}
    rows = zip(survey.states, survey.action_values, strict=True)
    return {state: dict(zip(survey.actions, map(float, row), strict=True)) for state, row in rows}


def _values(survey: Survey | None) -> dict[str, float]:
    """V(s) of the value head, or max Q(s, ·)."""
    if survey is not None and survey.action_values is not None:
        return dict(zip(survey.states, map(float, survey.action_values.max(1)), strict=True))
    if survey is None or survey.values is None:
        return {}
    return dict(zip(survey.states, map(float, survey.values), strict=True))


def _path(world: World, update: Update, row: int) -> list[str]:
    """The states of an episode: where it began, then where each move led."""
    sampled = update.sampled
    assert sampled is not None
    prompt = int(sampled.group[row])
    start = sampled.columns[prompt].get("start") or sampled.prompts[prompt]
    return [start] if world.arms else [start, *sampled.states.get(row, [])]


def _moves(update: Update, row: int) -> Array:
    """The places of an episode's moves among the update's tokens, int64."""
    sampled = update.sampled
    assert sampled is not None
    start, end = int(sampled.offsets[row]), int(sampled.offsets[row + 1])
    return np.flatnonzero(sampled.mask[start:end]) + start


def _visits(paths: dict[int, list[str]], moves: dict[int, Array]) -> dict[str, int]:
    visits: Counter[str] = Counter()
    for row, path in paths.items():
        visits.update(path[: len(moves[row])])
    return visits


def _returns(update: Update, paths: dict[int, list[str]], moves: dict[int, Array]) -> dict[str, float]:
    """The mean return of the moves that were made on each square."""
    found: dict[str, list[float]] = defaultdict(list)
    if update.credited is None or update.credited.returns is None:
        return {}
    for row, path in paths.items():
        for state, earned in zip(path, update.credited.returns[moves[row]].tolist(), strict=False):
            found[state].append(earned)
    return {state: float(np.mean(each)) for state, each in found.items()}

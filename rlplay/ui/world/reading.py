"""What a map shows: the squares as the records say, the answer under the cursor, and what the rules say exactly."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rlplay.trace.update import Update
from rlplay.ui.plot.plot_data import PlotData
from rlplay.worlds.chart import Chart, Square, chart
from rlplay.worlds.planning import OptimalValues, Values, evaluate, plan
from rlplay.worlds.world import World, discounted

if TYPE_CHECKING:
    from rlplay.worlds.painting import Painting
    from rlplay.worlds.walking import Walk

_TIE = 1e-6
"""Probabilities that differ by less are equal up to rounding."""
_EQUALLY_GOOD = 1e-9
_KEPT = 4
"""Readings that are kept."""

Policy = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Reading:
    """One update in a `world`; `update` is its number, 0 before all its walks are sampled. Squares may have been
    `repainted` since."""

    world: World
    chart: Chart
    gamma: float
    update: int = 0
    repainted: bool = False

    @cached_property
    def policies(self) -> Policy:
        """The newest known policy, on the squares where one is known."""
        return {name: square.policy for name, square in self.chart.squares.items() if square.policy is not None}

    @cached_property
    def greedy(self) -> Policy:
        """The greedy policy of Q; empty where no action values are learned."""
        return {name: square.greedy for name, square in self.chart.squares.items() if square.greedy is not None}

    @property
    def learns_q(self) -> bool:
        """Whether the values of moves are learned."""
        return bool(self.greedy)

    @property
    def valued(self) -> str:
        """The symbol of a square's worth: max Q, the critic's value, or the mean return of the moves made there."""
        if self.learns_q:
            return "max Q"
        return "V" if any(square.value is not None for square in self.chart.squares.values()) else "G"

    @cached_property
    def worths(self) -> list[float]:
        """The worths of all squares on which an episode goes on."""
        worths = (worth(square) for name, square in self.chart.squares.items() if not self.world.ends(name))
        return [each for each in worths if each is not None]

    @cached_property
    def best(self) -> OptimalValues | None:
        """V* and Q*; None where a reward can be earned for ever."""
        try:
            return plan(self.world, self.gamma)
        except ValueError:
            return None

    @cached_property
    def exact(self) -> Values:
        """V of the policy that makes the moves, exactly; empty where the policy is not known or V not finite."""
        return self.values_of(self.policies) or {}

    @cached_property
    def mean_return(self) -> float | None:
        """The mean discounted return of the update's walks, by the world's rewards; None where other rewards paid."""
        if not self.update or not self.chart.paths or self.repainted:
            return None
        paths = list(self.chart.paths.values())
        if not {square for path in paths for square in path} <= {*self.world.states}:
            return None
        earned = ([self.world.reward(square) for square in path[1:]] for path in paths)
        return float(np.mean([discounted(rewards, self.gamma) for rewards in earned]))

    def covers(self, policy: Policy) -> bool:
        """Whether a policy says what to do wherever an episode goes on."""
        return {*policy} >= {state for state in self.world.states if not self.world.ends(state)} and bool(policy)

    def values_of(self, policy: Policy) -> Values | None:
        """V of a policy by dynamic programming; None if it is not known everywhere, or need never end."""
        if not self.covers(policy):
            return None
        try:
            return evaluate(self.world, policy, self.gamma)
        except ValueError:
            return None


@dataclass(frozen=True)
class Way:
    """The squares of the answer under the cursor, and the one `here` on which the move under the cursor was made; both
    are empty where no answer is. While the user makes a `walk`, they are of that; a `painting` has a cursor alone."""

    path: tuple[str, ...] = ()
    here: str = ""
    walk: Walk | None = None
    painting: Painting | None = None


class Readings:
    """The newest readings: panels, titles and every key ask for the same one."""

    def __init__(self) -> None:
        self._made: list[tuple[tuple[object, ...], Reading]] = []

    def of(self, source: PlotData) -> Reading | None:
        """What `source` says of its world; None if it has none."""
        if source.world is None:
            return None
        update = shown_update(source)
        records = () if update is None else (update.sampled, update.credited, update.finished)
        made_of = source.world, update, *records
        for kept, found in self._made:
            plain = found.gamma == source.settings.gamma and found.repainted == source.repainted
            if plain and len(kept) == len(made_of) and all(map(operator.is_, kept, made_of)):
                return found
        done = update is not None and update.sampled is not None and update.sampled.done
        number = update.number if update is not None and done else 0
        found = Reading(source.world, chart(source.world, update), source.settings.gamma, number, source.repainted)
        self._made = [*self._made[1 - _KEPT :], (made_of, found)]
        return found


reading = Readings().of


def way(source: PlotData, found: Reading) -> Way:
    """Whose squares the map marks."""
    if source.painting is not None:
        return Way(here=source.painting.cursor, painting=source.painting)
    if source.walk is not None:
        return Way(source.walk.path, source.walk.square, source.walk)
    path, here = _path(found.chart, shown_update(source), source.cursor)
    return Way(path, here) if {*path} <= {*found.world.states} else Way()  # else, a damaged run


def shown_update(source: PlotData) -> Update | None:
    """The update whose policy is on the map; while its walks are sampled, the one before, whose policy samples them."""
    shown, last = source.shown, source.live
    if shown is None or shown.sampled is None or shown.sampled.done:
        return shown
    return last if last is not None and last.number == shown.number - 1 and last.finished is not None else shown


def _path(found: Chart, shown: Update | None, cursor: tuple[int, int]) -> tuple[tuple[str, ...], str]:
    row, token = cursor
    path = found.paths.get(row, [])
    foreign = any(square not in found.squares for square in path)  # in a file that somebody else wrote
    if not path or foreign or shown is None or shown.sampled is None:
        return (), ""
    sampled = shown.sampled
    start, end = int(sampled.offsets[row]), int(sampled.offsets[row + 1])
    moves = int(sampled.mask[start : min(start + token + 1, end)].sum())
    return tuple(path), path[min(max(moves - 1, 0), len(path) - 1)]


def worth(square: Square) -> float | None:
    """What a square is worth as far as it was learned or measured."""
    return square.mean_return if square.value is None else square.value


def likeliest(policy: Mapping[str, float]) -> tuple[str, float]:
    """The likeliest move with its probability; "" if another one is as likely."""
    top = max(policy.values())
    first, *others = (move for move, share in policy.items() if share >= top - _TIE)
    return "" if others else first, top


def best_moves(values: Mapping[str, float]) -> str:
    """The moves of the highest value, one sign each."""
    top = max(values.values())
    return "".join(move for move, value in values.items() if value >= top - _EQUALLY_GOOD)

"""Squares that a person paints, stroke by stroke: the setting `squares`, with what is wrong with it in one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from rlplay.worlds.world import FLOOR, GOAL, HOLE, ICE, WALL, World, WorldError

Squares = Mapping[str, float | str]
AS_DRAWN, REWARD = 0, 6
BRUSHES: dict[int, tuple[str, str]] = {
    AS_DRAWN: ("", "as drawn"),
    1: (FLOOR, "floor"),
    2: (WALL, "wall"),
    3: (ICE, "ice"),
    4: (HOLE, "hole"),
    5: (GOAL, "star"),
    REWARD: ("", "reward"),
}
"""By number: the sign that a brush paints, and its name. The last one paints a reward, the first takes paint away."""
STEP = 0.5
"""By how much a key changes the reward of the brush."""


@dataclass(frozen=True)
class Painting:
    """The `squares` of the world `plain` as they are painted now; `earlier` are those before each stroke.

    `problem` says in one line why the last stroke left a square as it was.
    """

    plain: World
    squares: Squares
    cursor: str
    brush: int = 2
    reward: float = STEP
    earlier: tuple[Squares, ...] = ()
    problem: str = ""

    @property
    def world(self) -> World:
        """The world as it is painted; the same object for the same squares."""
        return _painted(self.plain, tuple(self.squares.items()))

    @property
    def note(self) -> str:
        """Why the last stroke left a square, or what is odd about the world; "" if nothing is."""
        return self.problem or dead_end(self.world)

    def stroke(self, over: Iterable[str]) -> Painting:
        """With the brush drawn over some squares; those that cannot have the paint stay, and `problem` says why."""
        squares, problem = dict(self.squares), ""
        for square in over:
            wanted = {name: paint for name, paint in squares.items() if name != square}
            if not self._is_drawn(square):
                wanted[square] = self.reward if self.brush == REWARD else BRUSHES[self.brush][0]
            try:
                self.plain.repainted(wanted)
                squares = wanted
            except WorldError as error:
                problem = str(error).removeprefix("squares ")
        if squares == self.squares:
            return replace(self, problem=problem)
        return replace(self, squares=squares, earlier=(*self.earlier, self.squares), problem=problem)

    def undone(self) -> Painting:
        """Without the last stroke; the same if there is none."""
        if not self.earlier:
            return self
        return replace(self, squares=self.earlier[-1], earlier=self.earlier[:-1], problem="")

    def _is_drawn(self, square: str) -> bool:
        """Whether the brush would leave the square as the scenario draws it."""
        if self.brush in (AS_DRAWN, REWARD):
            return self.brush == AS_DRAWN
        return self.plain.kind(square) == BRUSHES[self.brush][0] and square not in self.plain.painted


@lru_cache(maxsize=8)
def _painted(plain: World, squares: tuple[tuple[str, float | str], ...]) -> World:
    return plain.repainted(dict(squares))


def dead_end(world: World) -> str:
    """That no walk can reach a star, in one line; "" where one can."""
    seen, ahead = {*world.starts}, [*world.starts]
    while ahead:
        square = ahead.pop()
        if world.kind(square) == GOAL:
            return ""
        if not world.ends(square):
            reached = {outcome.state for move in world.moves for outcome in world.outcomes(square, move)}
            ahead += reached - seen
            seen |= reached
    there = any(world.kind(square) == GOAL for square in world.states)
    start = "a start" if len(world.starts) > 1 else world.starts[0]
    return f"No way leads from {start} to a star." if there else "There is no star on the map."

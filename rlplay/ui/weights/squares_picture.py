"""A table as a map: which squares an update moved, and which move gained most there."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.segment import Segment
from rich.style import Style

from rlplay.trace.questions import Weighed
from rlplay.trace.text import visible
from rlplay.ui.format.number_cells import short
from rlplay.ui.parts.made_panel import MadePanel
from rlplay.ui.theme.inks import STEPS
from rlplay.worlds.world import WALL, World, square_name

_NARROWEST, _WIDEST, _ROOMY, _TALLEST = 7, 19, 14, 3
"""Cells of a terminal for a square: its width, that for two moves side by side, and its height at most."""
_LINES = {"↑": 0, "←": 1, "→": 1, "↓": 2}
"""On which line of a square a move is written."""


class SquaresPicture(MadePanel):
    """The squares of a world, each shaded by how far its numbers moved; of arms, a line for each situation."""

    def __init__(self) -> None:
        super().__init__()
        self.weighed: Weighed | None = None
        self.world: World | None = None

    def tell(self, weighed: Weighed | None, world: World | None, words: str) -> None:
        """Show what is known, or why nothing is."""
        self.weighed, self.world, self.words = weighed, world, words
        self.show()

    def made(self) -> Iterator[list[Segment]]:
        """The map, or the situations."""
        weighed, world = self.weighed, self.world
        if weighed is None or world is None or not weighed.moves:
            return
        top = max((math.hypot(*moved) for moved in weighed.squares.values()), default=0.0)
        if world.map:
            yield from self._map(weighed, world, top)
        others = [square for square in weighed.squares if not world.map or square not in world.states]
        for square in others:
            moved = weighed.squares[square]
            words = "  ".join(
                f"{visible(move)} {short(each, True)}" for move, each in zip(weighed.moves, moved, strict=True)
            )
            yield [Segment(f"{visible(square):<6}", self.palette.text), Segment(f" {words} ", self._shade(moved, top))]

    def _map(self, weighed: Weighed, world: World, top: float) -> Iterator[list[Segment]]:
        columns, rows = len(world.map[0]), len(world.map)
        wide = max(min((self.width - 3) // columns, _WIDEST), _NARROWEST)
        tall = max(min((self.height - 1) // rows, _TALLEST), 1)
        if tall == 2:
            tall = 1
        gap = self.height - 1 >= rows * (tall + 1)
        heads = "".join(chr(ord("a") + column).center(wide - 1) + " " for column in range(columns))
        yield [Segment("   "), Segment(heads, self.palette.muted)]
        for row in range(rows):
            for line in range(tall):
                segments = [Segment(f"{row + 1 if line == tall // 2 else '':<3}", self.palette.muted)]
                for column in range(columns):
                    wall = world.map[row][column] == WALL
                    moved = weighed.squares.get(square_name(row, column))
                    text = "▒" * wide if wall else _written(weighed.moves, moved, wide - 1, line, tall)
                    style = self.palette.faint if wall else self._shade(moved, top)
                    segments += [Segment(text[: wide - 1].center(wide - 1), style), Segment(" ")]
                yield segments
            if gap:
                yield []

    def _shade(self, moved: list[float] | None, top: float) -> Style:
        size = 0.0 if moved is None else math.hypot(*moved)
        if not size or not top:
            return self.palette.muted
        return self.palette.amount[max(min(math.ceil(STEPS * size / top - 1e-9), STEPS), 1)]


def _written(moves: list[str], moved: list[float] | None, wide: int, line: int, tall: int) -> str:
    """One line of a square: each move where it leads if there is room, else the one whose number changed most."""
    if moved is None:
        return "·" if line == tall // 2 else ""
    changes = {move: f"{visible(move)} {short(each, True)}" for move, each in zip(moves, moved, strict=True)}
    if tall >= _TALLEST and wide >= _ROOMY and set(moves) <= set(_LINES):
        return "  ".join(changes[move] for move in ("←", "→", "↑", "↓") if move in moves and _LINES[move] == line)
    at = max(range(len(moved)), key=lambda each: abs(moved[each]))
    return changes[moves[at]] if line == tall // 2 else ""

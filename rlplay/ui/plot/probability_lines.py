"""The candidates' probabilities over the run: a line for each, with bars in eighths of a cell, from 0 to 1."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.cells import set_cell_size
from rich.segment import Segment

from rlplay.trace.questions import Recalled
from rlplay.ui.format.bars import bar
from rlplay.ui.format.shown_text import quoted
from rlplay.ui.theme.inks import Palette

_NAME = 14
_WIDEST, _WIDER = 4, 16
"""Cells per update, at most: in lines among others, and where they fill a panel."""


def probability_lines(
    recalled: Recalled, pieces: dict[int, str], chosen: int | None, width: int, palette: Palette,
    title: str = "over training", high: int = 1,
) -> Iterator[list[Segment]]:  # fmt: skip
    """A line with `title` and the update numbers, then `high` lines for each token, at most `width` cells wide.

    Without a title the lines fill a panel. Tokens with bars of several lines have a blank line between them.
    A cell shows the latest update, up to the cell's last, whose weights are kept. Its colour shows a change of .01 or
    more since the first update. The first and the last probability are at the ends of the line.
    """
    updates = recalled.updates
    room = max(width - _NAME - 14, 8)
    span = updates[-1] - updates[0] + 1
    cells = min(room, (_WIDEST if title else _WIDER) * span)
    at = updates[0] + np.ceil(np.arange(1, cells + 1) * span / cells) - 1
    rows = np.searchsorted(updates, at, side="right") - 1
    first, last = f"update {updates[0]}", str(updates[-1]) if len(updates) > 1 else ""
    axis = first + last.rjust(cells - len(first)) if cells >= len(first) + len(last) + 1 else first
    yield [Segment(f"  {title:<{_NAME + 6}}{axis}", palette.muted)]
    for place, token in enumerate(recalled.token_ids):
        shares = np.array([row[place] for row in recalled.probabilities])
        here = token == chosen
        for above in range(high - 1, 0, -1):
            yield [Segment(" " * (_NAME + 8)), *_drawn(shares[rows], shares[0], palette, above, high)]
        yield [
            Segment("▸ " if here else "  ", palette.mark),
            Segment(set_cell_size(quoted(pieces.get(token, "")), _NAME), palette.strong if here else palette.text),
            Segment(f"{share_text(shares[0])}  ", palette.muted),
            *_drawn(shares[rows], shares[0], palette, 0, high),
            Segment(f"  {share_text(shares[-1])}", palette.text),
        ]
        if high > 1:
            yield []


def _drawn(shares: np.ndarray, first: float, palette: Palette, above: int, high: int) -> Iterator[Segment]:
    """The cells `above` the lowest of the bars, which are `high` cells for 1."""
    for share in shares:
        moved = share - first
        style = palette.text if abs(moved) < 0.01 else palette.up_text if moved > 0 else palette.down_text
        yield Segment(bar(float(share) * high - above, least=1 if share >= 0.005 and not above else 0), style)


def share_text(value: float) -> str:
    """A probability in four cells."""
    if 0 < value < 0.005:
        return "<.01"
    return "1.00" if value >= 0.995 else f" {value:.2f}".replace("0.", ".", 1)

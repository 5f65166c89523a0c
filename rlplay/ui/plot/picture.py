"""A plot as text: the position of its horizontal axis, its labels, and the cursor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
from textual.content import Content, Span

from rlplay.trace.records import Array

AXIS, CURSOR, NOTE = "$text-muted", "on $foreground 25%", "$warning"

Cell = tuple[str, str]
"""A character and its style; colours are theme names such as "$primary", resolved on display."""


class Size(NamedTuple):
    """Cells of a plot with its axes."""

    width: int
    height: int


@dataclass(frozen=True)
class Axes:
    """Lines of `width` cells; the cells `left` to `right` show the values `first` to `last`."""

    width: int
    left: int
    right: int
    first: float
    last: float

    def column(self, x: float) -> int:
        """The cell that shows `x`."""
        share = (x - self.first) / max(self.last - self.first, 1e-9)
        return self.left + round(min(max(share, 0.0), 1.0) * (self.right - self.left))

    def x(self, column: int) -> float:
        """The value that the cell `column` shows."""
        share = (column - self.left) / max(self.right - self.left, 1)
        return self.first + min(max(share, 0.0), 1.0) * (self.last - self.first)

    def axis(self, first: str, last: str, notes: Iterable[tuple[int, str, str]]) -> Content:
        """The line below the plot: labels of both ends, and `notes` (cell, text, style).

        A label is left out where a note would cover a part of it.
        """
        cells, notes = [(" ", AXIS)] * self.width, list(notes)
        taken = {cell for column, text, _ in notes for cell in range(column, column + len(text))}
        ends = (self.left, first, AXIS), (self.right + 1 - len(last), last, AXIS)
        whole = [end for end in ends if taken.isdisjoint(range(end[0], end[0] + len(end[1])))]
        for column, text, style in (*whole, *notes):
            for at, character in enumerate(text, column):
                if 0 <= at < self.width:
                    cells[at] = (character, style)
        return joined(cells)


@dataclass(frozen=True)
class Picture:
    """A finished plot."""

    content: Content
    frame: Axes

    def with_cursor(self, x: float, note: str = "") -> Content:
        """The picture with the column of `x` highlighted; `note`, if any, replaces the horizontal axis."""
        stride = self.frame.width + 1
        starts = range(self.frame.column(x), len(self.content.plain), stride)
        lit = self.content.add_spans([Span(start, start + 1, CURSOR) for start in starts])
        if not note:
            return lit
        fitting = Content.styled(note, NOTE).truncate(self.frame.width, ellipsis=True)
        return Content.assemble(lit[: (len(starts) - 1) * stride], fitting)


def marked(content: Content, frame: Axes, x: float, mark: str) -> Content:
    """A picture's text with `mark` on the axis, below `x`."""
    at = content.plain.rfind("\n") + 1 + frame.column(x)
    return Content.assemble(content[:at], (mark, NOTE), content[at + 1 :])


def lit(content: Content, width: int, columns: range, lines: range) -> Content:
    """A picture's text with the cells of these columns and lines highlighted."""
    if not columns:
        return content
    starts = (line * (width + 1) for line in lines)
    return content.add_spans([Span(start + columns.start, start + columns.stop, CURSOR) for start in starts])


def joined(cells: Iterable[Cell]) -> Content:
    """One line made of cells."""
    runs = groupby(cells, key=lambda cell: cell[1])
    return Content.assemble(*(("".join(character for character, _ in run), style) for style, run in runs))


def painted(
    labels: Sequence[str], cells: Array, inks: Array, styles: Sequence[str], below: Content,
    after: Sequence[str] = (), label_inks: tuple[str, str] = (AXIS, AXIS),
) -> Content:  # fmt: skip
    """A picture of thousands of cells, one label in front of each line, one `after` it, and another line `below`.

    `cells` are characters, `inks` the index of each one's style in `styles`: [height, width] each.
    """
    lines, spans, at = [], [], 0
    for label, row, ink, last in zip(labels, cells.tolist(), inks, after or [""] * len(labels), strict=True):
        spans.append(Span(at, at + len(label), label_inks[0]))
        at += len(label)
        borders = [0, *(np.flatnonzero(np.diff(ink)) + 1).tolist(), len(ink)]
        runs = ((start, end, styles[ink[start]]) for start, end in pairwise(borders))
        spans += [Span(at + start, at + end, style) for start, end, style in runs if style]
        at += len(ink)
        if last.strip():
            spans.append(Span(at, at + len(last), label_inks[1]))
        lines.append(f"{label}{''.join(row)}{last}\n")
        at += len(last) + 1
    spans += [Span(at + start, at + end, style) for start, end, style in below.spans]
    return Content("".join(lines) + below.plain, spans, strip_control_codes=False)

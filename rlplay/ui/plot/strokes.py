"""Lines over the updates on a canvas: solid or dashed with weight, thin ones in dots, areas and bands."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from rlplay.trace.records import Array
from rlplay.ui.plot.canvas import Canvas

WEIGHT = 3
"""Of a line, in eighths of a cell."""
Dashes = Literal["solid", "dashed", "dotted"]
_PATTERNS: dict[Dashes, tuple[float, float]] = {"dashed": (3.0, 2.0), "dotted": (1.0, 1.0)}
"""Lengths of a dash and of the space after it, in widths of a cell."""
_TALL = 4
"""Eighths that are as high as a cell is wide."""


class Course(NamedTuple):
    """A line by column: where it enters each, its lowest and its highest value there; 0 to 1."""

    columns: Array
    entry: Array
    low: Array
    high: Array


def course(at: Array, values: Array) -> Course:
    """The course of the line through `values` at the columns `at`, ascending fractions of columns.

    Neighbouring columns share the value at their border, so that the line has no gap.
    """
    places = np.rint(at).astype(int)
    columns = np.arange(places[0], places[-1] + 1)
    low, high = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
    np.minimum.at(low, places - places[0], values)
    np.maximum.at(high, places - places[0], values)
    borders = np.interp(columns[:-1] + 0.5, at, values)
    for shared in (slice(0, -1), slice(1, None)):
        low[shared], high[shared] = np.minimum(low[shared], borders), np.maximum(high[shared], borders)
    return Course(columns, np.concatenate([values[:1], borders]), low, high)


def eighth(canvas: Canvas, share: Array | float) -> Array:
    """The lowest eighth of a line at a `share` of the height."""
    return np.asarray(np.rint(np.asarray(share) * (canvas.height * 8 - WEIGHT)), dtype=int)


def heavy(canvas: Canvas, at: Array, values: Array, style: str, dashes: Dashes = "solid") -> None:
    """Draw the line through `values`, 0 to 1, at the columns `at`."""
    drawn = course(at, values)
    on = None if dashes == "solid" else _on(drawn, dashes, np.arange(canvas.height * 8)[:, None], canvas)
    canvas.paint(drawn.columns, eighth(canvas, drawn.low), eighth(canvas, drawn.high) + WEIGHT, style, True, on)


def _on(drawn: Course, dashes: Dashes, eighths: Array, canvas: Canvas) -> Array:
    """Where a dashed line is drawn, by its length so far: steep parts are dashed like flat ones. Bool [eighths, n]."""
    dash, space = _PATTERNS[dashes]
    entry, tall = eighth(canvas, drawn.entry), _TALL
    rise = (eighth(canvas, drawn.high) - eighth(canvas, drawn.low)) / tall
    so_far = np.concatenate([[0.0], np.cumsum(np.maximum(rise, 1.0))[:-1]])
    away = np.maximum(np.abs(eighths - entry - WEIGHT / 2) - WEIGHT / 2, 0) / tall
    return np.asarray((so_far + away) % (dash + space) < dash)


def thin(canvas: Canvas, at: Array, values: Array, style: str, dashes: Dashes = "solid") -> None:
    """Draw the line in dots, as fine as a cell allows."""
    drawn = course(2 * at + 0.5, values)
    top = 4 * canvas.height - 2
    low, high = (np.rint(values * top + 0.5).astype(int) for values in (drawn.low, drawn.high))
    lengths = high - low + 1
    columns = np.repeat(drawn.columns, lengths)
    rows = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths) + np.repeat(low, lengths)
    if dashes != "solid":
        dash, space = (2 * length for length in _PATTERNS[dashes])
        on = np.arange(len(columns)) % (dash + space) < dash
        columns, rows = columns[on], rows[on]
    canvas.dot(columns, rows, style)


def area(canvas: Canvas, at: Array, values: Array, base: float, style: str) -> None:
    """Shade what lies between the line and the height `base`, 0 to 1."""
    drawn = course(at, values)
    low, high = (eighth(canvas, part) for part in (np.minimum(drawn.low, base), np.maximum(drawn.high, base)))
    canvas.paint(drawn.columns, low, high, style)


def band(canvas: Canvas, at: Array, low: Array, high: Array, style: str) -> None:
    """Shade what lies between two lines."""
    columns = np.arange(np.rint(at[0]), np.rint(at[-1]) + 1).astype(int)
    below, above = (eighth(canvas, np.interp(columns, at, edge)) for edge in (low, high))
    canvas.paint(columns, below, above + WEIGHT, style)


def between(canvas: Canvas, one: dict[int, float], other: dict[int, float], styles: tuple[str, str]) -> None:
    """Shade what lies between two lines, given by column, in the style of the one that is above."""
    for side, (upper, lower) in enumerate(((one, other), (other, one))):
        columns = [column for column in upper if column in lower and upper[column] > lower[column]]
        if columns:
            low, high = (eighth(canvas, np.array([line[at] for at in columns])) for line in (lower, upper))
            canvas.paint(np.array(columns), low + WEIGHT // 2, high + WEIGHT // 2, styles[side])

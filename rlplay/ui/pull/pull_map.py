"""The pull map: each token at its importance ratio across and its advantage up; the more tokens, the larger the dot."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from textual.content import Content

from rlplay.trace.numbers import number, percent
from rlplay.trace.pulls import PlaneBox, Pulls, pulls
from rlplay.trace.records import Array
from rlplay.ui.formula.formula_lines import bounds, has_band
from rlplay.ui.plot.drawn_curves import RULE
from rlplay.ui.plot.picture import AXIS, Picture, Size, lit, painted
from rlplay.ui.plot.plot_data import LIGHT, NOT_COMPUTED, PlotData
from rlplay.ui.plot.view import VALUE, OfUpdate
from rlplay.ui.pull.pull_plane import Corner, Plane, plane, regions

UP, DOWN, SILENT = "$scale-up", "$scale-down", "$warning"
_INKS = RULE, SILENT, UP, DOWN, AXIS
_ACROSS = "ratio"
"""The name of the horizontal axis; the vertical one is A."""
NO_STEP = "A dot for each token will be drawn here. Press `u` for the first update."
SILENCED, DENSE = "×", "•●█"
"""The signs of a cell: clipped tokens, and from 1, 3 and 10 tokens on."""
_FROM = (1, 3, 10)
_KEY = " ".join(f"{sign} {least}" for sign, least in zip(DENSE, _FROM, strict=True))
_SIGNS = {
    False: Content.assemble(("A > 0", UP), " ", ("A < 0", DOWN)),
    True: Content("above ┈ A > 0, below A < 0"),
}
"""The key to the sign of A: colours, or without them the side of the rule."""
_ROOMY = 60
"""Columns from which on the titles use whole words."""
ALL_EQUAL = "Every advantage of this update is 0, so no token is pulled."


_AT_ONCE = 1 << 15
"""Tokens whose places are computed together: their numbers then stay in the processor's cache."""


@dataclass(frozen=True)
class PullMap(OfUpdate):
    """A view of one update, not of the run, so it has no cursor."""

    title = "Pull map"

    def state(self, source: PlotData) -> object:
        """The last optimizer step, whether the update has ended, and the settings that bound its ratios."""
        drawn = source.mapped
        which = None if drawn is None else (drawn.number, len(drawn.steps), drawn.finished is None)
        return which, _named(source), source.box, source.settings.clip_range, source.settings.surrogate

    def data(self, source: PlotData) -> object:
        """What is drawn: ratio, advantage and clipping of every token, equal for equal maps; None before a step."""
        found = pulls(source.mapped)
        if found is None:
            return None
        return found.step, *(part.tobytes() for part in (found.ratio, found.advantage, found.silent))

    def draw(self, source: PlotData, size: Size, _log: bool, _smoothing: float = 0.0) -> Picture | str:
        """The dots; blue ones have A > 0, orange ones A < 0, and a cell with clipped ones is a ×."""
        found = pulls(source.mapped)
        if found is None or not len(found.ratio):
            over = source.live is not None and source.live.finished is not None
            none = LIGHT if source.light else NOT_COMPUTED
            return none if over else source.coming(NO_STEP)
        if not found.advantages.any():
            return source.worded(ALL_EQUAL)
        return _plot(found, _fences(source), size, source.box)

    def boxed(self, source: PlotData, size: Size, one: Corner, other: Corner) -> str:
        """What to find for the tokens between two cells of the map; empty if it shows none."""
        found = pulls(source.mapped)
        return "" if found is None or not len(found.ratio) else plane(found, size).box(one, other).words

    def next_region(self, source: PlotData) -> str:
        """What to find for the region of the plane that follows the chosen box; empty past the last one."""
        found = pulls(source.mapped)
        known = [] if found is None else [box.words for box in regions(found, _fences(source))]
        here = None if source.box is None else source.box.words
        at = known.index(here) + 1 if here in known else 0
        return known[at] if 0 <= at < len(known) else ""

    def titles(
        self, source: PlotData, _cursor: int | None, _log: bool, _smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        """Above, what the ratio is; below, how many tokens are silent, or went the way of their advantage."""
        found = pulls(source.mapped)
        if found is None:
            return Content(self.title), Content("")
        signs = Content.assemble(_SIGNS[source.plain], source.worded(f" · {_KEY} tokens"))
        chosen = Content("")
        if source.box is not None:
            inside = int(source.box.holds(found).sum())
            chosen = Content.assemble(
                "box ", (f"{inside:,} of {len(found.ratio):,}", VALUE), source.worded(" tokens · ")
            )
        if found.step is None:
            along = percent(found.along) if found.along is not None else "–"
            asked = "moved as their advantage asked" if source.columns >= _ROOMY else "went A’s way"
            below = Content.assemble(chosen, (along, VALUE), f" {asked} · ", signs)
            return Content(f"{self.title} · after {_named(source) or 'the update'}"), below
        silent = percent(found.silent_share)
        which = f", {_named(source)}" if _named(source) else ""
        clipped = f"{SILENCED} clipped: no pull " if source.columns >= _ROOMY else f"{SILENCED} clipped "
        above = Content.assemble(
            f"{self.title}{which}, step {found.step}/{found.steps} · ", (clipped, SILENT), (silent, VALUE)
        )
        return above, Content.assemble(chosen, signs)


def _named(source: PlotData) -> str:
    """The update of the map, if that is not the one on the screen."""
    drawn, shown = source.mapped, source.shown
    return "" if drawn is None or shown is None or drawn.number == shown.number else f"update {drawn.number}"


def _fences(source: PlotData) -> tuple[float, ...]:
    """The ratios from which on tokens are clipped; none if the surrogate does not clip."""
    return bounds(source.settings) if has_band(source.settings) else ()


def _plot(found: Pulls, fences: tuple[float, ...], size: Size, box: PlaneBox | None) -> Picture:
    on = plane(found, size)
    labels, frame = on.scale.labels(on.height, log=False), on.frame
    notes: list[tuple[int, str, str]] = []
    for bound in (*fences, 1.0):  # 1 is between the fences, and gives way to them
        start, text = frame.column(bound) - len(number(bound)) // 2, number(bound)
        room = all(start > at + len(other) or start + len(text) < at for at, other, _ in notes)
        if room and frame.first < bound < frame.last:
            notes.append((start, text, AXIS))
    ends = "≤" * bool((found.ratio < frame.first).any()), "≥" * bool((found.ratio > frame.last).any())
    first, last = ends[0] + number(frame.first), ends[1] + number(frame.last)
    start = frame.left + len(first) + 1
    if all(start + len(_ACROSS) < at for at, _, _ in notes):
        notes.append((start, _ACROSS, AXIS))
    axis = frame.axis(first, last, notes)
    _name_axis(labels)
    cells, inks = _cells(found, on, fences)
    content = painted([f"{label:>{frame.left - 1}} " for label in labels], cells, inks, _INKS, axis)
    return Picture(content if box is None else lit(content, frame.width, *on.covered(box)), frame)


def _name_axis(labels: list[str]) -> None:
    """Write A above the highest label, or where it stands apart from others; nowhere if there is no such row."""
    free = (at for at in range(1, len(labels) - 1) if not any(labels[at - 1 : at + 2]))
    at = 0 if not labels[0] else next(free, None)
    if at is not None:
        labels[at] = "A"


def _cells(found: Pulls, on: Plane, fences: tuple[float, ...]) -> tuple[Array, Array]:
    """The characters of the cells, and the index of each one's colour in `_INKS`.

    A dot has the colour that most of its tokens have; there are rules where no token is.
    """
    frame = on.frame
    tokens, silent = _counted(found, on)
    down, _, up = np.moveaxis(tokens, -1, 0)
    count = tokens.sum(axis=-1)
    zero = round((1 - float(on.scale.unit(np.array(0.0), log=False))) * (on.height - 1))
    ruled = {frame.column(bound) - frame.left for bound in (*fences, 1.0) if frame.first < bound < frame.last}
    characters = np.array([" ", *DENSE])[np.searchsorted(_FROM, count, side="right")]
    bare = count == 0
    characters[silent > 0] = SILENCED
    characters[zero][bare[zero]] = "┈"
    for at in ruled:
        characters[bare[:, at], at] = "┊"
    return characters, np.select([bare, silent > 0, up > down, down > 0], [0, 1, 2, 3], 4)


def _counted(found: Pulls, on: Plane) -> tuple[Array, Array]:
    """How many tokens are in each cell by the sign of A, int [rows, columns, 3], and how many of them are silent."""
    shape = on.height, on.width, 3
    tokens, silent = (np.zeros(math.prod(size), dtype=np.int64) for size in (shape, shape[:2]))
    for begin in range(0, len(found.ratio), _AT_ONCE):
        some = slice(begin, begin + _AT_ONCE)
        advantage, clipped = found.advantage[some], found.silent[some]
        x, y = on.dots(found.ratio[some], advantage)
        cells = y // 4 * on.width + x // 2
        tokens += np.bincount(cells * 3 + np.sign(advantage).astype(np.int64) + 1, minlength=len(tokens))
        if clipped.any():
            silent += np.bincount(cells[clipped], minlength=len(silent))
    return tokens.reshape(shape), silent.reshape(shape[:2])

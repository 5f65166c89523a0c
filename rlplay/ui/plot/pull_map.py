"""The pull map: a dot per token, its importance ratio across and its advantage up."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from textual.content import Content

from rlplay.trace.numbers import number, percent
from rlplay.trace.pulls import Pulls, pulls
from rlplay.trace.records import Array
from rlplay.ui.formula.parts import bounds
from rlplay.ui.plot.curves import RULE, Margins
from rlplay.ui.plot.picture import AXIS, Frame, Picture, Size, painted
from rlplay.ui.plot.scale import Scale, nice, scale_of
from rlplay.ui.plot.views import LIGHT, NOT_COMPUTED, VALUE, Source

UP, DOWN, SILENT = "$scale-up", "$scale-down", "$warning"
_INKS = RULE, SILENT, UP, DOWN, AXIS
NO_STEP = "A dot for each token will be drawn here. Press `u` for the first update."
_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""The dots of a braille cell, by row and column."""
_NEAREST = 0.01
"""The ends of the horizontal axis are at least this far from 1."""


@dataclass(frozen=True)
class PullMap:
    """A view of one update, not of the run, so it has no cursor."""

    title = "Pull map"
    of_run = False
    metrics = ()

    def state(self, source: Source) -> object:
        """The last optimizer step, whether the update has ended, and the settings that bound its ratios."""
        live = source.live
        which = None if live is None else (live.number, len(live.steps), live.finished is None)
        return which, [source.settings.get(name) for name in ("epsilon", "epsilon_high", "surrogate")]

    def data(self, source: Source) -> object:
        """What is drawn: ratio, advantage and clipping of every token, equal for equal maps; None before a step."""
        found = pulls(source.live)
        return None if found is None else (found.step, *(part.tobytes() for part in found[:3]))

    def margins(self, _source: Source, _log: bool, _lines: int) -> Margins:
        """None: the view shares no columns with others."""
        return 0, 0

    def draw(self, source: Source, size: Size, _log: bool, _smoothing: float = 0.0) -> Picture | str:
        """The dots; blue ones have A > 0, orange ones A < 0, and clipped ones stand out."""
        found = pulls(source.live)
        if found is None or not len(found.ratio):
            over = source.live is not None and source.live.finished is not None
            none = LIGHT if source.light else NOT_COMPUTED
            return none if over else source.coming(NO_STEP)
        fences = bounds({"epsilon": 0.2, **source.settings}) if _clips(source) else ()
        return _plot(found, fences, size)

    def titles(
        self, source: Source, _cursor: int | None, _log: bool, _smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        """Above, what the ratio is; below, how many tokens are silent, or went the way of their advantage."""
        found = pulls(source.live)
        if found is None:
            return Content(self.title), Content("")
        signs = Content.assemble(("A > 0", UP), " ", ("A < 0", DOWN))
        if found.step is None:
            along = percent(found.along) if found.along is not None else "–"
            below = Content.assemble("moved with A ", (along, VALUE), " · ", signs)
            return Content(f"{self.title} · after the update"), below
        silent = percent(float(found.silent.mean()) if len(found.silent) else None)
        above = Content.assemble(
            f"{self.title}, step {found.step}/{found.steps} · ", ("silent ", SILENT), (silent, VALUE)
        )
        return above, signs


def _clips(source: Source) -> bool:
    return bool(source.settings.get("surrogate", "ppo") == "ppo")


def _plot(found: Pulls, fences: tuple[float, ...], size: Size) -> Picture:
    scale = scale_of([(found.advantage.astype(np.float64), 0.0)], log=False)
    height = max(size.height - 1, 2)
    labels = scale.labels(height, log=False)
    left = max(map(len, labels)) + 1
    far = np.abs(found.ratio.astype(np.float64) - 1)
    reach = nice(max(float(np.quantile(far, 0.98)), _NEAREST))
    low, high = max(1 - reach, 0.0), 1 + reach
    frame = Frame(size.width, left, max(size.width - 1, left + 1), low, high)
    inside = [bound for bound in (fences[0], 1.0, fences[1]) if low < bound < high] if fences else [1.0]
    notes = [(frame.column(bound) - len(number(bound)) // 2, number(bound), AXIS) for bound in inside]
    ends = "≤" * bool((found.ratio < low).any()), "≥" * bool((found.ratio > high).any())
    axis = frame.axis(ends[0] + number(low), ends[1] + number(high), notes)
    cells, inks = _cells(found, frame, (height, scale), fences)
    return Picture(painted([f"{label:>{left - 1}} " for label in labels], cells, inks, _INKS, axis), frame)


def _cells(found: Pulls, frame: Frame, rows: tuple[int, Scale], fences: tuple[float, ...]) -> tuple[Array, Array]:
    """The characters of the cells, and the index of each one's colour in `_INKS`.

    Dots have the colour that most of them have, silent ones first; there are rules where no dot is.
    """
    height, scale = rows
    width = frame.right - frame.left + 1
    share = (np.clip(found.ratio.astype(np.float64), frame.first, frame.last) - frame.first) / (
        frame.last - frame.first
    )
    x = np.rint(share * (2 * width - 1)).astype(np.int64)
    y = np.rint((1 - scale.unit(found.advantage.astype(np.float64), log=False)) * (4 * height - 1)).astype(np.int64)
    signs = np.sign(found.advantage).astype(np.int64) + 1
    spots = _counted((y * 2 * width + x) * 3 + signs, (height, 4, width, 2, 3))
    dots = np.tensordot(spots.any(axis=-1), _BITS, axes=((1, 3), (0, 1)))
    down, _, up = np.moveaxis(spots.sum(axis=(1, 3)), -1, 0)
    silent = _counted(((y // 4) * width + x // 2)[found.silent], (height, width))
    zero = round((1 - float(scale.unit(np.array(0.0), log=False))) * (height - 1))
    ruled = {frame.column(bound) - frame.left for bound in (*fences, 1.0) if frame.first < bound < frame.last}
    characters = np.where(dots > 0, (0x2800 + dots).astype("<u4").view("<U1"), " ")
    bare = dots == 0
    characters[zero][bare[zero]] = "┈"
    for at in ruled:
        characters[bare[:, at], at] = "┊"
    return characters, np.select([bare, silent > 0, up > down, down > 0], [0, 1, 2, 3], 4)


def _counted(places: Array, shape: tuple[int, ...]) -> Array:
    """How often each place occurs, as an array of this `shape`."""
    return np.bincount(places, minlength=math.prod(shape)).reshape(shape)

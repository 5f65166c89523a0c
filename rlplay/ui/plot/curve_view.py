"""Metrics over the updates: one to a plot, a second one as a sparkline or a line of the same scale."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Literal

import numpy as np
from textual.content import Content

from rlplay.algorithms import named
from rlplay.trace.answers import measures
from rlplay.trace.history import History
from rlplay.trace.metrics import ROUNDING, describe, means_the_same, titled
from rlplay.trace.numbers import NOISE, number
from rlplay.trace.text import visible
from rlplay.trace.update import Update
from rlplay.ui.format.bars import bar, distribution
from rlplay.ui.plot.curve import FIRST, GHOST, SECOND, Curve, Margins
from rlplay.ui.plot.drawn_curves import POINT, curves, margins
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.smoothing import smoothed, smoothing_label
from rlplay.ui.plot.view import VALUE, manner, signs

SHADE, SHARE = " · shade 10–90 %", " · right answers"
BEFORE = "before undo"
_BANDS = {"reward": ("reward_p10", "reward_p90")}
"""The metrics at the edges of a metric's band."""
GLYPHS = {"line": "━", "dashed": "┅", "points": POINT, "spark": ""}
_SPREAD = 11
"""Cells for a distribution in the title."""
_SPARK = 8
"""Cells for a second metric."""
_SHORT = 12
"""Characters of an algorithm that fit beside a border between stages."""


@dataclass(frozen=True)
class Trace:
    """One metric as drawn in a view; `band` names the metrics at the edges of its band."""

    metric: str
    label: str = ""
    kind: Literal["line", "dashed", "points", "spark"] = "line"
    side: Literal["left", "right"] = "left"
    band: tuple[str, str] | None = None
    estimator: str = ""  # its name
    estimator_of: str = ""  # the setting that names it


@dataclass(frozen=True)
class CurveView:
    """One or two metrics over the updates; the first is in the title, the second below the plot.

    `instead` is drawn where the run has values of it and none of the first metric, which not every trainer computes.
    `spread` names a number of answers, whose distribution in the update on the screen is in the title.
    """

    title: str
    traces: tuple[Trace, ...]
    instead: CurveView | None = None
    spread: str = ""

    @property
    def of_run(self) -> bool:
        return True

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(trace.metric for trace in self.traces)

    @property
    def _recorded(self) -> list[str]:
        """Every metric that the drawing depends on."""
        return [name for trace in self.traces for name in (trace.metric, *(trace.band or ()))]

    def _shown(self, source: PlotData) -> CurveView:
        other = self.instead
        if other is None or source.history.series(self.traces[0].metric)[0]:
            return self
        return other if source.history.series(other.traces[0].metric)[0] else self

    def state(self, source: PlotData) -> object:
        if (shown := self._shown(source)) is not self:
            return shown.title, shown.state(source)
        estimators = [_estimator(trace, source) for trace in self.traces]
        branches = len(source.history.abandoned(self.traces[0].metric))
        versions = [source.history.version(name) for name in self._recorded]
        known = any(source.history.series(name)[0] for name in self.metrics)
        missing = None if known else source.missing(self.title, self.metrics)
        spread = self._spread(source.shown)
        share = self._is_share(source), source.guess
        return versions, source.history.marks, estimators, branches, source.span, missing, spread, share

    def margins(self, source: PlotData, log: bool, lines: int) -> Margins:
        return margins(self.series(source), log, lines)

    def series(self, source: PlotData) -> list[Curve]:
        """The curves that have points, and the latest of those of discarded updates."""
        if (shown := self._shown(source)) is not self:
            return shown.series(source)
        found = []
        share = self._is_share(source)
        for trace, style in zip(self.traces, (FIRST, SECOND), strict=False):
            updates, values = source.history.series(trace.metric)
            if not updates or trace.kind == "spark":
                continue
            band = _band(source.history, trace, updates) if trace.band is not None and not share else None
            found.append(
                Curve(
                    updates, values, style, trace.kind, trace.side, band, self._area(trace, band is not None),
                    cuts=(breaks := cuts(source.history, trace.metric)),
                    parts=_parts(source.history) if breaks else (), noise=_noise(trace, source),
                    ends=(0.0, 1.0) if share else (), newest=trace.kind == "line",
                )
            )  # fmt: skip
        first = self.traces[0]
        breaks, noise = cuts(source.history, first.metric), _noise(first, source)
        discarded = source.history.abandoned(first.metric)[-1:]
        return [*found, *(Curve(*each, GHOST, "thin", name=BEFORE, cuts=breaks, noise=noise) for each in discarded)]

    def _area(self, trace: Trace, banded: bool) -> Literal["", "under", "between"]:
        lines = [each for each in self.traces if each.kind in ("line", "dashed")]
        if trace not in lines or banded:
            return ""
        return "under" if len(lines) == 1 else "between" if len({each.side for each in lines}) == 1 else ""

    def _is_share(self, source: PlotData) -> bool:
        return self.traces[0].metric == "reward" and right_or_wrong(source)

    def draw(self, source: PlotData, size: Size, log: bool, smoothing: float = 0.0) -> Picture | str:
        series = self.series(source)
        if not series:
            return source.missing(self.title, self.metrics)
        span = source.span_from(min(min(curve.updates) for curve in series))
        series = [each for curve in series for each in with_average(curve, smoothing)]
        words, marks = smoothing_label(smoothing), signs(source.history.marks)
        guess = source.guess if source.guess is not None and source.guess.metric == self.traces[0].metric else None
        ends = source.ends(*span)
        return curves(series, marks, size, log, words, span, source.room, source.tinted, guess, ends)

    def titles(
        self, source: PlotData, cursor: int | None, log: bool, smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        if (shown := self._shown(source)) is not self:
            return shown.titles(source, cursor, log, smoothing)
        known = [bool(source.history.series(trace.metric)[0]) for trace in self.traces]
        parts = [
            self._legend(trace, style, source, cursor)
            for at, (trace, style) in enumerate(zip(self.traces, (FIRST, SECOND), strict=False))
            if known[at]
        ]
        head, *others = parts if known[0] else [Content(""), *parts]
        elsewhere = cursor is not None and (source.shown is None or source.shown.number != cursor)
        spread = "" if elsewhere else self._spread(source.shown)
        banded = any(curve.band is not None for curve in self.series(source))
        drawn = SHARE if self._is_share(source) and known[0] else SHADE if banded and source.tinted else ""
        named = f"{source.at(cursor)}{manner(log, smoothing)}"
        above = Content.assemble(self.title, " " * bool(head), head, named, drawn, spread)
        return above, Content(" · ").join([*others, *discarded_legend(source.history, self.traces[0].metric)])

    def _spread(self, update: Update | None) -> str:
        values = measures(update).get(self.spread) if self.spread else None
        done = update is not None and update.sampled is not None and update.sampled.done
        bars = distribution(values, _SPREAD) if values is not None and done else ""
        return f" · {bars}" if bars else ""

    def _legend(self, trace: Trace, style: str, source: PlotData, cursor: int | None) -> Content:
        drawn = sum(each.kind != "spark" for each in self.traces)
        glyph = f"{GLYPHS[trace.kind]} " if drawn > 1 and trace.kind != "spark" else ""
        noise = _noise(trace, source)
        updates, values = source.history.series(trace.metric)
        small = f"{_sparkline(values, noise)} " if trace.kind == "spark" else ""
        head = Content.assemble((glyph, style), f"{trace.label} " if trace.label else "", (small, style))
        if cursor is not None:
            at = dict(zip(updates, values, strict=True)).get(cursor)
            return Content.assemble(head, ("–" if at is None else number(at, noise=noise), VALUE))
        unit = f" {_unit(trace)}" if values and _unit(trace) and self._names_unit(trace) else ""
        unit = source.worded(unit)  # squares are tokens, too, and no metric counts them
        kind = f" · {_estimator(trace, source)}" if _estimator(trace, source) else ""
        latest = number(values[-1], noise=noise) if len(values) else "–"
        newest = source.history.series(self.traces[0].metric)[0]
        when = f" (update {updates[-1]})" if updates and newest and updates[-1] < newest[-1] else ""
        return Content.assemble(head, (latest, VALUE), unit, kind, when)

    def _names_unit(self, trace: Trace) -> bool:
        """Whether to name the unit here: a unit that both metrics share appears once, below."""
        return [_unit(other) for other in self.traces][self.traces.index(trace) + 1 :] != [_unit(trace)]


def right_or_wrong(source: PlotData) -> bool:
    """Whether every reward is 0 or 1, so that the mean is a share.

    Of the update on the screen the rewards say so. Of the others their mean and spread do: no other rewards between 0
    and 1 vary as much.
    """
    scored = None if source.shown is None else source.shown.scored
    if scored is None or not len(scored.rewards) or not np.isin(scored.rewards, (0.0, 1.0)).all():
        return False
    updates, means = source.history.series("reward")
    mean = np.array(means)
    spread = np.array(_aligned(updates, *source.history.series("reward_std")))
    return bool(((mean >= 0) & (mean <= 1) & (spread**2 >= mean * (1 - mean) * (1 - 1e-4))).all())


def discarded_legend(history: History, metric: str) -> list[Content]:
    """The name of the grey line and its last value, if the run discarded updates."""
    found = history.abandoned(metric)[-1:]
    return [Content.assemble(("⠒⠒ ", GHOST), f"{BEFORE} {number(values[-1])}") for _, values in found]


def with_average(curve: Curve, smoothing: float) -> list[Curve]:
    """The curve; with smoothing, its values in grey and their moving average on top.

    Points and discarded updates are not smoothed. At a cut of the curve, the average starts again.
    """
    if not smoothing or curve.kind == "points" or curve.style == GHOST:
        return [curve]
    ends = [0, *(bisect_left(curve.updates, cut) for cut in curve.cuts), len(curve.updates)]
    parts = (smoothed(curve.values[start:end], smoothing) for start, end in pairwise(ends))
    average = replace(curve, values=list(chain.from_iterable(parts)), newest=False)
    return [replace(curve, style=GHOST, letter="", band=None, area=""), average]


def single(metric: str) -> CurveView:
    """A view of one metric with its registered title; held-out values are points."""
    held_out = f"eval_{metric}"
    held_out_trace = (Trace(held_out, "held out", "points"),) if describe(held_out) is not None else ()
    return CurveView(visible(titled(metric)), (Trace(metric, band=_BANDS.get(metric)), *held_out_trace))


def cuts(history: History, metric: str) -> list[int]:
    """The updates at which a metric's curve starts again, because a new stage changes what it measures."""
    return [] if means_the_same(metric) else history.stage_borders


def _parts(history: History) -> tuple[tuple[int, str], ...]:
    """What each stage trains with, from its first update on."""
    return tuple((update, visible(_in_short(name))) for update, name in sorted(history.algorithms.items()))


def _in_short(algorithm: str) -> str:
    """Its title, or where that is long, the name that a run is started with: SFT."""
    title = named.title(algorithm)
    return title if len(title) <= _SHORT or len(algorithm) > _SHORT else algorithm.upper()


def _sparkline(values: Sequence[float], noise: float) -> str:
    """The course of all values in `_SPARK` cells, each the value at its place; as high as its share of the largest."""
    known = np.array(values)[np.linspace(0, len(values) - 1, min(_SPARK, len(values))).round().astype(int)]
    known = np.where(np.abs(known) < noise, 0.0, known)
    low, high = min(float(np.nanmin([*known, 0.0])), 0.0), float(np.nanmax([*known, 0.0]))
    shares = [(value - low) / (high - low) if high > low else 0.0 for value in known.tolist()]
    return "".join(bar(share, least=1) if np.isfinite(share) else " " for share in shares)


def _estimator(trace: Trace, source: PlotData) -> str:
    """The estimator of the metric; empty if it has none, or if the run does not state it."""
    if trace.estimator_of not in source.on_record:
        return trace.estimator
    return str(getattr(source.settings, trace.estimator_of))


def _noise(trace: Trace, source: PlotData) -> float:
    """Values of the metric below this are rounding noise."""
    if _estimator(trace, source) in (
        "k1",
        "full",
        "exact",
    ):  # means of differences of log-probabilities, not of their squares
        return ROUNDING
    row = describe(trace.metric)
    return NOISE if row is None else row.noise


def _unit(trace: Trace) -> str:
    row = describe(trace.metric)
    return row.unit if row is not None else ""


def _band(history: History, trace: Trace, updates: Sequence[int]) -> tuple[list[float], list[float]] | None:
    """The edges of the band at these updates; None if the run recorded none."""
    assert trace.band is not None
    low, high = (history.series(name) for name in trace.band)
    return (_aligned(updates, *low), _aligned(updates, *high)) if low[0] and high[0] else None


def _aligned(updates: Sequence[int], others: Sequence[int], values: Sequence[float]) -> list[float]:
    known = dict(zip(others, values, strict=True))
    return [known.get(update, float("nan")) for update in updates]

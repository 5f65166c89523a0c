"""The views of a curve panel: their metrics, how they are drawn, and the texts above and below the plot."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Literal, Protocol

from textual.content import Content

from rlplay.trace.answers import measures
from rlplay.trace.history import History, Mark
from rlplay.trace.metrics import ROUNDING, describe, means_the_same, titled
from rlplay.trace.numbers import NOISE, number
from rlplay.trace.text import visible
from rlplay.trace.update import Update
from rlplay.ui.format.bars import distribution
from rlplay.ui.format.legend import EVENT_MARKS
from rlplay.ui.plot.drawn_curves import Curve, Margins, curves, margins
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import GHOSTS, PlotData
from rlplay.ui.plot.smoothing import smoothed, smoothing_label

FIRST, SECOND, GHOST = "$primary", "$secondary", "$text-muted"
SHADE = " · shade ±1 std"
VALUE = "bold $foreground"

_SPREAD = 11
"""Cells for a distribution in the title."""
GLYPHS = {"line": "━", "dotted": "┅", "points": "•"}


class View(Protocol):
    """One view of a panel."""

    @property
    def title(self) -> str:
        """The title of an empty panel."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics it shows, for the help and for the cursor."""

    @property
    def of_run(self) -> bool:
        """Whether its horizontal axis is the updates of the run, so that it can show the cursor."""

    def state(self, source: PlotData) -> object:
        """Equal for sources with equal drawings."""

    def margins(self, source: PlotData, log: bool, lines: int, /) -> Margins:
        """The cells to the left and to the right of its plot over the updates; (0, 0) if it has none."""

    def draw(self, source: PlotData, size: Size, log: bool, smoothing: float, /) -> Picture | str:
        """The plot, or a sentence why there is none, with keys between backticks."""

    def titles(self, source: PlotData, cursor: int | None, log: bool, smoothing: float, /) -> tuple[Content, Content]:
        """The texts of the upper and the lower border: names and values, at the cursor or the latest.

        Values are never smoothed; the title says if the curve is.
        """


class OfUpdate:
    """Base of the views of one update, not of the run: they have no cursor and share no columns with others."""

    of_run = False
    metrics: tuple[str, ...] = ()

    def margins(self, _source: PlotData, _log: bool, _lines: int) -> Margins:
        """None."""
        return 0, 0


class Detailed(View, Protocol):
    """A view that a comparison of runs can show of each of them."""

    def data(self, source: PlotData) -> object:
        """What is drawn, equal for equal drawings of two runs; None before there is anything."""


@dataclass(frozen=True)
class Trace:
    """One metric as drawn in a view."""

    metric: str
    label: str = ""
    kind: Literal["line", "dotted", "points"] = "line"
    side: Literal["left", "right"] = "left"
    band: str = ""
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
        return tuple(name for trace in self.traces for name in (trace.metric, trace.band) if name)

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
        versions = [source.history.version(name) for name in self.metrics]
        known = any(source.history.series(name)[0] for name in self.metrics)
        missing = None if known else source.missing(self.title, self.metrics)
        spread = self._spread(source.shown)
        return versions, source.history.marks, estimators, branches, source.span, missing, spread

    def margins(self, source: PlotData, log: bool, lines: int) -> Margins:
        return margins(self.series(source), log, lines)

    def series(self, source: PlotData) -> list[Curve]:
        """The curves that have points, and below them those of discarded updates."""
        if (shown := self._shown(source)) is not self:
            return shown.series(source)
        series = []
        for trace, style in zip(self.traces, (FIRST, SECOND), strict=False):
            updates, values = source.history.series(trace.metric)
            if len(updates):
                band = _aligned(updates, *source.history.series(trace.band)) if trace.band else None
                breaks, noise = cuts(source.history, trace.metric), _noise(trace, source)
                series.append(Curve(updates, values, style, trace.kind, trace.side, band, cuts=breaks, noise=noise))
        # Discarded updates stay visible for comparison.
        first = self.traces[0]
        given_up = source.history.abandoned(first.metric)[-GHOSTS:]
        breaks, noise = cuts(source.history, first.metric), _noise(first, source)
        return [*series, *(Curve(*each, GHOST, "dotted", cuts=breaks, noise=noise) for each in given_up)]

    def draw(self, source: PlotData, size: Size, log: bool, smoothing: float = 0.0) -> Picture | str:
        series = self.series(source)
        if not series:
            return source.missing(self.title, self.metrics)
        series = [each for curve in series for each in with_average(curve, smoothing)]
        return curves(
            series, signs(source.history.marks), size, log, smoothing_label(smoothing), source.span, source.room
        )

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
        when = "" if cursor is None else f" at {cursor}"
        elsewhere = cursor is not None and (source.shown is None or source.shown.number != cursor)
        spread = "" if elsewhere else self._spread(source.shown)
        shade = SHADE if any(source.history.series(trace.band)[0] for trace in self.traces if trace.band) else ""
        above = Content.assemble(self.title, " " * bool(head), head, when, manner(log, smoothing), shade, spread)
        return above, Content("").join(others)

    def _spread(self, update: Update | None) -> str:
        values = measures(update).get(self.spread) if self.spread else None
        done = update is not None and update.sampled is not None and update.sampled.done
        return f" · {distribution(values, _SPREAD)}" if values is not None and done else ""

    def _legend(self, trace: Trace, style: str, source: PlotData, cursor: int | None) -> Content:
        glyph = f"{GLYPHS[trace.kind]} " if len(self.traces) > 1 else ""
        label = f"{trace.label} " if trace.label else ""
        noise = _noise(trace, source)
        updates, values = source.history.series(trace.metric)
        if cursor is not None:
            at = dict(zip(updates, values, strict=True)).get(cursor)
            return Content.assemble((glyph, style), label, ("–" if at is None else number(at, noise=noise), VALUE))
        unit = f" {_unit(trace)}" if values and _unit(trace) and self._names_unit(trace) else ""
        unit = source.worded(unit)  # squares are tokens, too, and no metric counts them
        kind = f" · {_estimator(trace, source)}" if _estimator(trace, source) else ""
        latest = number(values[-1], noise=noise) if len(values) else "–"
        newest = source.history.series(self.traces[0].metric)[0]
        when = f" (update {updates[-1]})" if updates and newest and updates[-1] < newest[-1] else ""
        return Content.assemble((glyph, style), label, (latest, VALUE), unit, kind, when)

    def _names_unit(self, trace: Trace) -> bool:
        """Whether to name the unit here: a unit that both metrics share appears once, below."""
        return [_unit(other) for other in self.traces][self.traces.index(trace) + 1 :] != [_unit(trace)]


def signs(marks: Iterable[Mark]) -> list[tuple[int, str]]:
    """The signs of the marks, for the axis."""
    return [(mark.update, EVENT_MARKS[mark.kind]) for mark in marks]


def manner(log: bool, smoothing: float) -> str:
    """How the curve is drawn (smoothed, log), for its title."""
    return "".join(f" · {word}" for word in (smoothing_label(smoothing), "log" * log) if word)


def with_average(curve: Curve, smoothing: float) -> list[Curve]:
    """The curve; with smoothing, its values in grey and their moving average on top.

    Points and discarded updates are not smoothed. At a cut of the curve, the average starts again.
    """
    if not smoothing or curve.kind == "points" or curve.style == GHOST:
        return [curve]
    ends = [0, *(bisect_left(curve.updates, cut) for cut in curve.cuts), len(curve.updates)]
    parts = (smoothed(curve.values[start:end], smoothing) for start, end in pairwise(ends))
    average = replace(curve, values=list(chain.from_iterable(parts)), band=None)
    return [replace(curve, style=GHOST, letter=""), average]


def single(metric: str) -> CurveView:
    """A view of one metric with its registered title; held-out values are points."""
    held_out = f"eval_{metric}"
    held_out_trace = (Trace(held_out, "held out", "points"),) if describe(held_out) is not None else ()
    return CurveView(visible(titled(metric)), (Trace(metric), *held_out_trace))


REWARD = CurveView("Reward", (Trace("reward", band="reward_std"), Trace("eval_reward", "held out", "points")))
KL = CurveView(
    "KL",
    (
        Trace("kl", "to reference", estimator_of="kl_estimator"),
        Trace("kl_old", "to old policy", "dotted", "right", estimator="k3"),
    ),
)
STEP_KL = CurveView(
    "KL",
    (
        Trace("kl", "to reference", estimator_of="kl_estimator"),
        Trace("kl_old_exact", "of a step", "dotted", "right", estimator="exact"),
    ),
)
"""The two may differ by orders of magnitude, so each has its own scale."""
LENGTH = CurveView(
    "Length",
    (Trace("completions/mean_length"), Trace("entropy", "entropy", "dotted", "right")),
    spread="length",
)

PAIRS = (
    CurveView("Loss", (Trace("loss"),)),
    CurveView("Implicit reward", (Trace("rewards/chosen", "chosen"), Trace("rewards/rejected", "rejected", "dotted"))),
    CurveView(
        "Accuracy",
        (Trace("rewards/accuracies"), Trace("rewards/margins", "margin", "dotted", "right")),
        CurveView("Margin", (Trace("rewards/margins"),)),
    ),
    CurveView("Log-probability", (Trace("logps/chosen", "chosen"), Trace("logps/rejected", "rejected", "dotted"))),
)
"""The views for learning from pairs, in place of reward, KL, ratio and length."""

IMITATION = (
    CurveView("Loss", (Trace("loss"),)),
    CurveView("Token accuracy", (Trace("mean_token_accuracy"),)),
    CurveView("Log-probability", (Trace("logps/chosen"),), CurveView("Gradient norm", (Trace("grad_norm"),))),
    CurveView("Entropy", (Trace("entropy"),)),
)
"""The views for fine-tuning."""

SCORES = (
    CurveView("Loss", (Trace("loss"),)),
    CurveView("Accuracy", (Trace("accuracy"), Trace("margin", "margin", "dotted", "right"))),
    CurveView("Score", (Trace("mean_reward", "mean"), Trace("max_reward", "highest", "dotted"))),
    CurveView("Gradient norm", (Trace("grad_norm"),)),
)
"""The views for training a reward model."""

ACTION_VALUES = (
    CurveView("Expected reward", (Trace("greedy_reward", "greedy"), Trace("behaviour_reward", "ε-greedy", "dotted"))),
    CurveView("TD error", (Trace("td_error"), Trace("bellman_residual", "Bellman residual", "dotted"))),
    LENGTH,
    REWARD,
)
"""The views for Q-learning and SARSA: the policy that is learned about, and the one that makes the moves."""


def _estimator(trace: Trace, source: PlotData) -> str:
    """The estimator of the metric; empty if it has none, or if the run does not state it."""
    if trace.estimator_of not in source.on_record:
        return trace.estimator
    return str(getattr(source.settings, trace.estimator_of))


def cuts(history: History, metric: str) -> list[int]:
    """The updates at which a metric's curve starts again, because a new stage changes what it measures."""
    return [] if means_the_same(metric) else history.stage_borders


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


def _aligned(updates: Sequence[int], others: Sequence[int], values: Sequence[float]) -> list[float]:
    known = dict(zip(others, values, strict=True))
    return [known.get(update, 0.0) for update in updates]

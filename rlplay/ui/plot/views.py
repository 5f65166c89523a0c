"""What a curve panel can show: which metrics, drawn how, with what above and below the plot."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any, Literal, Protocol

from textual.content import Content

from rlplay.trace.history import History, Mark
from rlplay.trace.metrics import ROUNDING, describe, means_the_same, titled
from rlplay.trace.text import visible
from rlplay.trace.update import Update
from rlplay.ui.format.legend import EVENT_MARKS
from rlplay.ui.plot.curves import Curve, Margins, curves
from rlplay.ui.plot.picture import NOISE, Picture, Size, number
from rlplay.ui.plot.smoothing import smoothed, smoothing_label

FIRST, SECOND, GHOST = "$primary", "$secondary", "$text-muted"
NOTHING_YET = "No data yet: press `u` for the first update."
NEXT_UPDATE = "No data yet: press `u` for the next update."
"""Of what the stage or the settings that have just begun may compute."""
ENDS_BEFORE = "The recording ends before an update has computed this."
NOT_COMPUTED = "Not computed by this algorithm with these settings."
NO_UPDATE = "This recording holds no finished update."
SHADE = " · shade ±1 std"
VALUE = "bold $foreground"
GHOSTS = 2
"""Abandoned branches drawn beside the live one."""

_GLYPHS = {"line": "━", "dotted": "┅", "points": "•"}


@dataclass(frozen=True)
class Source:
    """Everything a panel may draw from: the run so far, the update looked at and the settings."""

    history: History
    live: Update | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    room: Margins = (0, 0)  # for labels, at least
    replayed: bool = False  # no engine makes what is not there

    @property
    def span(self) -> tuple[int, int]:
        """The updates of every axis, so that one update has the same place in all panels."""
        return self.history.extent(GHOSTS)

    def coming(self, words: str) -> str:
        """What an empty panel says: with what key its plot comes, in an empty recording that none does."""
        return words if self.history.series("num_tokens")[0] or not self.replayed else NO_UPDATE

    def missing(self) -> str:
        """Why there is no point of a metric: no update yet, none since what is computed changed, or it is not."""
        if not self.history.series("num_tokens")[0]:
            return self.coming(NOTHING_YET)
        if self.history.settled:
            return NOT_COMPUTED
        return ENDS_BEFORE if self.replayed else NEXT_UPDATE


class View(Protocol):
    """One thing a panel can show."""

    @property
    def title(self) -> str:
        """Its name, for an empty panel."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics it shows, for help and for the cursor."""

    @property
    def of_run(self) -> bool:
        """Whether it is drawn over the updates of the run, so that a cursor on one of them has a place in it."""

    def state(self, source: Source) -> object:
        """Equal for sources of which the same is drawn."""

    def series(self, source: Source, /) -> list[Curve]:
        """What is drawn over the updates of the run; nothing where the view is not `of_run`."""

    def draw(self, source: Source, size: Size, log: bool, smoothing: float, /) -> Picture | str:
        """The plot, or a sentence saying why there is none, with keys between backticks."""

    def titles(self, source: Source, cursor: int | None, log: bool, smoothing: float, /) -> tuple[Content, Content]:
        """What stands in the upper and the lower border: names and values, at the cursor or the latest.

        Values are never smoothed ones; that the curve is smoothed is said.
        """


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
class Lines:
    """One or two metrics over the updates; the first is named above the plot, the second below."""

    title: str
    traces: tuple[Trace, ...]

    @property
    def of_run(self) -> bool:
        return True

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(name for trace in self.traces for name in (trace.metric, trace.band) if name)

    def state(self, source: Source) -> object:
        estimators = [_estimator(trace, source) for trace in self.traces]
        branches = len(source.history.abandoned(self.traces[0].metric))
        versions = [source.history.version(name) for name in self.metrics]
        missing = None if any(source.history.series(name)[0] for name in self.metrics) else source.missing()
        return versions, source.history.marks, estimators, branches, source.span, missing

    def series(self, source: Source) -> list[Curve]:
        series = []
        for trace, style in zip(self.traces, (FIRST, SECOND), strict=False):
            updates, values = source.history.series(trace.metric)
            if len(updates):
                band = _aligned(updates, *source.history.series(trace.band)) if trace.band else None
                breaks, noise = cuts(source.history, trace.metric), _noise(trace, source)
                series.append(Curve(updates, values, style, trace.kind, trace.side, band, cuts=breaks, noise=noise))
        # What was rewound away stays in sight, to compare with.
        first = self.traces[0]
        given_up = source.history.abandoned(first.metric)[-GHOSTS:]
        breaks, noise = cuts(source.history, first.metric), _noise(first, source)
        return [*series, *(Curve(*each, GHOST, "dotted", cuts=breaks, noise=noise) for each in given_up)]

    def draw(self, source: Source, size: Size, log: bool, smoothing: float = 0.0) -> Picture | str:
        series = self.series(source)
        if not series:
            return source.missing()
        series = [each for curve in series for each in with_average(curve, smoothing)]
        return curves(
            series, signs(source.history.marks), size, log, smoothing_label(smoothing), source.span, source.room
        )

    def titles(self, source: Source, cursor: int | None, log: bool, smoothing: float = 0.0) -> tuple[Content, Content]:
        known = [bool(source.history.series(trace.metric)[0]) for trace in self.traces]
        parts = [
            self._legend(trace, style, source, cursor)
            for at, (trace, style) in enumerate(zip(self.traces, (FIRST, SECOND), strict=False))
            if known[at]
        ]
        head, *others = parts if known[0] else [Content(""), *parts]
        when = "" if cursor is None else f" at {cursor}"
        shade = SHADE if any(source.history.series(trace.band)[0] for trace in self.traces if trace.band) else ""
        above = Content.assemble(f"{self.title} ", head, when, manner(log, smoothing), shade)
        return above.rstrip(), Content("").join(others)

    def _legend(self, trace: Trace, style: str, source: Source, cursor: int | None) -> Content:
        glyph = f"{_GLYPHS[trace.kind]} " if len(self.traces) > 1 else ""
        label = f"{trace.label} " if trace.label else ""
        noise = _noise(trace, source)
        updates, values = source.history.series(trace.metric)
        if cursor is not None:
            at = dict(zip(updates, values, strict=True)).get(cursor)
            return Content.assemble((glyph, style), label, ("–" if at is None else number(at, noise=noise), VALUE))
        unit = f" {_unit(trace)}" if values and _unit(trace) and self._names_unit(trace) else ""
        kind = f" · {_estimator(trace, source)}" if _estimator(trace, source) else ""
        latest = number(values[-1], noise=noise) if len(values) else "–"
        newest = source.history.series(self.traces[0].metric)[0]
        when = f" (update {updates[-1]})" if updates and newest and updates[-1] < newest[-1] else ""
        return Content.assemble((glyph, style), label, (latest, VALUE), unit, kind, when)

    def _names_unit(self, trace: Trace) -> bool:
        """A unit that both metrics share is named once, below."""
        return [_unit(other) for other in self.traces][self.traces.index(trace) + 1 :] != [_unit(trace)]


def signs(marks: Iterable[Mark]) -> list[tuple[int, str]]:
    """The marks as they stand under a curve."""
    return [(mark.update, EVENT_MARKS[mark.kind]) for mark in marks]


def manner(log: bool, smoothing: float) -> str:
    """How a curve is drawn, for its title, where there is room."""
    return "".join(f" · {word}" for word in (smoothing_label(smoothing), "log" * log) if word)


def with_average(curve: Curve, smoothing: float) -> list[Curve]:
    """The curve, or where it is smoothed, its values in grey and their moving average over them.

    Points stay as they are, and what was rewound away does. Where the curve is cut, the average begins anew.
    """
    if not smoothing or curve.kind == "points" or curve.style == GHOST:
        return [curve]
    ends = [0, *(bisect_left(curve.updates, cut) for cut in curve.cuts), len(curve.updates)]
    parts = (smoothed(curve.values[start:end], smoothing) for start, end in pairwise(ends))
    average = replace(curve, values=list(chain.from_iterable(parts)), band=None)
    return [replace(curve, style=GHOST, letter=""), average]


def single(metric: str) -> Lines:
    """A panel with one metric, titled as the registry titles it; held-out values are points beside the line."""
    held_out = f"eval_{metric}"
    held_out_trace = (Trace(held_out, "held out", "points"),) if describe(held_out) is not None else ()
    return Lines(visible(titled(metric)), (Trace(metric), *held_out_trace))


REWARD = Lines("Reward", (Trace("reward", band="reward_std"), Trace("eval_reward", "held out", "points")))
KL = Lines(
    "KL",
    (
        Trace("kl", "to reference", estimator_of="kl_estimator"),
        Trace("kl_old", "to old policy", "dotted", "right", estimator="k3"),
    ),
)
STEP_KL = Lines(
    "KL",
    (
        Trace("kl", "to reference", estimator_of="kl_estimator"),
        Trace("kl_old_exact", "of a step", "dotted", "right", estimator="exact"),
    ),
)
"""The two may differ by orders of magnitude: each has a scale, so that neither is flattened by the other."""
LENGTH = Lines(
    "Length",
    (Trace("completions/mean_length"), Trace("entropy", "entropy", "dotted", "right")),
)

PAIRS = (
    Lines("Loss", (Trace("loss"),)),
    Lines("Implicit reward", (Trace("rewards/chosen", "chosen"), Trace("rewards/rejected", "rejected", "dotted"))),
    Lines("Told apart", (Trace("rewards/accuracies"), Trace("rewards/margins", "margin", "dotted", "right"))),
    Lines("Log-probability", (Trace("logps/chosen", "chosen"), Trace("logps/rejected", "rejected", "dotted"))),
)
"""What there is to see where pairs are learned from, instead of reward, KL, ratio and length."""

IMITATION = (
    Lines("Loss", (Trace("loss"),)),
    Lines("Token accuracy", (Trace("mean_token_accuracy"),)),
    Lines("Log-probability", (Trace("logps/chosen"),)),
    Lines("Entropy", (Trace("entropy"),)),
)
"""What there is to see of fine-tuning."""

SCORES = (
    Lines("Loss", (Trace("loss"),)),
    Lines("Told apart", (Trace("accuracy"), Trace("margin", "margin", "dotted", "right"))),
    Lines("Score", (Trace("mean_reward", "mean"), Trace("max_reward", "highest", "dotted"))),
    Lines("Gradient norm", (Trace("grad_norm"),)),
)
"""What there is to see of a reward model that is trained."""


def _estimator(trace: Trace, source: Source) -> str:
    """How the metric is estimated; empty if it is not, or as long as no settings are known."""
    return str(source.settings.get(trace.estimator_of, trace.estimator))


def cuts(history: History, metric: str) -> list[int]:
    """The updates at which a metric's curve begins anew, since it is another quantity in the stage that begins."""
    return [] if means_the_same(metric) else history.borders


def _noise(trace: Trace, source: Source) -> float:
    """How small a value of the metric is 0 but for rounding."""
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

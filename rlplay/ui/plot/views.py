"""The views of a curve panel: their metrics, how they are drawn, and the texts above and below the plot."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Literal, Protocol

from textual.content import Content

from rlplay.algorithms.settings import UNKNOWN, Settings
from rlplay.scenario.scenario_world import step_word
from rlplay.trace.answers import measures
from rlplay.trace.beliefs import Beliefs
from rlplay.trace.evaluations import Evaluations
from rlplay.trace.history import History, Mark
from rlplay.trace.metrics import ROUNDING, describe, means_the_same, titled
from rlplay.trace.numbers import NOISE, number
from rlplay.trace.pulls import Box
from rlplay.trace.text import visible
from rlplay.trace.update import Update
from rlplay.ui.format.bars import distribution
from rlplay.ui.format.legend import EVENT_MARKS
from rlplay.ui.format.step_word import worded
from rlplay.ui.plot.drawn_curves import Curve, Margins, curves, margins
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.smoothing import smoothed, smoothing_label
from rlplay.worlds.world import World

FIRST, SECOND, GHOST = "$primary", "$secondary", "$text-muted"
NEXT_UPDATE = "No data yet: press `u` for the next update."
"""For metrics that a new stage or new settings may compute."""
ENDS_BEFORE = "The recording ends before an update has computed this."
NOT_COMPUTED = "Not computed by this algorithm with these settings."
LIGHT = "Not computed: with observe=light no pass is made for it alone."
NEEDS_A_PASS = ("kl", "kl_old")
"""Metrics that observe=light leaves out, unless the training needs the pass anyway."""
NOT_RECORDED = "Not on record: another program trained this run."
NO_UPDATE = "This recording holds no finished update."
SHADE = " · shade ±1 std"
VALUE = "bold $foreground"
GHOSTS = 2
"""Discarded branches drawn together with the live one."""

_SPREAD = 11
"""Cells for a distribution in the title."""
GLYPHS = {"line": "━", "dotted": "┅", "points": "•"}


@dataclass(frozen=True)
class Source:
    """The data of a panel: the run so far, the update on the screen and the settings."""

    history: History
    live: Update | None = None  # the last one that has taken an optimizer step
    settings: Settings = UNKNOWN
    room: Margins = (0, 0)  # minimum for labels
    replayed: bool = False  # a recording, so no engine adds to it
    shown: Update | None = None  # the update on the screen
    world: World | None = None
    cursor: tuple[int, int] = (0, 0)  # completion and token
    lines: int = 0  # of the panel
    columns: int = 0  # of the panel; 0: any number
    beliefs: Beliefs | None = None  # the candidates of every update
    evaluations: Evaluations | None = None  # the held-out answers
    box: Box | None = None  # of the pull map, which filters the tokens
    bands: tuple[int, ...] = ()  # tokens with a band of the river, if not those of the run alone
    plain: bool = False  # the terminal has no colours
    axis: tuple[int, int] | None = None  # the updates of the axis, if they are not those of the history
    steered: bool = True  # the settings can be changed: rlplay's own engine trains, not another trainer
    foreign: bool = False  # another program trained the run: what it did not write is absent

    @property
    def span(self) -> tuple[int, int]:
        """The updates of every axis, so that an update is in the same column in all panels."""
        return self.axis or self.history.extent(GHOSTS)

    def coming(self, words: str) -> str:
        """The text of an empty panel: `words`, or in an empty recording that there is no update."""
        return self.worded(words) if self.history.updates or not self.replayed else NO_UPDATE

    def worded(self, text: str) -> str:
        """A text written about tokens, in the words of the run."""
        return worded(text, step_word(self.world))

    @property
    def light(self) -> bool:
        """Whether the settings leave out the passes that only the screen needs."""
        return self.settings.observe == "light"

    def missing(self, title: str, metrics: Iterable[str] = ()) -> str:
        """Why the curve `title` has no points: no update yet, no update since a change, or never computed."""
        if not self.history.updates:
            return self.coming(first_update(title))
        if self.light and set(metrics) & set(NEEDS_A_PASS):
            return LIGHT
        if self.history.settled:
            return NOT_RECORDED if self.foreign else NOT_COMPUTED
        return ENDS_BEFORE if self.replayed else NEXT_UPDATE


def first_update(title: str) -> str:
    """The text of a panel before the first update: what it will show."""
    return f"{title} of each update will be drawn here. Press `u` for the first."


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

    def state(self, source: Source) -> object:
        """Equal for sources with equal drawings."""

    def margins(self, source: Source, log: bool, lines: int, /) -> Margins:
        """The cells to the left and to the right of its plot over the updates; (0, 0) if it has none."""

    def draw(self, source: Source, size: Size, log: bool, smoothing: float, /) -> Picture | str:
        """The plot, or a sentence why there is none, with keys between backticks."""

    def titles(self, source: Source, cursor: int | None, log: bool, smoothing: float, /) -> tuple[Content, Content]:
        """The texts of the upper and the lower border: names and values, at the cursor or the latest.

        Values are never smoothed; the title says if the curve is.
        """


class OfUpdate:
    """Base of the views of one update, not of the run: they have no cursor and share no columns with others."""

    of_run = False
    metrics: tuple[str, ...] = ()

    def margins(self, _source: Source, _log: bool, _lines: int) -> Margins:
        """None."""
        return 0, 0


class Detailed(View, Protocol):
    """A view that a comparison of runs can show of each of them."""

    def data(self, source: Source) -> object:
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
class Lines:
    """One or two metrics over the updates; the first is in the title, the second below the plot.

    `instead` is drawn where the run has values of it and none of the first metric, which not every trainer computes.
    `spread` names a number of answers, whose distribution in the update on the screen is in the title.
    """

    title: str
    traces: tuple[Trace, ...]
    instead: Lines | None = None
    spread: str = ""

    @property
    def of_run(self) -> bool:
        return True

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(name for trace in self.traces for name in (trace.metric, trace.band) if name)

    def _shown(self, source: Source) -> Lines:
        other = self.instead
        if other is None or source.history.series(self.traces[0].metric)[0]:
            return self
        return other if source.history.series(other.traces[0].metric)[0] else self

    def state(self, source: Source) -> object:
        if (shown := self._shown(source)) is not self:
            return shown.title, shown.state(source)
        estimators = [_estimator(trace, source) for trace in self.traces]
        branches = len(source.history.abandoned(self.traces[0].metric))
        versions = [source.history.version(name) for name in self.metrics]
        known = any(source.history.series(name)[0] for name in self.metrics)
        missing = None if known else source.missing(self.title, self.metrics)
        spread = self._spread(source.shown)
        return versions, source.history.marks, estimators, branches, source.span, missing, spread

    def margins(self, source: Source, log: bool, lines: int) -> Margins:
        return margins(self.series(source), log, lines)

    def series(self, source: Source) -> list[Curve]:
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

    def draw(self, source: Source, size: Size, log: bool, smoothing: float = 0.0) -> Picture | str:
        series = self.series(source)
        if not series:
            return source.missing(self.title, self.metrics)
        series = [each for curve in series for each in with_average(curve, smoothing)]
        return curves(
            series, signs(source.history.marks), size, log, smoothing_label(smoothing), source.span, source.room
        )

    def titles(self, source: Source, cursor: int | None, log: bool, smoothing: float = 0.0) -> tuple[Content, Content]:
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

    def _legend(self, trace: Trace, style: str, source: Source, cursor: int | None) -> Content:
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


def single(metric: str) -> Lines:
    """A view of one metric with its registered title; held-out values are points."""
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
"""The two may differ by orders of magnitude, so each has its own scale."""
LENGTH = Lines(
    "Length",
    (Trace("completions/mean_length"), Trace("entropy", "entropy", "dotted", "right")),
    spread="length",
)

PAIRS = (
    Lines("Loss", (Trace("loss"),)),
    Lines("Implicit reward", (Trace("rewards/chosen", "chosen"), Trace("rewards/rejected", "rejected", "dotted"))),
    Lines(
        "Accuracy",
        (Trace("rewards/accuracies"), Trace("rewards/margins", "margin", "dotted", "right")),
        Lines("Margin", (Trace("rewards/margins"),)),
    ),
    Lines("Log-probability", (Trace("logps/chosen", "chosen"), Trace("logps/rejected", "rejected", "dotted"))),
)
"""The views for learning from pairs, in place of reward, KL, ratio and length."""

IMITATION = (
    Lines("Loss", (Trace("loss"),)),
    Lines("Token accuracy", (Trace("mean_token_accuracy"),)),
    Lines("Log-probability", (Trace("logps/chosen"),), Lines("Gradient norm", (Trace("grad_norm"),))),
    Lines("Entropy", (Trace("entropy"),)),
)
"""The views for fine-tuning."""

SCORES = (
    Lines("Loss", (Trace("loss"),)),
    Lines("Accuracy", (Trace("accuracy"), Trace("margin", "margin", "dotted", "right"))),
    Lines("Score", (Trace("mean_reward", "mean"), Trace("max_reward", "highest", "dotted"))),
    Lines("Gradient norm", (Trace("grad_norm"),)),
)
"""The views for training a reward model."""

ACTION_VALUES = (
    Lines("Expected reward", (Trace("greedy_reward", "greedy"), Trace("behaviour_reward", "ε-greedy", "dotted"))),
    Lines("TD error", (Trace("td_error"), Trace("bellman_residual", "Bellman residual", "dotted"))),
    LENGTH,
    REWARD,
)
"""The views for Q-learning and SARSA: the policy that is learned about, and the one that makes the moves."""


def _estimator(trace: Trace, source: Source) -> str:
    """The estimator of the metric; empty if it has none, or before the settings are known."""
    if not (trace.estimator_of and source.settings.axes_known):
        return trace.estimator
    return str(getattr(source.settings, trace.estimator_of))


def cuts(history: History, metric: str) -> list[int]:
    """The updates at which a metric's curve starts again, because a new stage changes what it measures."""
    return [] if means_the_same(metric) else history.stage_borders


def _noise(trace: Trace, source: Source) -> float:
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

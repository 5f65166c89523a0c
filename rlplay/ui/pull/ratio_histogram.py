"""The importance ratios of the last optimizer step as a histogram, with the clip bounds and the clipped tokens."""

from __future__ import annotations

import numpy as np
from textual.content import Content

from rlplay.trace.numbers import percent
from rlplay.trace.pulls import pulls
from rlplay.trace.records import Array, Sampled, Stepped, spans
from rlplay.ui.formula.formula_lines import bounds, has_band
from rlplay.ui.plot.curve import FIRST
from rlplay.ui.plot.histogram import HistogramStyle, histogram
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import NOT_RECORDED, PlotData
from rlplay.ui.plot.view import OfUpdate, View
from rlplay.ui.pull.pull_map import PullMap

FAR = 0.01
"""How far from 1 no rounding brings the ratio of a policy that has not moved."""
ONE_STEP_HERE = "One optimizer step per batch, so every ratio is 1 and nothing is clipped."
ONE_STEP = f"{ONE_STEP_HERE} Raise Iterations (`k`) to see it move."
NO_STEP = "How far a step moves each token's probability will be drawn here. Press `s` for the first step."
ONE_STEP_UNNAMED = "One optimizer step per batch, so every ratio is 1."
ONE_STEP_THEN = "This update took one optimizer step, so every ratio was 1 and nothing was clipped."


class Ratios(OfUpdate):
    """A view of one optimizer step, not of the run, so it has no cursor.

    Where an update takes one step every ratio in it is 1, and the pull map shows the ratios after the update instead.
    """

    title = "Ratio · clip"
    metrics = ("clip_ratio/region_mean", "clip_ratio/high_mean", "clip_ratio/low_mean", "ratio_outside", "ratio_max")

    def state(self, source: PlotData) -> object:
        """The optimizer step, whether the update has ended, and the settings that bound its ratios."""
        step = _last(source)
        which = None if step is None else (step.update, step.step)
        return which, source.settings.steps, _past(source), PullMap().state(source)

    def draw(self, source: PlotData, size: Size, log: bool, _smoothing: float = 0.0) -> Picture | str:
        """Bars over a range fixed by the settings, to make updates comparable; clipped tokens in front."""
        step = _last(source)
        if step is None and source.foreign and source.history.updates:
            return NOT_RECORDED
        if _all_one(source, step):
            map_of_update = PullMap().draw(source, size, log)
            if isinstance(map_of_update, Picture):
                return map_of_update
            if not source.settings.axes_known:
                return ONE_STEP_UNNAMED
            return ONE_STEP_THEN if _past(source) else ONE_STEP if source.steered else ONE_STEP_HERE
        if step is None or source.live is None or source.live.sampled is None:
            return source.coming(NO_STEP)
        kept = _sampled(source.live.sampled, step) & np.isfinite(step.importance_ratio)
        ratio, states = step.importance_ratio[kept], step.clip_state
        clipped = np.zeros(len(ratio), dtype=bool) if states is None else states[kept] != 0
        band = bounds(source.settings)
        # A band without width would also leave the axis without width.
        limits = max(0.0, min(1 - 2.5 * (1 - band[0]), 0.9)), max(1 + 2.5 * (band[1] - 1), 1.1)
        fences = band if has_band(source.settings) else ()
        return histogram(ratio, ratio[clipped], fences, size, HistogramStyle(limits, FIRST, "$warning", not log))

    def titles(
        self, source: PlotData, _cursor: int | None, log: bool, _smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        """Above, the clipped share; below, its two halves and the share outside the band on either side."""
        step = _last(source)
        if step is not None and _all_one(source, step) and pulls(source.mapped) is not None:
            return PullMap().titles(source, None, log)
        if step is None or _all_one(source, step):
            return Content(self.title), Content("")
        shares = [percent(step.metrics[name]) for name in self.metrics[:4] if name in step.metrics]
        head, below = Content(f"Ratio, step {step.step + 1}/{step.epochs * step.minibatches}"), []
        if len(shares) > 2:  # else the algorithm is not on record
            head = Content.assemble(head, " · clipped ", (shares[0], "bold $foreground"))
            below = [f"↑{shares[1]} ↓{shares[2]}".replace(" %", ""), *(f"outside {share}" for share in shares[3:])]
        return head, Content(" · ".join([*below, *(["log n"] * (not log))]))


def shows_map(view: View, source: PlotData) -> bool:
    """Whether a view shows the pull map: that one itself, or the ratios of an update with one step."""
    step = _last(source)
    one_step = isinstance(view, Ratios) and step is not None and _all_one(source, step)
    return (one_step or isinstance(view, PullMap)) and pulls(source.mapped) is not None


def _last(source: PlotData) -> Stepped | None:
    return source.live.steps[-1] if source.live is not None and source.live.steps else None


def _all_one(source: PlotData, step: Stepped | None) -> bool:
    """Whether the ratios of the update say nothing: it takes one step, which does not start from a sampler's."""
    settings = source.settings
    if step is None:
        return settings.axes_known and settings.ratio_stays_one
    if step.epochs * step.minibatches > 1 or (settings.axes_known and settings.old_logprobs_of == "trainer"):
        return step.epochs * step.minibatches == 1
    moved = np.abs(step.importance_ratio[np.isfinite(step.importance_ratio)] - 1)
    return float(moved.max(initial=0.0)) < FAR


def _past(source: PlotData) -> bool:
    """Whether the run has continued since: advice about this update would be too late."""
    return source.live is not None and source.live.number < max(source.history.updates, default=0)


def _sampled(batch: Sampled, step: Stepped) -> Array:
    return np.asarray(batch.mask[spans(batch.offsets, step.rows)] == 1)

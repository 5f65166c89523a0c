"""The weight of the entropy bonus, where it adapts from optimizer step to optimizer step."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from rlplay.algorithms.entropy_control import EntropyControl
from rlplay.engine.state import State
from rlplay.trace.records import DECIDED, Stepped

USED = "entropy_coef_used"
"""The metric of the weight that a step's loss had; TRL logs what the step has made of it."""


def adapt(state: State, entropy: Tensor | None, weights: Tensor | None, left_out: Tensor | None) -> dict[str, float]:
    """Let a step choose the weight of the next one's bonus by what it has seen of its tokens, all [R, L] as in
    `TrainedMinibatch`; the metrics of both.

    What decides is the mean over the tokens that have the bonus, by the policy before the step, as in TRL.
    """
    settings, used = state.settings, state.entropy_coef
    if settings.loss_type != "policy_gradient" or not settings.use_adaptive_entropy:
        return {}
    assert entropy is not None
    assert left_out is not None
    assert weights is not None
    counted = entropy[(weights > 0) & (left_out != DECIDED)].double()
    state.entropy = state.entropy.after(settings, float(counted.sum()) / max(len(counted), 1))
    return {USED: used, "entropy_coef": state.entropy.coefficient}


def as_recorded(state: State, step: Stepped) -> State:
    """The state, whose settings are those of a recorded step, with the weight that the step's bonus had."""
    if USED not in step.metrics:
        return state
    start = state.settings.entropy_coef
    return replace(state, entropy=EntropyControl(step.metrics[USED], -float("inf"), start))

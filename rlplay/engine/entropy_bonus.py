"""The weight of the entropy bonus, where it adapts from optimizer step to optimizer step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlplay.algorithms.entropy_control import EntropyControl
from rlplay.engine.state import State
from rlplay.trace.records import LEFT_OUT, Stepped

if TYPE_CHECKING:
    from rlplay.engine.optimize import TrainedMinibatch

_DECIDED = LEFT_OUT.index("too low an entropy")
USED = "entropy_coef_used"
"""The metric of the weight that a step's loss had; TRL logs what the step has made of it."""


def adapt(state: State, seen: TrainedMinibatch) -> dict[str, float]:
    """Let a step that has `seen` its tokens choose the weight of the next one's bonus; the metrics of both.

    Its entropy is the mean over the tokens that have the bonus, by the policy before the step, as in TRL.
    """
    settings, used = state.settings, state.entropy_coef
    if settings.loss_type != "policy_gradient" or not settings.use_adaptive_entropy:
        return {}
    assert seen.entropy is not None
    assert seen.left_out is not None
    assert seen.weights is not None
    counted = (seen.weights > 0) & (seen.left_out != _DECIDED)
    entropy = seen.entropy[counted].double()
    state.entropy = state.entropy.after(settings, float(entropy.sum()) / max(len(entropy), 1))
    return {USED: used, "entropy_coef": state.entropy.coefficient}


def as_recorded(state: State, step: Stepped) -> State:
    """The state, whose settings are those of a recorded step, with the weight that the step's bonus had."""
    if USED not in step.metrics:
        return state
    start = state.settings.entropy_coef
    return replace(state, entropy=EntropyControl(step.metrics[USED], -float("inf"), start))

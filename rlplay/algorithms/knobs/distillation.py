"""The settings of distillation: who teaches, and how the policy follows."""

from __future__ import annotations

from rlplay.algorithms.choice import describe_choices, reading
from rlplay.algorithms.distillation import MODES
from rlplay.algorithms.knobs.knob import Knob

_IN_LOSS = ("distillation_mode", tuple(mode.name for mode in MODES.values() if mode.compute is not None))
_IN_ADVANTAGE = ("distillation_mode", tuple(mode.name for mode in MODES.values() if mode.compute is None))
_DIVERGED = ("distillation_mode", reading(MODES, "distillation_alpha"))
_FEW = ("distillation_mode", tuple(mode.name for mode in MODES.values() if mode.few))
_EMA = ("teacher_model_kind", ("ema",))

DISTILLATION: tuple[Knob, ...] = (
    Knob("distillation_weight", "Distillation λ", "distillation",
         "Share of the teacher in what the policy learns from: 0 no teacher, 1 the teacher alone.",
         "Larger: rewards count less. At 1 they do not count at all.", 0.0, 1.0, 0.1),
    Knob("distillation_mode", "Distillation", "distillation", "How the policy follows the teacher.",
         describe_choices(MODES)),
    Knob("distillation_alpha", "Divergence α", "distillation",
         "0: forward KL(teacher ‖ policy). 1: reverse KL(policy ‖ teacher). Between: generalised Jensen-Shannon.",
         "Near 0 the policy covers all that the teacher would write, near 1 only what it writes most.",
         0.0, 1.0, 0.1, needs=_DIVERGED),
    Knob("distillation_topk", "Divergence, top k", "distillation",
         "The policy's likeliest tokens that the divergence is taken over.",
         "Larger: nearer to the whole vocabulary.", 1, 100_000, 5, needs=_FEW),
    Knob("distillation_add_tail", "Divergence, tail", "distillation",
         "Whether all other tokens count together as one; else the top k are scaled to sum to 1.",
         "On: also how much both give to the others has to agree.", needs=_FEW),
    Knob("distillation_is_clip", "Distillation ratio", "distillation",
         "Largest ratio new/old by which the teacher's term is multiplied; empty: no ratio.",
         "With several optimizer steps a batch, it corrects for answers that an older policy sampled.",
         0.0, 1000.0, 0.5, needs=_IN_LOSS),
    Knob("iw_opd_gamma", "Early tokens γ", "distillation",
         "How much more the teacher's advantage counts early in an answer than late (IW-OPD).",
         "Larger: tokens before which teacher and policy have hardly differed count more.",
         0.0, 10.0, 0.1, needs=_IN_ADVANTAGE),
    Knob("teacher_model_kind", "Teacher", "distillation", "Whose weights the teacher has.",
         "base: those of the scenario's teacher, or of the reference where it names none. live: the policy's now. "
         "ema: a moving average of the policy's."),
    Knob("teacher_update_rate", "Moving average", "distillation", "Part of the policy that moves into the average.",
         "Larger: the teacher follows sooner.", 0.0, 1.0, 0.01, needs=_EMA),
    Knob("teacher_sync_steps", "Average every", "distillation", "Optimizer steps between moves of the average.",
         "Larger: the teacher follows later.", 1, 100_000, 1, needs=_EMA),
    Knob("teacher_context", "Teacher's context", "distillation", "What the teacher reads and the policy does not.",
         "none: nothing. dataset: a column of the dataset, such as the solution. group: another answer to the prompt "
         "that succeeded; an answer without one has no teacher."),
    Knob("success_reward_threshold", "Success", "distillation", "Reward from which an answer has succeeded.",
         "Larger: fewer answers are shown to the teacher.", -1e6, 1e6, 0.1, needs=("teacher_context", ("group",))),
)  # fmt: skip

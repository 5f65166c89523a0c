"""The settings as the knobs panel, the help and the checks use them: title, range, meaning and effect of each."""

from __future__ import annotations

from rlplay.algorithms.knobs.credit import CREDIT
from rlplay.algorithms.knobs.distillation import DISTILLATION
from rlplay.algorithms.knobs.knob import Knob
from rlplay.algorithms.knobs.objective import OBJECTIVE
from rlplay.algorithms.knobs.preferences import PREFERENCES
from rlplay.algorithms.knobs.sampling import SAMPLING
from rlplay.algorithms.knobs.update import UPDATE
from rlplay.search import search

_ALGORITHM = Knob(
    "algorithm", "Algorithm", "algorithm", "A named combination of the settings below.",
    "Sets everything in which algorithms differ: reward, return, baseline, surrogate, KL, passes and loss.",
)  # fmt: skip
KNOBS: dict[str, Knob] = {
    knob.name: knob for knob in (_ALGORITHM, *SAMPLING, *CREDIT, *OBJECTIVE, *DISTILLATION, *UPDATE, *PREFERENCES)
}

OTHER_NAMES = {
    "beta": ("β", "b", "kl_coef"),
    "epsilon": ("ε", "e", "cliprange", "clip_ratio_low", "dppo_mask_low", "delta_low"),
    "epsilon_high": ("clip_ratio_high", "dppo_mask_high", "delta_high"),
    "importance_sampling_mode": ("vllm_importance_sampling_mode", "rollout_is", "tis", "mis", "icepop"),
    "importance_sampling_clip_max": ("vllm_importance_sampling_clip_max", "vllm_importance_sampling_cap", "tis_clip"),
    "importance_sampling_clip_min": ("vllm_importance_sampling_clip_min",),
    "learning_rate": ("lr",),
    "num_generations": ("group_size",),
    "num_iterations": ("num_ppo_epochs", "ppo_epochs", "μ"),
    "pass_at_k": ("k",),
    "reward_clip_max": ("reward_clip_range",),
    "reward_clip_min": ("reward_clip_range",),
    "scale_rewards": ("normalize_advantages",),
}
"""What papers and other programs call a setting."""


def matching(typed: str) -> list[Knob]:
    """The settings that contain every word of `typed`: by title, by name, then by meaning; all if it is empty."""
    return search(
        typed,
        KNOBS.values(),
        lambda knob: (knob.title, knob.name, *OTHER_NAMES.get(knob.name, ())),
        lambda knob: f"{knob.meaning} {knob.effect}",
    )

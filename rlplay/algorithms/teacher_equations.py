"""The equations of distillation: who teaches, and what the teacher adds to loss or advantage."""

from __future__ import annotations

from rlplay.algorithms.settings import Settings
from rlplay.trace.numbers import compact


def teacher(s: Settings) -> str:
    """Whose weights teach, and what they read besides the prompt."""
    weights = {
        "base": "the scenario's teacher, or else the reference",
        "live": "the policy itself",
        "ema": f"a moving average of the policy, {compact(s.teacher_update_rate)} of the way every "
        f"{f'{s.teacher_sync_steps} steps' if s.teacher_sync_steps > 1 else 'step'}",
    }[s.teacher_model_kind]
    reads = {
        "none": "",
        "dataset": ", which also reads a column of the dataset",
        "group": f", which also reads another answer of the group with R ≥ {compact(s.success_reward_threshold)}",
    }[s.teacher_context]
    return weights + reads


def rewards_idle(s: Settings) -> bool:
    """Whether a teacher alone decides what the policy learns, so that rewards do not count."""
    return s.distils and s.distillation_weight == 1


def taught(s: Settings) -> str:
    """The teacher's term of one token's loss, the right side of D; empty if it has none."""
    if not s.distils_in_loss:
        return ""
    text = s.mode_row.equation(s)
    return text if s.distillation_is_clip is None else f"sg[min(w, {compact(s.distillation_is_clip)})]·d, d = {text}"


def of_teacher(s: Settings, of_rewards: str) -> str:
    """The advantage where the teacher acts through it, mixed with that `of_rewards`."""
    early = f"(1 + {compact(s.iw_opd_gamma)}·(1 − share of Σ|ℓ_T − ℓ_old| before the token))·" if s.iw_opd_gamma else ""
    if s.distillation_weight == 1:
        return f"{early}(ℓ_T − ℓ_old)" if early else "ℓ_T − ℓ_old"
    own, theirs = compact(1 - s.distillation_weight), compact(s.distillation_weight)
    return f"{own}·A_R + {theirs}·{early}(ℓ_T − ℓ_old), A_R = {of_rewards}"

"""prime-rl's token exports (`step_N/rank_R.jsonl`), as the answers of an update.

They have arrays aligned with token_ids, `rewards` among them. `rlplay export --format jsonl` writes the same with
texts, and with `rewards` by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlplay.foreign.answer_rows import Row, mean_inside
from rlplay.foreign.token_rows import TokenAnswer, numbers_of, tokened
from rlplay.record.format import Rollouts, Step
from rlplay.trace.records import Array

_SAMPLER = "inference_logprobs"
_ARRAYS = {
    "mask": "loss_mask", "old_logprobs": _SAMPLER, "entropy": "entropy", "ref_logprobs": "ref_logprobs",
    "advantages": "advantages", "teacher_logprobs": "teacher_logprobs",
}  # fmt: skip
"""Arrays of `Rollouts`, by their name in the rows. The ratio that prime-rl trains with is that to the sampler."""


def exported(update: int, found: Sequence[Row]) -> Rollouts:
    """Rows with arrays over the tokens. The prompt ends at `prompt_len`, else where the loss begins."""
    # Without those of the trainer, there is nothing to hold the sampler's against.
    apart = not _own(found) and all(row.get("trainer_logprobs") is not None for row in found)
    named = _ARRAYS | {"sampling_logprobs": _SAMPLER} if apart else _ARRAYS
    answers = [_answer(row, begin, named) for row, begin in zip(found, _begins(found), strict=True)]
    total, first = numbers_of([_reward(row) for row in found]), found[0].get("rewards")
    names = first if isinstance(first, dict) else {}
    rewards = {name: numbers_of([row["rewards"][name] for row in found]) for name in names}
    known = ~np.isnan(total)
    if rewards and not np.allclose(np.nansum([*rewards.values()], axis=0)[known], total[known]):
        rewards = {}  # the total is what was trained, and the weights that lead to it are not in the file
    return tokened(update, answers, rewards or ({"reward": total} if known.any() else {}))


def _answer(row: Row, begin: int, named: dict[str, str]) -> TokenAnswer:
    ids, texts, cut = row["token_ids"], row.get("token_text"), row.get("truncated")
    words = None if texts is None else [str(text) for text in texts]
    return TokenAnswer(
        row.get("group_id", tuple(ids[:begin])), str(row.get("prompt") or ""), ids[:begin], ids[begin:],
        words and words[:begin], words and words[begin:],
        {name: _part(row, theirs, begin) for name, theirs in named.items()},
        truncated=None if cut is None else bool(cut), version=row.get("sampler_version"),
    )  # fmt: skip


def _part(row: Row, name: str, begin: int) -> Sequence[Any] | None:
    """A row's array over its answer; None if it has none."""
    values: Sequence[Any] | None = row.get(name)
    if values is not None and len(values) != len(row["token_ids"]):
        raise ValueError(f"{name} has {len(values)} values for {len(row['token_ids'])} tokens")
    return None if values is None else values[begin:]


def step(update: int, found: Sequence[Row]) -> Step | None:
    """What prime-rl's training pass computed of these rows; None if they have none of it.

    Clip state 1 is `is_masked_high`, -1 another token with `is_masked`. None, too, of rlplay's own exports, whose
    numbers are those of an update's last optimizer step.
    """
    begins, kl = _begins(found), "mismatch_kl"
    logprobs = _flat(found, begins, "trainer_logprobs", np.float32)
    if logprobs is None or _own(found):
        return None
    inside = _flat(found, begins, "loss_mask", np.uint8)
    flat = {name: _flat(found, begins, name, np.float32) for name in (kl, "is_masked", "is_masked_high")}
    masked, high, clips = flat["is_masked"], flat["is_masked_high"], None
    if masked is not None and high is not None and not np.isnan(masked).all():
        clips = np.where(high == 1, 1, np.where(masked == 1, -1, 0)).astype(np.int8)
    means = {f"{name}/mean": mean_inside(flat[name], inside) for name in (kl, "is_masked")}
    return Step(
        update=update, step=0, steps=1, rows=np.arange(len(found), dtype=np.int32), logprobs=logprobs,
        importance_ratio=_flat(found, begins, "importance_ratio", np.float32), clip_state=clips,
        metrics={name: mean for name, mean in means.items() if math.isfinite(mean)},
    )  # fmt: skip


def _own(found: Sequence[Row]) -> bool:
    """Whether rlplay has written the rows."""
    return "dloss_dlogp" in found[0]


def _begins(found: Sequence[Row]) -> list[int]:
    return [row["prompt_len"] if "prompt_len" in row else _first(row["loss_mask"]) for row in found]


def _reward(row: Row) -> Any:
    """An answer's reward: one number, or the same at each of its tokens."""
    found = row.get("rewards")
    return next((x for x in reversed(found) if x is not None), None) if isinstance(found, list) else row.get("reward")


def _flat(found: Sequence[Row], begins: Sequence[int], name: str, dtype: Any) -> Array | None:
    """An array of the rows over their answers' tokens, flat; None if a row lacks it."""
    pieces = [_part(row, name, begin) for row, begin in zip(found, begins, strict=True)]
    if any(piece is None for piece in pieces):
        return None
    return numbers_of([x for piece in pieces for x in piece or ()]).astype(dtype)


def _first(mask: Sequence[Any]) -> int:
    return next((place for place, inside in enumerate(mask) if inside), len(mask))

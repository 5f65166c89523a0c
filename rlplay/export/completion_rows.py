"""One row per completion, with the names of prime-rl's token exports and a few of our own.

Arrays are aligned with `token_ids`, prompt first; None where a number does not exist (prompts) or was not computed.
`inference_logprobs` are from sampling, by the program that sampled. `trainer_logprobs` and the columns computed from
them are from the last optimizer step that saw the token; `new_logprobs` are from after the update. `prob_delta` is the
probability after the update minus the one at sampling. `is_masked` marks tokens whose surrogate gradient clipping made
zero. That includes the dual clip (`clip_state` 2), which is neither `is_masked_high` nor `is_masked_low`.

Ours: `trainer_step, group_id, sample_idx, prompt, columns, completion, prompt_len, reward, rewards, gold, extra, role,
truncated, token_text, ref_logprobs, new_logprobs, values, returns, implicit_rewards, dloss_dlogp, clip_state,
correction, teacher_logprobs, distillation, sampler_version`, which counts the updates that the weights had had.
`columns` are the dataset's other columns by name. `step` is rlplay's update, and `trainer_step` another trainer's
number of its last optimizer step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rlplay.trace.lenses import LENSES
from rlplay.trace.records import Array, Sampled, Scored
from rlplay.trace.update import Update

SCHEMA_VERSION = 1
CREDITED = (
    "advantages", "ref_logprobs", "values", "returns", "implicit_rewards", "correction", "teacher_logprobs",
)  # fmt: skip
"""Columns that are fields of `Credited`."""


def rows(update: Update) -> Iterator[dict[str, Any]]:
    """The fields of each completion of a sampled update; NaN and None both mean that there is no number."""
    sampled = update.sampled
    assert sampled is not None
    columns = token_columns(update)
    steps = None if update.finished is None else update.finished.trainer_steps
    for row, group in enumerate(sampled.group.tolist()):
        span = slice(int(sampled.offsets[row]), int(sampled.offsets[row + 1]))
        asked = slice(int(sampled.prompt_offsets[group]), int(sampled.prompt_offsets[group + 1]))
        prompt_len = asked.stop - asked.start
        ids = sampled.prompt_ids[asked].tolist() + sampled.token_ids[span].tolist()
        line: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "step": update.number,
            "trainer_step": None if steps is None else steps[1],
            "export_sequence_idx": row,
            "group_id": group,
            "sample_idx": int((sampled.group[:row] == group).sum()),
            "prompt": sampled.prompts[group],
            "columns": sampled.columns[group],
            "completion": "".join(sampled.texts[span]),
            "prompt_len": prompt_len,
            "truncated": bool(sampled.truncated[row]),
            "sampler_version": None if sampled.versions is None else int(sampled.versions[row]),
            **_scores(update.scored, row),
            "token_ids": ids,
            "position_ids": list(range(len(ids))),
            "token_text": sampled.prompt_texts[asked] + sampled.texts[span],
            "loss_mask": [False] * prompt_len + sampled.mask[span].astype(bool).tolist(),
        }
        for name, values in columns.items():
            line[name] = None if values is None else [None] * prompt_len + values[span].tolist()
        yield line


def _scores(scored: Scored | None, row: int) -> dict[str, Any]:
    if scored is None:
        return {"reward": None, "rewards": None, "gold": None, "extra": None, "role": None}
    return {
        "reward": float(scored.rewards[row]),
        "rewards": {name: float(part[row]) for name, part in scored.parts.items()},
        "gold": {name: float(score[row]) for name, score in scored.gold.items()},
        "extra": {name: values[row] for name, values in scored.extra.items()},
        "role": (scored.roles[row] or None) if scored.roles else None,
    }


def token_columns(update: Update) -> dict[str, Array | None]:
    """Per-token columns over all T completion tokens, None for those that were not computed."""
    sampled, credited = update.sampled, update.credited
    assert isinstance(sampled, Sampled)
    inference = sampled.old_logprobs if sampled.sampling_logprobs is None else sampled.sampling_logprobs
    columns: dict[str, Array | None] = {"inference_logprobs": inference, "entropy": sampled.entropy}
    for name in CREDITED:
        columns[name] = None if credited is None else getattr(credited, name)
    trainer = update.latest_step("logprobs")
    clip = update.latest_step("clip_state")
    columns["trainer_logprobs"] = trainer
    columns["distillation"] = update.latest_step("distillation")
    columns["importance_ratio"] = update.latest_step("importance_ratio")
    columns["dloss_dlogp"] = update.latest_step("dloss_dlogp")
    columns["new_logprobs"] = update.new_logprobs()
    gap = None if trainer is None else trainer - inference
    columns["log_importance_ratio"] = gap
    columns["mismatch_kl"] = None if gap is None else np.expm1(gap) - gap
    columns["prob_delta"] = LENSES["prob_delta"].values(update)
    columns["clip_state"] = clip
    columns["is_masked"] = None if clip is None else clip != 0
    columns["is_masked_high"] = None if clip is None else clip == 1
    columns["is_masked_low"] = None if clip is None else clip == -1
    return columns

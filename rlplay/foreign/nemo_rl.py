"""NeMo-RL's `train_data_stepN.jsonl` in its log folder, as the answers of an update.

`Logger.log_batched_dict_as_jsonl` writes a line per answer (nemo_rl/utils/logger.py at 0275e75), and each value is a
list of one: the slice of the batch. Tokens are padded on the right to `input_lengths`; `token_loss_mask` is 1 where the
policy wrote, so the prompt ends at its first 1. `prev_logprobs` are the policy's before the update, and
`generation_logprobs` the sampler's, both at the token that they are of (algorithms/grpo.py). With dynamic sampling
`rewards` are those of all prompts that were sampled, and `filtered_rewards` those of the answers that were trained on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlplay.foreign.answer_rows import Row
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.foreign.json_lines import lines_of
from rlplay.foreign.token_rows import TokenAnswer, tokened
from rlplay.record.format import Rollouts
from rlplay.trace.records import Array

_LOGPROBS = {"old_logprobs": "prev_logprobs", "sampling_logprobs": "generation_logprobs"}
_ARRAYS = ("token_ids", "token_loss_mask", "advantages", *_LOGPROBS.values())


def read(path: Path) -> list[Row]:
    """The answers in a file, with its padding cut off. Raises ForeignRunError if it holds no tokens."""
    found = []
    for row in lines_of(path):
        if "token_ids" not in row:
            raise ForeignRunError(f"{path} holds {_instead(row)}")
        one = {name: value[0] if isinstance(value, list) and value else value for name, value in row.items()}
        if one["token_ids"]:  # else a reward of a prompt that dynamic sampling has left out
            found.append(one | {name: _cut(one[name], one["input_lengths"]) for name in _ARRAYS if name in one})
    return found


def _cut(values: Any, length: int) -> Array:
    return np.asarray(values, dtype=np.float64)[:length]


def _instead(row: Row) -> str:
    if "responses_create_params" in row or "full_result" in row:
        return "NeMo-Gym's results and no tokens; env.should_log_nemo_gym_responses=false writes what rlplay reads"
    return "texts and no tokens: those of a distillation, or of a NeMo-RL before 0.4, whose successors write them"


def rollouts(update: int, found: Sequence[Row]) -> Rollouts:
    """NeMo-RL's rows; answers whose tokens are the same before the first own one are a group."""
    known = [name for name, theirs in _LOGPROBS.items() if _computed(found, theirs)]
    if len(known) == 2 and all(np.array_equal(*(row[name] for name in _LOGPROBS.values())) for row in found):
        known.remove("sampling_logprobs")  # a copy is nothing to hold the sampler against
    begins = [_begin(row["token_loss_mask"]) for row in found]
    asked = [tuple(row["token_ids"][:begin].astype(int).tolist()) for row, begin in zip(found, begins, strict=True)]
    headings = _headings(found, asked)
    answers = []
    for row, begin, prompt in zip(found, begins, asked, strict=True):
        own, counts = row["token_loss_mask"][begin:] == 1, float(row.get("sample_loss_mask", 1) != 0)
        arrays: dict[str, Any] = {name: np.where(own, row[_LOGPROBS[name]][begin:], np.nan) for name in known}
        answers.append(
            TokenAnswer(
                prompt, headings[prompt], prompt, row["token_ids"][begin:].astype(int).tolist(),
                arrays=arrays | {"mask": own, "advantages": counts * np.where(own, row["advantages"][begin:], 0.0)},
                column={} if "agent_ref" not in row else {"agent_ref": json.dumps(row["agent_ref"])},
            )
        )  # fmt: skip
    return tokened(update, answers, {"reward": [row.get("filtered_rewards", row["rewards"]) for row in found]})


def _begin(mask: Array) -> int:
    return int((mask == 1).argmax()) if (mask == 1).any() else len(mask)


def _computed(found: Sequence[Row], name: str) -> bool:
    """Whether these log-probabilities are on record: NeMo-RL writes zeros where it had no use for them."""
    return all(name in row for row in found) and any(
        (row[name][row["token_loss_mask"] == 1] != 0).any() for row in found
    )


def _headings(found: Sequence[Row], asked: Sequence[Any]) -> dict[Any, str]:
    """The text of each prompt: the messages with which all of its answers begin."""
    spoken: dict[Any, list[list[str]]] = {}
    for row, prompt in zip(found, asked, strict=True):
        texts = row.get("content") or []
        spoken.setdefault(prompt, []).append([texts] if isinstance(texts, str) else [str(each) for each in texts])
    return {prompt: "\n".join(_common(each)) for prompt, each in spoken.items()}


def _common(conversations: Sequence[list[str]]) -> list[str]:
    """What all begin with, without the last text, which is an answer's."""
    first, last = min(conversations), max(conversations)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[: max(0, min(same, len(first) - 1))]

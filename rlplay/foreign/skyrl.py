"""SkyRL's training batches, `dumped_data/global_step_N_training_input.pkl`, which `trainer.dump_data_batch` asks for.

The file is a pickle of one `TrainingInputBatch`: tensors by name, as bytes with a shape and a type. Sequences are
padded on the left; what is of the answers alone is as wide as the longest of them, and `response_mask` is 1 at its
tokens, on the right or, before, on the left (skyrl/backends/skyrl_train/training_batch.py, train/dataset/preprocess.py
of 0.3.0).
Rewards and the prompts' ids were taken out of the batch before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlplay.foreign.answer_rows import Row
from rlplay.foreign.pickled import Made
from rlplay.foreign.token_rows import TokenAnswer, tokened
from rlplay.foreign.torch_file import pickle_file, torch_bytes
from rlplay.record.format import Rollouts
from rlplay.trace.records import Array

_PACKAGES = ("skyrl", "skyrl_train")
_NUMBERS = re.compile(r"^(bool|u?int\d+|float\d+)$")
_ARRAYS = {
    "old_logprobs": "action_log_probs", "sampling_logprobs": "rollout_logprobs",
    "ref_logprobs": "base_action_log_probs", "advantages": "advantages", "values": "values",
}  # fmt: skip


def read(path: Path) -> list[Row]:
    """One row for each answer. Raises ValueError if the file holds no such batch."""
    try:
        held = pickle_file(path, _PACKAGES)
        state = held.arguments[1] if isinstance(held, Made) else held
        tensors = {name: _tensor(each) for name, each in state["batch_dict"].items() if _is_tensor(each)}
        metadata = state.get("metadata") or {}
        count = len(tensors["sequences"]) - int(metadata.get("pad_size") or 0)
        groups = _groups(metadata.get("policy_prompt_boundaries"), count)
    except (LookupError, TypeError, AttributeError):
        raise ValueError("it holds no training batch") from None
    return [{name: each[i] for name, each in tensors.items()} | {"group": groups[i]} for i in range(count)]


def rollouts(update: int, found: Sequence[Row]) -> Rollouts:
    """The answers of a batch. Without numbers of prompts, those with the same tokens are one."""
    known = [name for name, theirs in _ARRAYS.items() if theirs in found[0]]
    if {"old_logprobs", "sampling_logprobs"} <= {*known} and all(
        np.array_equal(row["action_log_probs"], row["rollout_logprobs"]) for row in found
    ):
        known.remove("sampling_logprobs")  # a copy is nothing to hold the sampler against
    answers = []
    for row in found:
        answer = row["response_mask"] > 0
        length = int(answer.sum())
        ids = row["sequences"][row["attention_mask"] > 0].astype(int)
        own = row["loss_mask"][answer] > 0
        arrays: dict[str, Any] = {name: np.where(own, row[_ARRAYS[name]][answer], np.nan) for name in known}
        if "advantages" in arrays:
            arrays["advantages"] = np.nan_to_num(arrays["advantages"])
        prompt = ids[: len(ids) - length].tolist()
        group = tuple(prompt) if row["group"] is None else row["group"]
        answers.append(TokenAnswer(group, "", prompt, ids[len(ids) - length :].tolist(), arrays=arrays | {"mask": own}))
    return tokened(update, answers, {})


def _is_tensor(described: Any) -> bool:
    return isinstance(described, Mapping) and described.get("format", "numpy") in ("numpy", "torch")


def _tensor(described: Mapping[str, Any]) -> Array:
    """A tensor as the batch describes it; bfloat16 is a file of torch.save within the file."""
    if described.get("format") == "torch":
        found: Array = np.asarray(torch_bytes(described["data"], _PACKAGES))
        return found
    if not _NUMBERS.match(described["dtype"]):
        raise ValueError(f"it holds {described['dtype'][:20]!r}, which are no numbers")
    return np.frombuffer(described["data"], dtype=described["dtype"]).reshape(described["shape"])


def _groups(boundaries: Any, count: int) -> list[int | None]:
    """The prompt of each answer, where the batch says so: by the first answer of each and the one after its last."""
    found: list[int | None] = [None] * count
    for number, (begin, end) in enumerate(boundaries or ()):
        found[begin:end] = [number] * (min(end, count) - begin)
    return found

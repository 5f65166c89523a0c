"""What slime and miles write with `--dump-details FOLDER`, as the answers of an update.

`rollout_data/N.pt` holds all samples of a rollout (`Sample.to_dict`: tokens, response_length, reward, loss_mask,
rollout_log_probs, status, …; slime/observability/rollout_data_utils.py at 4c4adbb, miles/ray/rollout/debug_data.py at
1d61f32). `train_data/N_RANK.pt` follows after its training pass, with what that computed of them over the answers'
tokens: in slime a row per sample (train_data_utils.py at d92cb5d), in miles and an older slime columns of each rank's
share (train_dump_utils.py at 429eb3d), in which `raw_reward` alone is of the whole batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlplay.foreign.answer_rows import Row, heading, is_number
from rlplay.foreign.token_rows import TokenAnswer, tokened
from rlplay.foreign.torch_file import torch_file
from rlplay.record.format import Rollouts
from rlplay.trace.records import Array

_PACKAGES = ("slime", "miles")
_TRAINED = {"old_logprobs": "log_probs", "ref_logprobs": "ref_log_probs", "entropy": "entropy", "values": "values",
            "advantages": "advantages"}  # fmt: skip
"""What a training pass computed, by its name in `Rollouts`."""
_SAMPLED, _TRAINING = "sampled", "training"
_BATCH = ("raw_reward", "micro_batch_indices", "num_microbatches", "global_batch_sizes")


def read(path: Path) -> list[Row]:
    """One row for each sample, with what kind of file it is of. Raises ValueError if the file is no such dump."""
    held = torch_file(path, _PACKAGES)
    try:
        return _rows(held, path.parent.name == "rollout_data")
    except (LookupError, TypeError, AttributeError):
        raise ValueError("it holds no samples") from None


def _rows(held: Any, of_rollout: bool) -> list[Row]:
    if of_rollout:
        return [{"of": _SAMPLED, **sample} for sample in held["samples"]]
    rows = held["samples"] if "samples" in held else _transposed(held["rollout_data"])
    raw = held.get("raw_reward", held.get("rollout_data", {}).get("raw_reward"))
    return [{"of": _TRAINING, **row, "all_raw_rewards": raw} for row in rows]


def _transposed(columns: Mapping[str, Any]) -> list[Row]:
    """The rows of one rank's columns, as far as these have a value for each of its samples."""
    count = len(columns["response_lengths"])
    kept = {
        name: values for name, values in columns.items()
        if name not in _BATCH and isinstance(values, list | tuple | np.ndarray) and len(values) == count
    }  # fmt: skip
    indices = kept.pop("sample_indices", [None] * count)
    return [{name: values[i] for name, values in kept.items()} | {"sample_index": indices[i]} for i in range(count)]


def rollouts(update: int, found: Sequence[Row]) -> Rollouts:
    """The samples, with what the training pass computed of them."""
    samples = [row for row in found if row["of"] == _SAMPLED]
    trained = [row for row in found if row["of"] == _TRAINING]
    rows = _matched(samples, trained)
    sampled = [_whole(each.get("rollout_log_probs"), each["response_length"]) for each in samples]
    columns: dict[str, list[Array | None]] = {
        name: [_whole(row.get(theirs), each["response_length"]) for row, each in zip(rows, samples, strict=True)]
        for name, theirs in _TRAINED.items()
    }
    # What the policy has not computed itself is nothing to hold the sampler against.
    columns["sampling_logprobs" if _known(columns["old_logprobs"]) else "old_logprobs"] = sampled
    arrays = {name: values for name, values in columns.items() if _known(values)}
    answers = []
    for place, sample in enumerate(samples):
        length = sample["response_length"]
        begin, ids = len(sample["tokens"]) - length, [int(i) for i in sample["tokens"]]
        own, counts = _own(sample), 0.0 if sample.get("remove_sample") else 1.0
        numbers = {name: _or_nan(values[place], length) for name, values in arrays.items()}
        numbers = {name: np.where(own, values, np.nan) for name, values in numbers.items()}
        if "advantages" in numbers:
            numbers["advantages"] = np.where(own, numbers["advantages"] * counts, 0.0)
        answers.append(
            TokenAnswer(
                _group(sample, ids[:begin]), heading(sample["prompt"]) if sample.get("prompt") else "", ids[:begin],
                ids[begin:], arrays=numbers | {"mask": own}, truncated=_status(sample) == "truncated",
                column={} if not isinstance(sample.get("label"), str | int | float) else {"label": sample["label"]},
            )
        )  # fmt: skip
    return tokened(update, answers, *_rewards(samples, trained))


def _matched(samples: Sequence[Row], trained: Sequence[Row]) -> list[Row]:
    """For each sample the rows of the training pass as one: ranks may hold copies, and not all have every number."""
    by: dict[Any, Row] = {}
    for row in trained:
        joined = by.setdefault(_key(row, row.get("tokens")), {})
        for name, values in row.items():
            old = joined.get(name)
            if old is None or (name in _TRAINED.values() and len(values) > len(old)):
                joined[name] = values
    return [by.get(_key({"sample_index": each.get("index")}, each["tokens"]), {}) for each in samples]


def _key(row: Row, tokens: Any) -> Any:
    """What a sample has in both files: its number and its tokens, as one rollout may leave several with a number."""
    return row.get("sample_index"), () if tokens is None else tuple(int(i) for i in tokens)


def _whole(values: Any, length: int) -> Array | None:
    """Numbers of an answer's tokens; None if there are none, or only a share of them, as context parallelism leaves."""
    if values is None:
        return None
    found = np.asarray(values, dtype=np.float64).reshape(-1)
    return found if len(found) == length else None


def _known(values: Sequence[Array | None]) -> bool:
    return any(each is not None and len(each) for each in values)


def _or_nan(values: Array | None, length: int) -> Array:
    return np.full(length, np.nan) if values is None else values


def _own(sample: Row) -> Array:
    """Which tokens of an answer the policy wrote; of a sample that was removed its loss mask does not say."""
    mask = sample.get("loss_mask")
    if mask is None or sample.get("remove_sample"):
        return np.ones(sample["response_length"], dtype=bool)
    own: Array = np.asarray(mask) == 1
    return own


def _group(sample: Row, prompt: list[int]) -> Any:
    number = sample.get("group_index")
    return tuple(prompt) if number is None else int(number)


def _status(sample: Row) -> str:
    status = sample.get("status")
    return str(status if isinstance(status, str) else next(iter(getattr(status, "arguments", ())), ""))


def _rewards(samples: Sequence[Row], trained: Sequence[Row]) -> tuple[dict[str, list[Any]], dict[str, float]]:
    """Rewards with their weights. Of several by name the training pass says which counted; else they are tracked."""
    each = [sample.get("reward") for sample in samples]
    raw = next((row["all_raw_rewards"] for row in trained if row["all_raw_rewards"] is not None), None)
    if not any(isinstance(value, dict) for value in each):
        return {"reward": each}, {"reward": 1.0}
    parts = [value if isinstance(value, dict) else {} for value in each]
    names = [str(n) for n in parts[0] if all(part.get(n) is not None and is_number(part[n]) for part in parts)]
    found: dict[str, list[Any]] = {name: [part[name] for part in parts] for name in names}
    if raw is not None and len(raw) == len(samples):
        return {"reward": [float(value) for value in raw]} | found, {"reward": 1.0} | dict.fromkeys(names, 0.0)
    return found, dict.fromkeys(names, 1.0 if len(names) == 1 else 0.0)

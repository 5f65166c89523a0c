"""What verl trained on in a step, as plain arrays: from the older trainer's tensors, or from the newer one's queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rlplay.record.verl import compat
from rlplay.trace.records import Array

_NUMBERS = {
    "old_logprobs": "old_log_probs", "sampling_logprobs": "rollout_log_probs", "ref_logprobs": "ref_log_prob",
    "entropy": "entropy", "values": "values", "advantages": "advantages", "correction": "rollout_is_weights",
}  # fmt: skip
"""verl's names of the numbers of tokens, by those of `Recorder.rollouts`."""


@dataclass
class Answer:
    """One answer: its tokens, and the numbers of these that verl knows."""

    group: str
    """What answers to the same prompt share."""
    prompt_ids: list[int]
    ids: list[int]
    mask: Array
    """1 where the policy wrote the token."""
    kept: Array
    """Whether the token is in the loss: verl may leave out those that the sampler was too far from."""
    score: float
    numbers: dict[str, Array] = field(default_factory=dict)
    tracked: dict[str, float] = field(default_factory=dict)
    """Other scores, which were not trained."""
    ground_truth: str | None = None


def of_tensors(batch: Any, limit: int, rejects: bool = False) -> tuple[list[Answer], int]:
    """Answers of a `DataProto`, in whole groups up to about `limit` of them, and how many there are in all.

    Prompts are padded on the left, responses on the right; `attention_mask` says how far. `rejects`: tokens are taken
    out of `response_mask` that the sampler was too far from.
    """
    tensors, others = batch.batch, batch.non_tensor_batch
    width, known = tensors["responses"].shape[-1], set(tensors.keys())
    present = _numpy(tensors["attention_mask"]) > 0
    groups = [str(each) for each in others["uid"]] if "uid" in others else [str(i) for i in range(len(present))]
    names = [name for name in batch.meta_info.get("reward_extra_keys", ()) if name in others]
    found = []
    for row in chosen(groups, limit):
        asked, said = present[row, :-width], present[row, -width:]
        prompts, responses = _numpy(tensors["prompts"][row]), _numpy(tensors["responses"][row])
        kept = _numpy(tensors["response_mask"][row])[said] > 0
        answer = Answer(
            groups[row], prompts[asked].astype(int).tolist(), responses[said].astype(int).tolist(),
            kept.astype(np.uint8), kept, float(_numpy(tensors["token_level_scores"][row]).sum()),
            {ours: _numpy(tensors[theirs][row])[said] for ours, theirs in _NUMBERS.items() if theirs in known},
            {name: float(others[name][row]) for name in names if _is_number(others[name][row])},
            _ground_truth(others["reward_model"][row]) if "reward_model" in others else None,
        )  # fmt: skip
        found.append(answer)
    return _own(found) if rejects else found, len(groups)


def of_queue(module: Any, batch: Any, limit: int, rejects: bool = False) -> tuple[list[Answer], int]:
    """Answers that a `KVBatchMeta` refers to, the same way; its keys are "{uid}_{rollout}_{output}"."""
    keys = [key for key, tag in zip(batch.keys, batch.tags, strict=True) if not tag.get("is_padding", False)]
    groups = [key.rsplit("_", 2)[0] for key in keys]
    rows = chosen(groups, limit)
    fields = {name: _rows(column) for name, column in _columns(compat.queued(module, batch, [keys[i] for i in rows]))}
    found = []
    for place, row in enumerate(rows):
        ids = _numpy(fields["responses"][place]).astype(int)
        models = fields.get("reward_model")
        numbers = {name: _numpy(fields[theirs][place]) for name, theirs in _NUMBERS.items() if theirs in fields}
        kept = _numpy(fields["response_mask"][place]) > 0
        answer = Answer(
            groups[row], _numpy(fields["prompts"][place]).astype(int).tolist(), ids.tolist(), kept.astype(np.uint8),
            kept, float(_numpy(fields["rm_scores"][place]).sum()),
            {name: values for name, values in numbers.items() if len(values) == len(ids)},
            ground_truth=None if models is None else _ground_truth(models[place]),
        )  # fmt: skip
        found.append(answer)
    return _own(found) if rejects else found, len(keys)


def _own(answers: Sequence[Answer]) -> list[Answer]:
    """The answers with the tokens that verl left out of their masks as the policy's.

    A tool's have no log-probability of the sampler, which is 0 in verl. Where an answer that is not left out as a whole
    has such a token, a token of another with 0 is taken for a tool's, too; else no tool spoke, and it is the policy's,
    which was all but certain of it.
    """
    unsaid = [each.numbers["sampling_logprobs"] == 0 for each in answers]
    tools = any((there & ~each.kept).any() and each.kept.any() for each, there in zip(answers, unsaid, strict=True))
    masks = [each.kept | ~there | (not tools) for each, there in zip(answers, unsaid, strict=True)]
    return [replace(each, mask=mask.astype(np.uint8)) for each, mask in zip(answers, masks, strict=True)]


def chosen(groups: Sequence[str], limit: int) -> list[int]:
    """The places of the answers that are kept: whole groups, in their order, until there are `limit` answers."""
    kept: list[str] = []
    count = 0
    for name in dict.fromkeys(groups):
        size = groups.count(name)
        if kept and count + size > limit:
            break
        kept.append(name)
        count += size
    return [place for place, name in enumerate(groups) if name in kept]


def _columns(fields: Any) -> list[tuple[str, Any]]:
    return [(name, fields[name]) for name in fields.keys()]  # noqa: SIM118  a TensorDict is no mapping


def _rows(column: Any) -> Any:
    """The rows of a column: of a nested tensor its parts, of any other what it holds."""
    if getattr(column, "is_nested", False):
        return column.unbind()
    return column.tolist() if hasattr(column, "tolist") and not hasattr(column, "detach") else column


def _numpy(values: Any) -> Array:
    """A tensor's numbers; bfloat16 as float32."""
    found: Array = values.detach().float().cpu().numpy() if _is_low(values) else values.detach().cpu().numpy()
    return found


def _is_low(values: Any) -> bool:
    return str(values.dtype) in ("torch.bfloat16", "torch.float16")


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.number | np.bool_)


def _ground_truth(model: Any) -> str | None:
    found = model.get("ground_truth") if hasattr(model, "get") else None
    return None if found is None else str(found)

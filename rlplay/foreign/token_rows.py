"""Answers of another trainer whose tokens are known, as `Rollouts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlplay.record.format import Rollouts
from rlplay.trace.records import Array

_TYPES: dict[str, Any] = {"mask": np.uint8} | dict.fromkeys(
    ("old_logprobs", "sampling_logprobs", "entropy", "ref_logprobs", "advantages", "values", "teacher_logprobs"),
    np.float32,
)
"""The arrays over an answer's tokens that a trainer may know, with their types in `Rollouts`."""


@dataclass(frozen=True)
class TokenAnswer:
    """An answer whose tokens are known."""

    group: Any
    """What answers to the same prompt share."""
    prompt: str
    """A text for headings; "": that of the prompt's tokens."""
    prompt_ids: Sequence[int]
    ids: Sequence[int]
    prompt_texts: Sequence[str] | None = None
    texts: Sequence[str] | None = None
    """None: a token's text is its id."""
    arrays: Mapping[str, Any] = field(default_factory=dict)
    """Numbers of its tokens by their name in `Rollouts`; None where the trainer does not know them."""
    column: Mapping[str, Any] = field(default_factory=dict)
    truncated: bool | None = None
    version: int | None = None
    """Updates that the weights had had which sampled it."""


def tokened(
    update: int, answers: Sequence[TokenAnswer], rewards: Mapping[str, Sequence[Any] | Array],
    weights: Mapping[str, float] | None = None,
) -> Rollouts:  # fmt: skip
    """The answers of an update. Raises ValueError if an array does not fit its tokens."""
    numbers = {key: number for number, key in enumerate(dict.fromkeys(each.group for each in answers))}
    first: dict[Any, TokenAnswer] = {}
    for each in answers:
        first.setdefault(each.group, each)
    asked = [list(each.prompt_texts or map(placeholder, each.prompt_ids)) for each in first.values()]
    cut, versions = [each.truncated for each in answers], [each.version for each in answers]
    arrays: dict[str, Any] = {name: _joined(answers, name) for name in _TYPES}
    scores = {name: numbers_of(values) for name, values in rewards.items()}
    return Rollouts(
        update=update,
        prompts=[each.prompt or "".join(texts) for each, texts in zip(first.values(), asked, strict=True)],
        columns=[dict(each.column) for each in first.values()],
        prompt_ids=np.array([i for each in first.values() for i in each.prompt_ids], dtype=np.int32),
        prompt_lengths=np.array([len(each.prompt_ids) for each in first.values()], dtype=np.int64),
        prompt_texts=[text for texts in asked for text in texts],
        group=np.array([numbers[each.group] for each in answers], dtype=np.int32),
        lengths=np.array([len(each.ids) for each in answers], dtype=np.int64),
        token_ids=np.array([i for each in answers for i in each.ids], dtype=np.int32),
        texts=[text for each in answers for text in each.texts or map(placeholder, each.ids)],
        truncated=None if None in cut else np.array(cut, dtype=np.uint8),
        versions=None if None in versions else np.array(versions, dtype=np.int32),
        rewards=scores,
        reward_weights=dict(weights or dict.fromkeys(scores, 1.0)),
        **arrays,
    )


def placeholder(number: int) -> str:
    """What stands for the text of a token of which only the id is known."""
    return f"⟨{number}⟩"


def numbers_of(values: Sequence[Any] | Array) -> Array:
    """Float64; NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _joined(answers: Sequence[TokenAnswer], name: str) -> Array | None:
    """An array of the answers, flat; None if one of them lacks it."""
    found = []
    for answer in answers:
        values = answer.arrays.get(name)
        if values is None:
            return None
        if len(values) != len(answer.ids):
            raise ValueError(f"{name} has {len(values)} values for {len(answer.ids)} tokens")
        found.append(values if isinstance(values, np.ndarray) else numbers_of(values))
    joined: Array = np.concatenate(found or [np.zeros(0)]).astype(_TYPES[name])
    return joined

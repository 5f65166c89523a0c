"""One answer of a trainer on this process, and the answers of an update as arguments of `Recorder.rollouts`."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from rlplay.record.trl.texts import Texts
from rlplay.trace.records import Array


@dataclass
class Seen:
    """An answer, its prompt, and what is known of both. Where ids are known, texts are decoded when it is written."""

    group: Any  # equal for the answers to one prompt
    prompt: str | None = None  # for the heading; None: the decoded `prompt_ids`
    words: Sequence[str] = ()  # stand for tokens where there are no ids
    ids: Array | None = None
    prompt_ids: Array | None = None
    mask: Array | None = None  # of the tokens in the loss
    role: str = ""
    rewards: dict[str, float] = field(default_factory=dict)
    cut: bool | None = None  # whether it ran into the length limit; None: it was not sampled, or nothing says so
    columns: dict[str, Any] = field(default_factory=dict)
    tokens: dict[str, Array] = field(default_factory=dict)  # numbers of its tokens, as `Recorder.rollouts` names them

    def __len__(self) -> int:
        return len(self.words) if self.ids is None else len(self.ids)


S = TypeVar("S", bound=Seen)


def joined(parts: Iterable[tuple[list[S], int]]) -> list[S]:
    """The answers of several batches, each with its number of groups; those of a later one follow the earlier's."""
    found: list[S] = []
    before = 0
    for answers, groups in parts:
        for answer in answers:
            answer.group += before
        found += answers
        before += groups
    return found


def firsts(seen: Sequence[S]) -> list[S]:
    """The first answer of each group, in their order."""
    known: dict[Any, S] = {}
    for each in seen:
        known.setdefault(each.group, each)
    return list(known.values())


def flat(seen: Sequence[Seen], name: str) -> Array | None:
    """Numbers of the answers' tokens, in their order; None if an answer lacks them."""
    known = bool(seen) and all(name in each.tokens for each in seen)
    return np.concatenate([each.tokens[name] for each in seen]) if known else None


def arguments(seen: Sequence[Seen], weights: Mapping[str, float], texts: Texts) -> dict[str, Any]:
    """These answers for `Recorder.rollouts`; what is not known of all is left out. `weights` are those of rewards."""
    asked = firsts(seen)
    place = {each.group: number for number, each in enumerate(asked)}
    pieces = [each.words or [""] if each.ids is None else texts.decode_each(each.ids) for each in seen]
    masks = [np.ones(len(p), np.uint8) if e.mask is None else e.mask for e, p in zip(seen, pieces, strict=True)]
    names = dict.fromkeys(name for each in seen for name in each.rewards)
    known = {
        "prompts": [texts.whole(np.asarray(each.prompt_ids)) if each.prompt is None else each.prompt for each in asked],
        "columns": [each.columns for each in asked],
        "group": [place[each.group] for each in seen],
        "lengths": [len(each) for each in pieces],
        "texts": [text for each in pieces for text in each],
        "mask": np.concatenate(masks) if masks else [],
        "rewards": {name: [each.rewards.get(name, np.nan) for each in seen] for name in names},
        "reward_weights": weights,
    }
    prompts = [each.prompt_ids for each in asked if each.prompt_ids is not None]
    if asked and len(prompts) == len(asked):
        known["prompt_ids"] = np.concatenate(prompts)
        known["prompt_lengths"] = [len(ids) for ids in prompts]
        known["prompt_texts"] = [text for ids in prompts for text in texts.decode_each(ids)]
    ids = [each.ids for each in seen if each.ids is not None]
    if seen and len(ids) == len(seen):
        known["token_ids"] = np.concatenate(ids)
    if all(each.cut is not None for each in seen):
        known["truncated"] = [bool(each.cut) for each in seen]
    if any(each.role for each in seen):
        known["roles"] = [each.role for each in seen]
    return known | {name: flat(seen, name) for name in (seen[0].tokens if seen else ())}


def cut(ids: Array, ends: Container[int]) -> bool:
    """Whether a sampled answer stops without one of the tokens that end it."""
    return not len(ids) or int(ids[-1]) not in ends


def numpy(values: Any) -> Array:
    """A tensor, or what is like an array, on the CPU; numbers of any width of floating point in float32."""
    if not isinstance(values, Tensor):
        return np.asarray(values)
    values = values.detach().cpu()
    return np.asarray(values.float() if values.is_floating_point() else values)

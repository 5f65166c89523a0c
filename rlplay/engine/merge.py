"""Scored batches taken apart by group and put together again, as dynamic sampling does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor

from rlplay.engine.batch import Batch, Prompts
from rlplay.trace.records import Array, Scored

_SAMPLED = ("ids", "old_logprobs", "entropy", "top_ids", "top_logprobs", "environment")
_REPORTED = ("sampling_logprobs", "sampling_top_logprobs")
_PER_TOKEN = (*_SAMPLED, *_REPORTED, "step_scores", "step_ends")
_PER_COMPLETION = ("lengths", "truncated", "rewards", "outcomes")
_PER_EPISODE = ("replies", "states", "chances")


def selected(batch: Batch, groups: Tensor) -> Batch:
    """A scored batch with some of its groups only, numbered anew."""
    rows = torch.isin(batch.group, groups.to(batch.group.device)).nonzero().flatten()
    chosen = groups.tolist()
    prompts = Prompts(
        [batch.prompts.examples[g] for g in chosen], batch.prompts.ids[groups], batch.prompts.mask[groups]
    )
    values = {name: getattr(batch, name) for name in (*_PER_TOKEN, *_PER_COMPLETION)}
    fields = {name: value[rows.to(value.device)] for name, value in values.items() if value is not None}
    group = torch.searchsorted(groups.to(batch.group.device), batch.group[rows])
    keep = rows.tolist()
    completions = [batch.completions[i] for i in keep]
    episodes: dict[str, Any] = {
        name: {new: known[old] for new, old in enumerate(keep) if old in known}
        for name in _PER_EPISODE
        for known in [getattr(batch, name)]
    }
    answering = [batch.answering[i] for i in keep] if batch.answering else []
    scored = None if batch.scored is None else _scored_rows(batch.scored, keep)
    return replace(batch, prompts=prompts, group=group, completions=completions, scored=scored, **fields,
                   answering=answering, parts=scored.parts if scored else {}, **episodes)  # fmt: skip


def joined(batches: list[Batch]) -> Batch:
    """Scored batches of one update as one, padded to the widest prompt and the widest completion."""
    first = batches[0]
    fields: dict[str, Any] = {name: torch.cat([getattr(b, name) for b in batches]) for name in _PER_COMPLETION}
    width = max(b.ids.shape[1] for b in batches)
    for name in _there(first, _PER_TOKEN):
        fields[name] = torch.cat([_widened(getattr(b, name), width) for b in batches])
    starts = np.cumsum([0] + [len(b.prompts.ids) for b in batches])
    group = torch.cat([b.group + int(start) for b, start in zip(batches, starts, strict=False)])
    scored = _joined_scores([b.scored for b in batches if b.scored is not None])
    return replace(
        first, prompts=_joined_prompts([b.prompts for b in batches]), group=group, scored=scored, parts=scored.parts,
        completions=[text for b in batches for text in b.completions],
        answering=[each for b in batches for each in b.answering], **_episodes(batches), **fields,
    )  # fmt: skip


def whole(shares: list[Batch]) -> Batch:
    """The batch whose completions were sampled in `shares`, each of neighbours that answer the same prompts."""
    if len(shares) == 1:
        return shares[0]
    width = max(share.ids.shape[1] for share in shares)
    fields: dict[str, Any] = {
        name: torch.cat([_widened(getattr(share, name), width) for share in shares])
        for name in _there(shares[0], (*_SAMPLED, *_REPORTED))
    }
    fields |= {name: torch.cat([getattr(s, name) for s in shares]) for name in ("group", "lengths", "truncated")}
    return replace(shares[0], **_episodes(shares), **fields)


def _episodes(batches: list[Batch]) -> dict[str, Any]:
    """What is known of each episode, by completion, of all of them."""
    before = np.cumsum([0] + [len(batch.group) for batch in batches]).tolist()
    return {
        name: {row + n: each for b, n in zip(batches, before, strict=False) for row, each in getattr(b, name).items()}
        for name in _PER_EPISODE
    }


def _there(batch: Batch, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if getattr(batch, name) is not None]


def _widened(values: Tensor, width: int) -> Tensor:
    missing = values.new_zeros(len(values), width - values.shape[1], *values.shape[2:])
    return torch.cat([values, missing], dim=1)


def _joined_prompts(prompts: list[Prompts]) -> Prompts:
    width = max(p.ids.shape[1] for p in prompts)

    def wide(values: Tensor) -> Tensor:
        return torch.nn.functional.pad(values, (width - values.shape[1], 0))

    return Prompts(
        [example for p in prompts for example in p.examples],
        torch.cat([wide(p.ids) for p in prompts]),
        torch.cat([wide(p.mask) for p in prompts]),
    )


def _scored_rows(scored: Scored, rows: list[int]) -> Scored:
    parts = {name: values[rows] for name, values in scored.parts.items()}
    gold = {name: values[rows] for name, values in scored.gold.items()}
    extra = {name: [values[row] for row in rows] for name, values in scored.extra.items()}
    return msgspec.structs.replace(scored, rewards=scored.rewards[rows], parts=parts, gold=gold, extra=extra)


def _joined_scores(scores: list[Scored]) -> Scored:
    def cat(arrays: list[dict[str, Array]]) -> dict[str, Array]:
        return {name: np.concatenate([a[name] for a in arrays]) for name in arrays[0]}

    rewards = np.concatenate([s.rewards for s in scores])
    parts, gold = cat([s.parts for s in scores]), cat([s.gold for s in scores])
    sizes = [len(s.rewards) for s in scores]
    columns = dict.fromkeys(name for s in scores for name in s.extra)
    extra = {
        name: [value for s, n in zip(scores, sizes, strict=True) for value in s.extra.get(name, [None] * n)]
        for name in columns
    }
    given = dict.fromkeys(name for s in scores for name in s.logged)
    logged = {name: float(np.mean([s.logged[name] for s in scores if name in s.logged])) for name in given}
    return msgspec.structs.replace(scores[0], rewards=rewards, parts=parts, gold=gold, extra=extra, logged=logged)

"""One answer of an update as an update by itself: a token's numbers then need no pass over a million others."""

from __future__ import annotations

from typing import TypeVar

import msgspec
import numpy as np

from rlplay.trace.answers import per_answer
from rlplay.trace.records import OF_TOKENS, Array, Record, Sampled, Scored
from rlplay.trace.update import Update

R = TypeVar("R", bound=Record)


def one_answer(update: Update, completion: int) -> Update:
    """The records of `completion` alone; its tokens count from 0, and every lens gives them the values of `update`.

    Prompts and groups stay those of the whole batch, and so do the metrics of an optimizer step without this answer.
    """
    sampled, alone = update.sampled, Update(update.number, update.step_word)
    assert sampled is not None
    own, here = slice(*sampled.offsets[completion : completion + 2].tolist()), slice(completion, completion + 1)
    alone.sampled = msgspec.structs.replace(
        _cut(sampled, own), group=sampled.group[here], truncated=sampled.truncated[here],
        offsets=np.array([0, own.stop - own.start]),
        states={0: sampled.states[completion]} if completion in sampled.states else {},
        versions=None if sampled.versions is None else sampled.versions[here],
    )  # fmt: skip
    alone.scored = None if update.scored is None else _scored(update.scored, here)
    alone.credited = None if update.credited is None else _cut(update.credited, own)
    alone.shares = None if update.shares is None else update.shares[own]
    alone.searched = update.searched
    for step in update.steps:
        count = int(update.once(_own_tokens)[step.rows].sum()) if step.tokens is None else step.tokens
        alone.steps.append(msgspec.structs.replace(_among(step, sampled, completion), tokens=count, margins=None))
    alone.finished = None if update.finished is None else _among(update.finished, sampled, completion)
    return alone


def _cut(record: R, own: slice) -> R:
    """The record with its token arrays cut to `own`."""
    arrays = {name: getattr(record, name) for name in OF_TOKENS[type(record)]}
    return msgspec.structs.replace(
        record, **{name: values[own] for name, values in arrays.items() if values is not None}
    )


def _among(record: R, sampled: Sampled, completion: int) -> R:
    """A record over some completions, its `rows`, cut to one of them; without tokens if it is not among them."""
    rows: Array = record.rows  # type: ignore[attr-defined]
    ends, at = np.cumsum(np.diff(sampled.offsets)[rows]), np.flatnonzero(rows == completion)
    own = slice(0, 0) if not len(at) else slice(int(ends[at[0] - 1]) if at[0] else 0, int(ends[at[0]]))
    return msgspec.structs.replace(_cut(record, own), rows=np.zeros(len(at), dtype=np.int32))


def _scored(scored: Scored, here: slice) -> Scored:
    parts, gold = ({name: values[here] for name, values in table.items()} for table in (scored.parts, scored.gold))
    extra = {name: column[here] for name, column in scored.extra.items()}
    return msgspec.structs.replace(
        scored, rewards=scored.rewards[here], parts=parts, gold=gold, extra=extra, roles=scored.roles[here]
    )


def _own_tokens(update: Update) -> Array:
    """How many tokens of each answer the policy has sampled, int [N]."""
    assert update.sampled is not None
    return per_answer(update.sampled, update.sampled.mask == 1)

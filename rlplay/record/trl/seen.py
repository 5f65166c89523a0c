"""The answers that a trainer of any kind shows in passing: in the inputs of its loss, or to its reward functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from rlplay.record.recorder import Recorder
from rlplay.record.trl.answer import Seen, arguments, cut, numpy
from rlplay.record.trl.guard import Call
from rlplay.record.trl.texts import Texts
from rlplay.trace.records import Array

_PIECE = re.compile(r"\s*\S+|\s+")
_ROLES = ("chosen", "rejected")


def in_loss(inputs: Any, ends: Container[int]) -> list[Seen]:
    """The answers in the inputs of a loss, by the names that trainers of transformers and TRL give them.

    Those are `prompt_ids` and `completion_ids` with their masks; `input_ids` with `labels`, with `completion_mask` or
    with `logits_to_keep`; or `chosen_input_ids` and `rejected_input_ids` with their labels.
    """
    if not isinstance(inputs, Mapping):
        return []
    if "prompt_ids" in inputs and "completion_ids" in inputs:
        found = list(_sampled(inputs, ends))
    elif "chosen_input_ids" in inputs and "rejected_input_ids" in inputs:
        return [each for role in _ROLES for each in _covered(inputs, f"{role}_", role)]
    else:
        found = list(_covered(inputs))
    rewards = inputs.get("rewards")
    if not isinstance(rewards, Tensor) or rewards.ndim != 1 or len(rewards) != len(found):
        return found
    return [replace(each, rewards={"reward": float(reward)}) for each, reward in zip(found, rewards, strict=True)]


def _sampled(inputs: Mapping[str, Any], ends: Container[int]) -> Iterator[Seen]:
    names = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")
    arrays = [numpy(inputs.get(name, np.ones_like(numpy(inputs[name.replace("mask", "ids")])))) for name in names]
    for asked, inside, ids, mask in zip(*arrays, strict=True):
        prompt, length = asked[inside.astype(bool)], int(np.flatnonzero(mask)[-1]) + 1 if mask.any() else 0
        yield replace(_seen(prompt, ids[:length], None), cut=cut(ids[:length], ends))


def _covered(inputs: Mapping[str, Any], prefix: str = "", role: str = "") -> Iterator[Seen]:
    """Rows of tokens; an answer goes from the first token that the loss covers to the last."""
    rows = inputs.get(f"{prefix}input_ids")
    if not isinstance(rows, Tensor) or rows.ndim != 2:
        return
    ids, covered = numpy(rows), _in_loss(inputs, prefix, rows)
    real = numpy(inputs.get(f"{prefix}attention_mask", np.ones_like(ids)))
    for number, (row, inside, whole) in enumerate(zip(ids, covered, real, strict=True)):
        places = np.flatnonzero(inside & (whole != 0)) if whole.shape == row.shape else np.flatnonzero(inside)
        if len(places):
            begin, end = int(places[0]), int(places[-1]) + 1
            prompt = row[:begin][whole[:begin] != 0] if whole.shape == row.shape else row[:begin]
            mask = inside[begin:end].astype(np.uint8)
            yield _seen(prompt, row[begin:end], mask, role, number if role else None)


def _in_loss(inputs: Mapping[str, Any], prefix: str, rows: Tensor) -> Array:
    """Which tokens the loss covers, bool [N, L]; none if nothing says so."""
    labels, mask, keep = (inputs.get(f"{prefix}{name}") for name in ("labels", "completion_mask", "logits_to_keep"))
    if isinstance(labels, Tensor) and labels.shape == rows.shape:
        return np.asarray(numpy(labels) != -100)
    if isinstance(mask, Tensor) and mask.shape == rows.shape:
        return np.asarray(numpy(mask) != 0)
    begin = rows.shape[1] - keep if isinstance(keep, int) else rows.shape[1]
    return np.broadcast_to(np.arange(rows.shape[1]) >= begin, rows.shape)


def _seen(prompt: Array, ids: Array, mask: Array | None, role: str = "", group: int | None = None) -> Seen:
    key = tuple(prompt.tolist()) if group is None else group
    return Seen(key, ids=ids, prompt_ids=prompt, mask=mask, role=role)


def rewarded(method: Any, call: Call, found: Any, trainer: Any, texts: Texts) -> list[Seen]:
    """The answers that a method scored, by the names of its arguments, with the rewards that it returned.

    These are one for each answer, or one for each answer and reward function; of all processes, if they are more.
    """
    values, options = call
    given = inspect.signature(method).bind(*values, **options).arguments
    prompts, completions = given["prompts"], given["completions"]
    ids = given.get("completion_ids_list") or [None] * len(completions)
    scores = numpy(found)
    first = trainer.accelerator.process_index * len(completions) if len(scores) > len(completions) else 0
    names = [_name(each) for each in getattr(trainer, "reward_funcs", None) or []]
    seen = []
    for number, (prompt, said, tokens) in enumerate(zip(prompts, completions, ids, strict=True)):
        score = np.atleast_1d(scores[first + number])
        titles = names if len(names) == len(score) else ["reward"] if len(score) == 1 else []
        kept = None if tokens is None else _unpadded(np.array(tokens, dtype=np.int64), texts.pad)
        words = _PIECE.findall(_text(said)) or [""] if kept is None else ()
        rewards = dict(zip(titles, map(float, score), strict=False))
        short = None if kept is None else cut(kept, texts.ends)
        seen.append(Seen(repr(prompt), _text(prompt), words, kept, rewards=rewards, cut=short))
    return seen


def write(recorder: Recorder, update: int, seen: Sequence[Seen], weights: Mapping[str, float], texts: Texts) -> None:
    """Record these answers as the update's; what is not known of all of them is left out."""
    if not recorder.keeps(update):
        return
    place = {key: number for number, key in enumerate(dict.fromkeys(each.group for each in seen))}
    seen = [seen[row] for row in recorder.chosen(np.array([place[each.group] for each in seen]))]
    recorder.rollouts(update, **arguments(seen, weights, texts))


def mean_reward(seen: Sequence[Seen], weights: Mapping[str, float]) -> float | None:
    """The mean over the answers of their weighted rewards; None if not all have one."""
    if not seen or not all(each.rewards for each in seen):
        return None
    totals = [sum(weights.get(name, 1.0) * reward for name, reward in each.rewards.items()) for each in seen]
    return float(np.mean(totals))


def weights_of(trainer: Any) -> dict[str, float]:
    """The weights of a trainer's rewards by name; empty if it has none."""
    names = [_name(each) for each in getattr(trainer, "reward_funcs", None) or []]
    weights = getattr(trainer, "reward_weights", None)
    return {} if weights is None else dict(zip(names, map(float, weights), strict=False))


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", "") or type(function).__name__)


def _unpadded(ids: Array, pad: int | None) -> Array:
    real = np.flatnonzero(ids != pad)
    return ids[: int(real[-1]) + 1 if len(real) else 0]


def _text(said: Any) -> str:
    """A text as it is, or the contents of messages."""
    if isinstance(said, str):
        return said
    return "\n".join(str(turn.get("content", "")) for turn in said if isinstance(turn, dict))

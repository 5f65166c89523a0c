"""Whether stored records hang together: lengths, kinds of numbers and ranges, checked once, when a file is read.

Everything that draws, exports or counts may then index without looking again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rlplay.trace.clock import check_steps
from rlplay.trace.records import (
    LEFT_OUT,
    OF_TOKENS,
    AnyRecord,
    Array,
    Changed,
    Credited,
    Evaluated,
    Finished,
    Sampled,
    Scored,
    Searched,
    Staged,
    Stepped,
    Survey,
    Withheld,
)
from rlplay.trace.text import quote
from rlplay.trace.update import PHASES, Update

_WHOLE, _REAL = "biu", "biuf"
"""The kinds of numpy's types: whole numbers, and all numbers."""


def check_record(record: AnyRecord) -> None:
    """Raises ValueError, a few words, if the parts of a record do not fit together."""
    check = _CHECKS.get(type(record))
    if check is not None:
        check(record)


def check_update(update: Update) -> None:
    """Raises ValueError, a few words, if the records of an update, each checked, do not fit together."""
    sampled = update.sampled
    if sampled is None:
        if update.scored is not None or update.credited is not None or update.steps:
            raise ValueError("its tokens are missing")
        return
    answers, tokens, groups = len(sampled.group), len(sampled.token_ids), len(sampled.prompts)
    candidates = sampled.top_ids.shape[1]
    if (scored := update.scored) is not None:
        _sizes(scored, {"rewards": (answers,)})
        for name, values in {**scored.parts, **scored.gold}.items():
            _array(name, values, (answers,))
        if any(len(values) != answers for values in scored.extra.values()) or len(scored.roles) not in (0, answers):
            raise ValueError("a column of its rewards has another length than its answers")
    if (credited := update.credited) is not None:
        flat = dict.fromkeys(OF_TOKENS[Credited], (tokens,))
        _sizes(credited, flat | _candidates(tokens, candidates) | {"group_mean": (groups,)})
        _sizes(credited, {"group_std": (groups,)})
    for step in update.steps:
        size = _covered(step.rows, sampled)
        _sizes(step, dict.fromkeys(OF_TOKENS[Stepped], (size,)))
    if (finished := update.finished) is not None:
        size = _covered(finished.rows, sampled)
        _sizes(finished, dict.fromkeys(_FINISHED, (size,)) | ({"top_logprobs": (size, candidates)} if size else {}))


_FINISHED = "logprobs", "favourite_ids", "favourite_logprobs"


def _covered(rows: Array, sampled: Sampled) -> int:
    """How many tokens the completions `rows` have."""
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < len(sampled.group):
        raise ValueError("its rows name an answer that it does not have")
    return int(np.diff(sampled.offsets)[rows].sum()) if len(rows) else 0


def _array(name: str, values: Any, shape: tuple[int | None, ...], kinds: str = _REAL) -> None:
    """`None` in `shape` is any length."""
    fits = len(values.shape) == len(shape) and all(
        wanted in (None, found) for wanted, found in zip(shape, values.shape, strict=True)
    )
    if not fits:
        wanted = " × ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{name} has the shape {' × '.join(map(str, values.shape)) or 'of one number'}, not {wanted}")
    if values.dtype.kind not in kinds:
        raise ValueError(f"{name} holds {values.dtype} numbers")


def _sizes(record: Any, shapes: Mapping[str, tuple[int | None, ...]], kinds: str = _REAL) -> None:
    for name, shape in shapes.items():
        values = getattr(record, name)
        if values is not None:
            _array(name, values, shape, kinds)


def _offsets(name: str, offsets: Array, pieces: int, total: int) -> None:
    _array(name, offsets, (pieces + 1,), _WHOLE)
    if offsets[0] != 0 or offsets[-1] != total or (np.diff(offsets.astype(np.int64)) < 0).any():
        raise ValueError(f"{name} do not divide {total} tokens into {pieces} parts")


def _lengths(record: Any, lengths: Mapping[str, int]) -> None:
    for name, length in lengths.items():
        if len(getattr(record, name)) != length:
            raise ValueError(f"{name} has {len(getattr(record, name))} entries, not {length}")


def _sampled(record: Sampled) -> None:
    _sizes(record, {"token_ids": (None,), "prompt_ids": (None,), "group": (None,)}, _WHOLE)
    tokens, prompt_tokens, groups = len(record.token_ids), len(record.prompt_ids), len(record.prompts)
    answers = len(record.group)
    _offsets("offsets", record.offsets, answers, tokens)
    _offsets("prompt_offsets", record.prompt_offsets, groups, prompt_tokens)
    _lengths(record, {"texts": tokens, "prompt_texts": prompt_tokens, "columns": groups})
    if answers and not 0 <= int(record.group.min()) <= int(record.group.max()) < groups:
        raise ValueError("group names a prompt that it does not have")
    _sizes(record, {"mask": (tokens,), "truncated": (answers,), "top_ids": (tokens, None)}, _WHOLE)
    _sizes(record, dict.fromkeys(("old_logprobs", "entropy", "sampling_logprobs"), (tokens,)))
    _sizes(record, dict.fromkeys(("top_logprobs", "sampling_top_logprobs"), record.top_ids.shape))
    _sizes(record, {"versions": (answers,)}, _WHOLE)
    if any(not 0 <= row < answers for row in record.states) or record.position < 0:
        raise ValueError("states name an answer that it does not have")
    _survey(record.survey)


def _survey(survey: Survey | None) -> None:
    if survey is not None:
        states, actions = len(survey.states), len(survey.actions)
        _sizes(survey, {"logprobs": (states, actions), "values": (states,), "action_values": (states, actions)})


def _scored(record: Scored) -> None:
    _sizes(record, {"rewards": (None,)})
    for values in {**record.parts, **record.gold}.values():
        _array("a part of the reward", values, record.rewards.shape)


def _credited(record: Credited) -> None:
    _sizes(record, {"advantages": (None,), "group_mean": (None,)})
    flat = dict.fromkeys(OF_TOKENS[Credited], record.advantages.shape)
    top = _candidates(len(record.advantages), None)
    _sizes(record, flat | top | {"group_std": record.group_mean.shape})


def _candidates(tokens: int, candidates: int | None) -> dict[str, tuple[int | None, ...]]:
    """The shapes of the fields of `Credited` that are of candidates."""
    return dict.fromkeys(("ref_top_logprobs", "teacher_top_logprobs"), (tokens, candidates))


def _stepped(record: Stepped) -> None:
    _sizes(record, {"rows": (None,)}, _WHOLE)
    _sizes(record, {"logprobs": (None,), "margins": (None,)})
    _sizes(record, dict.fromkeys(OF_TOKENS[Stepped], record.logprobs.shape))
    _sizes(record, {"clip_state": record.logprobs.shape, "left_out": record.logprobs.shape}, _WHOLE)
    if record.left_out is not None and len(record.left_out) and int(record.left_out.max()) >= len(LEFT_OUT):
        raise ValueError("left_out names a reason that there is not")
    if record.margins is not None and 2 * len(record.margins) > len(record.rows):
        raise ValueError("it has more margins than pairs of answers")
    if record.step < 0:
        raise ValueError("a step has a number below 0")


def _finished(record: Finished) -> None:
    _sizes(record, {"rows": (None,)}, _WHOLE)
    _sizes(record, {"logprobs": (None,)})
    _sizes(record, dict.fromkeys(_FINISHED, record.logprobs.shape))
    _sizes(record, {"favourite_ids": record.logprobs.shape}, _WHOLE)
    if (record.favourite_ids is None) != (record.favourite_logprobs is None):
        raise ValueError("a likeliest token and its probability are not recorded together")
    if len(record.rows):
        _sizes(record, {"top_logprobs": (len(record.logprobs), None)})
    _survey(record.survey)
    check_steps(record.trainer_steps)


def _evaluated(record: Evaluated) -> None:
    prompts = len(record.prompts)
    _sizes(record, {"rewards": (prompts,)})
    _lengths(record, {"completions": prompts} | ({"columns": prompts} if record.columns else {}))


def _searched(record: Searched) -> None:
    if record.kind not in ("cg", "line"):
        raise ValueError(f"a search of an unknown kind {quote(record.kind)}")


def _phased(record: Changed | Staged) -> None:
    if record.phase not in PHASES:
        raise ValueError(f"a change in an unknown phase {quote(record.phase)}")


def _withheld(record: Withheld) -> None:
    if record.tokens != sorted({*record.tokens}) or (record.tokens and record.tokens[0] < 0):
        raise ValueError("the tokens whose credit is taken away are not ascending places")


_CHECKS: dict[type[Any], Callable[[Any], None]] = {
    Sampled: _sampled, Scored: _scored, Credited: _credited, Stepped: _stepped, Finished: _finished,
    Evaluated: _evaluated, Searched: _searched, Changed: _phased, Staged: _phased,
    Withheld: _withheld,
}  # fmt: skip

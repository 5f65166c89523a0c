"""Writes a recording from arrays: `begin`, and for each update `rollouts`, one `step` per optimizer step, `end`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from rlplay.record.format import MAGIC, AnyFrame, Begun, Ended, Heldout, Remark, Rollouts, Setting, Step, pack, part
from rlplay.trace.clock import check_steps
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import Array, CorrectionRule, spans
from rlplay.trace.text import quote

_ARRAYS: dict[str, tuple[str, Any]] = {
    "group_ids": ("G", np.int64), "group_mean": ("G", np.float64), "group_std": ("G", np.float64),
    "truncated": ("N", np.uint8), "versions": ("N", np.int32), "token_ids": ("T", np.int32), "mask": ("T", np.uint8),
} | dict.fromkeys(
    ("old_logprobs", "sampling_logprobs", "entropy", "ref_logprobs", "advantages", "values", "correction",
     "teacher_logprobs"),
    ("T", np.float32),
)  # fmt: skip
"""Axis and type of the arrays of `Rollouts` that are taken as they are."""


class Recorder:
    """Records one process of a training run in the folder `path`, which must not hold a recording yet.

    Of each update it keeps whole groups until `completions` answers are reached (of this process), and tokens only of
    every `every`-th update, from the first on; `end` is always kept. Methods raise ValueError if arrays do not fit
    together and OSError if the disk fails.
    """

    def __init__(self, path: str | Path, completions: int = 64, every: int = 1, rank: int = 0, ranks: int = 1) -> None:
        self.path = Path(path)
        if completions < 1 or every < 1 or not 0 <= rank < ranks:
            raise ValueError("completions, every and ranks are 1 or more, and rank is less than ranks")
        if part(self.path, rank).exists() or (rank == 0 and self.path.is_file()):
            raise FileExistsError(f"{path} holds a recording already; choose another path")
        self.path.mkdir(parents=True, exist_ok=True)
        self._limit, self._every, self._rank, self._ranks = completions, every, rank, ranks
        self._file: BinaryIO = part(self.path, rank).open("xb")
        self._file.write(MAGIC)
        self._end = len(MAGIC)  # of the last whole frame
        self._rows = np.zeros(0, dtype=np.int64)  # the answers that are kept, by their row in the trainer's batch
        self._lengths = np.zeros(0, dtype=np.int64)  # of all answers of the update
        self._update = 0  # that these answers are of

    def begin(
        self,
        source: str,
        settings: SomeSettings,
        *,
        title: str = "",
        model: str = "",
        parameters: int = 0,
        seed: int = 0,
        device: str = "",
        dtype: str = "",
        versions: Mapping[str, str] | None = None,
        run_id: str = "",
        ends: Mapping[int, str] | None = None,
    ) -> None:
        """What this run is. With several processes `run_id` must be the same in all of them.

        `ends` are the ids of the tokens that end an answer, with their texts.
        """
        self._write(
            Begun(
                run_id=run_id or uuid.uuid4().hex, rank=self._rank, ranks=self._ranks, source=source,
                title=title or source, settings=_plain(dict(settings)), model=model, parameters=parameters, seed=seed,
                device=device, dtype=dtype, versions=dict(versions or {}), ends=dict(ends or {}),
            )
        )  # fmt: skip

    def keeps(self, update: int) -> bool:
        """Whether the tokens of this update are recorded."""
        return (update - 1) % self._every == 0

    def rollouts(
        self,
        update: int,
        *,
        prompts: Sequence[str],
        group: ArrayLike,
        lengths: ArrayLike,
        texts: Sequence[str],
        rewards: Mapping[str, ArrayLike],
        reward_weights: Mapping[str, float] | None = None,
        columns: Sequence[Mapping[str, Any]] | None = None,
        prompt_ids: ArrayLike | None = None,
        prompt_lengths: ArrayLike | None = None,
        prompt_texts: Sequence[str] | None = None,
        temperature: float | None = None,
        roles: Sequence[str] | None = None,
        correction_rule: CorrectionRule | None = None,
        **arrays: ArrayLike | None,
    ) -> None:
        """The answers of an update: G prompts, N answers, T tokens, flat; fields as in `format.Rollouts`.

        `arrays` are any of its other arrays by name, such as `token_ids`; TypeError for an unknown name. `advantages`
        are [T], or [N] with one for all tokens of an answer. Leave out what the trainer does not know.
        """
        if not self.keeps(update):
            return
        if unknown := sorted(arrays.keys() - _ARRAYS):
            raise TypeError(f"rollouts takes no {unknown[0]}; its arrays are {', '.join(_ARRAYS)}")
        of, each = _ints("group", group), _ints("lengths", lengths, 0)
        _fits("group", of, len(each))
        total = int(each.sum())
        if len(of) and (of.min() < 0 or of.max() >= len(prompts)):
            raise ValueError(
                f"group names a prompt from {of.min()} to {of.max()}, but there are {len(prompts)} prompts"
            )
        rows = self.chosen(of)
        groups, kept_of = np.unique(of[rows], return_inverse=True)
        tokens = _spans(each, rows)
        advantages = arrays.get("advantages")
        if advantages is not None and len(np.asarray(advantages)) == len(of) != total:
            arrays["advantages"] = np.repeat(np.asarray(advantages), each)
        if prompt_lengths is None and (prompt_ids is not None or prompt_texts is not None):
            raise ValueError("prompt_lengths is missing; prompt_ids and prompt_texts are split by it")
        sizes = None if prompt_lengths is None else _ints("prompt_lengths", prompt_lengths, 0)
        _fits("prompt_lengths", prompts if sizes is None else sizes, len(prompts))
        inside = None if sizes is None else _spans(sizes, groups)
        asked = 0 if sizes is None else int(sizes.sum())
        axes = {"T": (tokens, total), "N": (rows, len(of)), "G": (groups, len(prompts))}
        parts: dict[str, Any] = {}
        for name, values in arrays.items():
            axis, dtype = _ARRAYS[name]
            index, count = axes[axis]
            parts[name] = _part(name, values, index, dtype, count)
        self._write(
            Rollouts(
                update=update,
                prompts=_strings("prompts", prompts, groups, len(prompts)),
                columns=[
                    _plain(dict(row))
                    for row in _picked("columns", columns or [{}] * len(prompts), groups, len(prompts))
                ],
                prompt_ids=_part("prompt_ids", prompt_ids, inside, np.int32, asked),
                prompt_lengths=None if sizes is None else sizes[groups],
                prompt_texts=None
                if prompt_texts is None or inside is None
                else _strings("prompt_texts", prompt_texts, inside, asked),
                group=kept_of.astype(np.int32),
                lengths=each[rows],
                texts=_strings("texts", texts, tokens, total),
                temperature=temperature,
                rewards={k: _taken(k, v, rows, np.float64, len(of)) for k, v in rewards.items()},
                reward_weights={k: float((reward_weights or {}).get(k, 1.0)) for k in rewards},
                roles=None if roles is None else _strings("roles", roles, rows, len(of)),
                correction_rule=correction_rule,
                **parts,
            )
        )
        self._rows, self._lengths, self._update = rows, each, update

    def step(
        self,
        update: int,
        step: int,
        steps: int,
        *,
        rows: ArrayLike,
        logprobs: ArrayLike,
        importance_ratio: ArrayLike | None = None,
        clip_state: ArrayLike | None = None,
        dloss_dlogp: ArrayLike | None = None,
        values: ArrayLike | None = None,
        tokens: int | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """One optimizer step on the answers `rows` of `rollouts`; token arrays are flat over these, in their order.

        `step` counts from 0 within the update. `tokens`, which are in the loss, and `metrics` are of this process:
        readers add up the tokens and take the mean of the metrics.
        """
        if not self.keeps(update):
            return
        if update != self._update:
            raise ValueError(f"step is of update {update}, but the last rollouts are of update {self._update}")
        of = _ints("rows", rows)
        if len(of) and (of.min() < 0 or of.max() >= len(self._lengths)):
            raise ValueError(
                f"rows name answers from {of.min()} to {of.max()}, but there are {len(self._lengths)} answers"
            )
        where = np.flatnonzero(np.isin(of, self._rows))
        inside = _spans(self._lengths[of], where)
        total = int(self._lengths[of].sum())
        self._write(
            Step(
                update=update, step=step, steps=steps,
                rows=np.searchsorted(self._rows, of[where]).astype(np.int32),
                logprobs=_taken("logprobs", logprobs, inside, np.float32, total),
                importance_ratio=_part("importance_ratio", importance_ratio, inside, np.float32, total),
                clip_state=_part("clip_state", clip_state, inside, np.int8, total),
                dloss_dlogp=_part("dloss_dlogp", dloss_dlogp, inside, np.float32, total),
                values=_part("values", values, inside, np.float32, total),
                tokens=tokens,
                metrics={k: float(v) for k, v in (metrics or {}).items()},
            )
        )  # fmt: skip

    def end(
        self,
        update: int,
        metrics: Mapping[str, float],
        seconds: float = 0.0,
        trainer_steps: tuple[int, int] | None = None,
    ) -> None:
        """The update is over, with its numbers under TRL's names.

        `trainer_steps` are the numbers that the trainer itself gives its first and last optimizer step.
        """
        check_steps(trainer_steps)
        numbers = {k: float(v) for k, v in metrics.items()}
        self._write(Ended(update=update, metrics=numbers, seconds=seconds, trainer_steps=trainer_steps))

    def heldout(
        self,
        update: int,
        metrics: Mapping[str, float],
        prompts: Sequence[str] = (),
        completions: Sequence[str] = (),
        rewards: ArrayLike = (),
    ) -> None:
        """Numbers on held-out prompts after `update`; their names begin with eval_."""
        _fits("rewards", np.asarray(rewards), len(completions))
        self._write(
            Heldout(
                update=update, metrics={k: float(v) for k, v in metrics.items()}, prompts=list(prompts),
                completions=list(completions), rewards=np.asarray(rewards, dtype=np.float64),
            )
        )  # fmt: skip

    def changed(self, update: int, name: str, value: Any, previous: Any) -> None:
        """A setting changed; it holds from the start of `update`."""
        self._write(Setting(update=update, name=name, value=_plain(value), previous=_plain(previous)))

    def remark(self, update: int, text: str) -> None:
        """Say something about the recording, such as what it lacks from `update` on; one line."""
        self._write(Remark(update=update, text=text))

    def rows_of(self, update: int) -> list[int]:
        """The answers of `update` that are on record, by their rows in the trainer's batch; none if it is not."""
        return self._rows.tolist() if update == self._update else []

    def close(self) -> None:
        """Close the file; without this, nothing that was recorded is lost."""
        self._file.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reopen(self) -> None:
        """Go on after `close`; what a full disk cut short is overwritten. Raises OSError if the file is gone."""
        self._file.close()
        self._file = part(self.path, self._rank).open("r+b")
        self._file.truncate(self._end)
        self._file.seek(self._end)

    def _write(self, frame: AnyFrame) -> None:
        data = pack(frame)
        self._file.write(data)
        self._file.flush()
        self._end += len(data)

    def chosen(self, of: Array) -> Array:
        """The answers that `rollouts` keeps, where answer i is of group `of[i]`: int64, ascending.

        They are whole groups, in their order, until the limit is reached; at least one group.
        """
        kept: list[int] = []
        for group in dict.fromkeys(of.tolist()):
            rows = np.flatnonzero(of == group).tolist()
            if kept and len(kept) + len(rows) > self._limit:
                break
            kept += rows
        return np.array(sorted(kept), dtype=np.int64)


def _spans(lengths: Array, rows: Array) -> Array:
    """The flat indices of the entries that belong to `rows`, where row i has `lengths[i]` entries."""
    return spans(np.concatenate([[0], np.cumsum(lengths)]), rows)


def _ints(name: str, values: ArrayLike | None, low: int | None = None) -> Array:
    array = np.asarray(values, dtype=np.int64)
    if array.ndim != 1 or (low is not None and len(array) and array.min() < low):
        raise ValueError(f"{name} is a list of whole numbers{'' if low is None else f', {low} or more'}")
    return array


def _fits(name: str, values: Any, count: int) -> None:
    if len(values) != count:
        raise ValueError(f"{name} has {len(values)} entries, expected {count}")


def _taken(name: str, values: ArrayLike, index: Array, dtype: Any, count: int) -> Array:
    array = np.asarray(values, dtype=dtype)
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} axes, expected 1: flat, without padding")
    _fits(name, array, count)
    return array[index]


def _part(name: str, values: ArrayLike | None, index: Array | None, dtype: Any, count: int) -> Array | None:
    return None if values is None or index is None else _taken(name, values, index, dtype, count)


def _picked(name: str, values: Sequence[Any], index: Array, count: int) -> list[Any]:
    _fits(name, values, count)
    return [values[int(i)] for i in index]


def _strings(name: str, values: Sequence[str], index: Array, count: int) -> list[str]:
    found = _picked(name, values, index, count)
    wrong = next((each for each in found if not isinstance(each, str)), None)
    if wrong is not None:
        raise ValueError(f"{name} is a list of texts; it has {quote(wrong)}")
    return found


def _plain(value: Any, deeper: int = 32) -> Any:
    """A value if it is plain data that the format can hold, else its text; its type if it goes `deeper` than this."""
    if deeper == 0:
        return f"<{type(value).__name__}>"
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, bool | float | None) or (isinstance(value, int) and -(2**63) <= value < 2**64):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each, deeper - 1) for each in value]
    if isinstance(value, Mapping):
        return {_text(k): _plain(v, deeper - 1) for k, v in value.items()}
    return _text(value)


def _text(value: Any) -> str:
    return str(value).encode("utf-8", "replace").decode()

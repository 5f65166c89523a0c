"""Writes a recording from arrays: `begin`, and for each update `rollouts`, one `step` per optimizer step, `end`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from rlplay.record.format import MAGIC, AnyFrame, Begun, Ended, Heldout, Rollouts, Setting, Step, pack, part
from rlplay.trace.records import Array, spans


class Recorder:
    """Records one process of a training run in the folder `path`, which must not hold a recording yet.

    Of each update it keeps whole groups until `completions` answers are reached (of this process), and tokens only of
    every `every`-th update, from the first on; `end` is always kept. Methods raise ValueError if arrays do not fit
    together and OSError if the disk fails.
    """

    def __init__(self, path: str | Path, completions: int = 64, every: int = 1, rank: int = 0, ranks: int = 1) -> None:
        self.path = Path(path)
        if completions < 1 or every < 1 or not 0 <= rank < ranks:
            raise ValueError(f"completions and every are 1 or more, rank is 0 to {ranks - 1}")
        if part(self.path, rank).exists() or (rank == 0 and self.path.is_file()):
            raise FileExistsError(f"{path} holds a recording already; choose another path")
        self.path.mkdir(parents=True, exist_ok=True)
        self._limit, self._every, self._rank, self._ranks = completions, every, rank, ranks
        self._file: BinaryIO = part(self.path, rank).open("xb")
        self._file.write(MAGIC)
        self._rows = np.zeros(0, dtype=np.int64)  # the answers that are kept, by their row in the trainer's batch
        self._lengths = np.zeros(0, dtype=np.int64)  # of all answers of the update

    def begin(
        self,
        source: str,
        settings: Mapping[str, Any],
        *,
        title: str = "",
        model: str = "",
        parameters: int = 0,
        seed: int = 0,
        device: str = "",
        dtype: str = "",
        versions: Mapping[str, str] | None = None,
        run_id: str = "",
    ) -> None:
        """What this run is. With several processes `run_id` must be the same in all of them."""
        self._write(
            Begun(
                run_id=run_id or uuid.uuid4().hex, rank=self._rank, ranks=self._ranks, source=source,
                title=title or source, settings=dict(settings), model=model, parameters=parameters, seed=seed,
                device=device, dtype=dtype, versions=dict(versions or {}),
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
        token_ids: ArrayLike | None = None,
        columns: Sequence[Mapping[str, Any]] | None = None,
        group_ids: ArrayLike | None = None,
        group_mean: ArrayLike | None = None,
        group_std: ArrayLike | None = None,
        prompt_ids: ArrayLike | None = None,
        prompt_lengths: ArrayLike | None = None,
        prompt_texts: Sequence[str] | None = None,
        temperature: float | None = None,
        mask: ArrayLike | None = None,
        truncated: ArrayLike | None = None,
        old_logprobs: ArrayLike | None = None,
        sampling_logprobs: ArrayLike | None = None,
        entropy: ArrayLike | None = None,
        ref_logprobs: ArrayLike | None = None,
        advantages: ArrayLike | None = None,
        roles: Sequence[str] | None = None,
    ) -> None:
        """The answers of an update: G prompts, N answers, T tokens, flat; fields as in `format.Rollouts`.

        `advantages` are [T], or [N] with one for all tokens of an answer. Leave out what the trainer does not know.
        """
        if not self.keeps(update):
            return
        of, self._lengths = _ints("group", group), _ints("lengths", lengths, 0)
        _fits("group", of, len(self._lengths))
        total = int(self._lengths.sum())
        _fits("texts", texts, total)
        if len(of) and (of.min() < 0 or of.max() >= len(prompts)):
            raise ValueError(
                f"group names a prompt from {of.min()} to {of.max()}, but there are {len(prompts)} prompts"
            )
        self._rows = self._chosen(of)
        groups, kept_of = np.unique(of[self._rows], return_inverse=True)
        tokens = _spans(self._lengths, self._rows)
        broadcast = advantages is not None and len(np.asarray(advantages)) == len(of) != total
        each = None if advantages is None else np.repeat(np.asarray(advantages), self._lengths if broadcast else 1)
        sizes = None if prompt_lengths is None else _ints("prompt_lengths", prompt_lengths, 0)
        inside = None if sizes is None else _spans(sizes, groups)
        self._write(
            Rollouts(
                update=update,
                prompts=[prompts[int(g)] for g in groups],
                columns=[{k: _plain(v) for k, v in (columns[int(g)] if columns else {}).items()} for g in groups],
                group_ids=_part("group_ids", group_ids, groups, np.int64, len(prompts)),
                group_mean=_part("group_mean", group_mean, groups, np.float64, len(prompts)),
                group_std=_part("group_std", group_std, groups, np.float64, len(prompts)),
                prompt_ids=_part("prompt_ids", prompt_ids, inside, np.int32),
                prompt_lengths=None if sizes is None else sizes[groups],
                prompt_texts=None if prompt_texts is None or inside is None else [prompt_texts[int(i)] for i in inside],
                group=kept_of.astype(np.int32),
                lengths=self._lengths[self._rows],
                token_ids=_part("token_ids", token_ids, tokens, np.int32, total),
                texts=[texts[int(i)] for i in tokens],
                temperature=temperature,
                mask=_part("mask", mask, tokens, np.uint8, total),
                truncated=_part("truncated", truncated, self._rows, np.uint8, len(of)),
                old_logprobs=_part("old_logprobs", old_logprobs, tokens, np.float32, total),
                sampling_logprobs=_part("sampling_logprobs", sampling_logprobs, tokens, np.float32, total),
                entropy=_part("entropy", entropy, tokens, np.float32, total),
                ref_logprobs=_part("ref_logprobs", ref_logprobs, tokens, np.float32, total),
                rewards={k: _taken(k, v, self._rows, np.float64, len(of)) for k, v in rewards.items()},
                reward_weights={k: float((reward_weights or {}).get(k, 1.0)) for k in rewards},
                advantages=_part("advantages", each, tokens, np.float32, total),
                roles=None if roles is None else [roles[int(i)] for i in self._rows],
            )
        )

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
        tokens: int | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """One optimizer step on the answers `rows` of `rollouts`; token arrays are flat over these, in their order."""
        if not self.keeps(update):
            return
        of = _ints("rows", rows)
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
                tokens=tokens,
                metrics={k: float(v) for k, v in (metrics or {}).items()},
            )
        )  # fmt: skip

    def end(self, update: int, metrics: Mapping[str, float], seconds: float = 0.0) -> None:
        """The update is over, with its numbers under TRL's names."""
        self._write(Ended(update=update, metrics={k: float(v) for k, v in metrics.items()}, seconds=seconds))

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

    def close(self) -> None:
        """Close the file; without this, nothing that was recorded is lost."""
        self._file.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, frame: AnyFrame) -> None:
        self._file.write(pack(frame))
        self._file.flush()

    def _chosen(self, of: Array) -> Array:
        """The rows of whole groups, in their order, until the limit is reached; at least one group."""
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


def _taken(name: str, values: ArrayLike, index: Array, dtype: Any, count: int | None = None) -> Array:
    array = np.asarray(values, dtype=dtype)
    if count is not None:
        _fits(name, array, count)
    return array[index]


def _part(
    name: str, values: ArrayLike | None, index: Array | None, dtype: Any, count: int | None = None
) -> Array | None:
    return None if values is None or index is None else _taken(name, values, index, dtype, count)


def _plain(value: Any) -> Any:
    """A column's value if it is plain data, else its text."""
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return {str(k): _plain(v) for k, v in value.items()} if isinstance(value, dict) else str(value)

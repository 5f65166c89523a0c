"""Makes rlplay's records of one update from the frames that the processes of a trainer recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlplay.algorithms.settings import Settings
from rlplay.foreign.derived import ratio_and_clips, step_numbers
from rlplay.record.format import Ended, Rollouts, Step
from rlplay.trace.clock import check_steps
from rlplay.trace.records import LEFT_OUT, AnyRecord, Array, Credited, Finished, Sampled, Scored, Stepped, spans

LONGEST = 10**8
"""Tokens that no update has."""
MASKED = LEFT_OUT.index("the sampler's probability is too far from the policy's")
"""The reason of `LEFT_OUT` that a factor of 0 is."""


class GatheredBatch:
    """The answers of one update from all processes; prompts that several of them answered are one group."""

    def __init__(self, parts: Sequence[Rollouts]) -> None:
        """`parts` are in the order of the processes."""
        self._parts = parts
        self._first_rows = np.concatenate([[0], np.cumsum([len(part.group) for part in parts])]).astype(np.int64)
        ids: dict[Any, int] = {}
        self._owners: list[tuple[int, int]] = []  # for each group, the part and the group there that describe it
        groups = []
        for place, part in enumerate(parts):
            keys = [(place, g) for g in range(len(part.prompts))] if part.group_ids is None else part.group_ids.tolist()
            for g, key in enumerate(keys):
                if key not in ids:
                    ids[key] = len(ids)
                    self._owners.append((place, g))
            groups.append(np.array([ids[key] for key in keys], dtype=np.int32)[part.group])
        self.group = np.concatenate(groups)
        self.lengths: Array = np.concatenate([part.lengths for part in parts])
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths)])
        self.mask = self._tokens("mask", np.uint8, 1)
        self.old_logprobs = self._tokens("old_logprobs", np.float32, np.nan)
        self.advantages = self._tokens("advantages", np.float32, np.nan)
        self.correction = self._tokens("correction", np.float32, np.nan)

    def records(self, update: int, settings: Settings) -> list[AnyRecord]:
        """Answers, rewards and advantages."""
        found: list[AnyRecord] = [self._sampled(update, settings)]
        if scored := self._scored(update):
            found.append(scored)
            if credited := self._credited(update, scored):
                found.append(credited)
        return found

    def stepped(self, update: int, steps: Sequence[tuple[int, Step]], settings: Settings) -> Stepped:
        """One optimizer step, from the frames of the processes (each with its number)."""
        rows = np.concatenate([step.rows + self._first_rows[part] for part, step in steps]).astype(np.int32)
        index = spans(self.offsets, rows)
        logprobs = np.concatenate([step.logprobs for _, step in steps])
        first = steps[0][1]
        old, advantages, mask, lengths = (
            self.old_logprobs[index], self.advantages[index], self.mask[index], self.lengths[rows]
        )  # fmt: skip
        ratio, clips = ratio_and_clips(logprobs, old, advantages, mask, lengths, settings)
        own_ratio, own_clips = (
            _all([getattr(s, name) for _, s in steps]) for name in ("importance_ratio", "clip_state")
        )
        clips = own_clips if own_clips is not None else clips if np.isfinite(ratio).any() else None
        ratio = ratio if own_ratio is None else own_ratio
        numbers = step_numbers(ratio, clips, logprobs - old, advantages, mask, lengths, settings)
        factor, inside = self.correction[index], settings.surrogate_row.takes_correction
        per_epoch = max(1, settings.num_minibatches)
        return Stepped(
            update=update,
            step=first.step,
            epoch=first.step // per_epoch,
            epochs=max(1, first.steps // per_epoch),
            minibatch=first.step % per_epoch,
            minibatches=per_epoch,
            rows=rows,
            logprobs=logprobs,
            importance_ratio=ratio,
            clip_state=clips,
            dloss_dlogp=_all([s.dloss_dlogp for _, s in steps], len(logprobs)),
            values=_all([step.values for _, step in steps]),
            metrics=numbers | _means([step.metrics for _, step in steps]),
            tokens=None if first.tokens is None else sum(step.tokens or 0 for _, step in steps),
            left_out=None if inside or np.isnan(factor).all() else np.where(factor == 0, MASKED, 0).astype(np.uint8),
        )

    def _sampled(self, update: int, settings: Settings) -> Sampled:
        parts = self._parts
        has_prompts = all(part.prompt_lengths is not None for part in parts)
        prompts = [self._prompt(*owner) for owner in self._owners] if has_prompts else []
        texts = [text for part in parts for text in part.texts]
        ids = self._ids(texts)
        temperature = parts[0].temperature
        return Sampled(
            update=update,
            done=True,
            position=int(self.lengths.max(initial=0)),
            temperature=settings.temperature if temperature is None else temperature,
            prompts=[parts[part].prompts[g] for part, g in self._owners],
            prompt_ids=np.concatenate([ids for ids, _ in prompts]) if prompts else np.zeros(0, dtype=np.int32),
            prompt_offsets=np.concatenate([[0], np.cumsum([len(ids) for ids, _ in prompts])]).astype(np.int64)
            if prompts
            else np.zeros(len(self._owners) + 1, dtype=np.int64),
            prompt_texts=[text for _, texts in prompts for text in texts],
            columns=[parts[part].columns[g] for part, g in self._owners],
            group=self.group,
            offsets=self.offsets,
            token_ids=ids,
            texts=texts,
            mask=self.mask,
            old_logprobs=self.old_logprobs,
            entropy=self._tokens("entropy", np.float32, np.nan),
            top_ids=np.zeros((len(ids), 0), dtype=np.int32),
            top_logprobs=np.zeros((len(ids), 0), dtype=np.float32),
            truncated=self._answers("truncated", np.uint8, 0),
            sampling_logprobs=self._known("sampling_logprobs"),
            versions=None if any(part.versions is None for part in parts) else self._answers("versions", np.int32, 0),
            ends_known=all(part.truncated is not None for part in parts),
            pieces=dict(zip(ids.tolist(), texts, strict=True)),
        )

    def _ids(self, texts: Sequence[str]) -> Array:
        """The tokens' ids; where a trainer does not record them, a negative number for each different text."""
        if all(part.token_ids is not None for part in self._parts):
            return self._tokens("token_ids", np.int32, -1)
        number = {text: -1 - place for place, text in enumerate(dict.fromkeys(texts))}
        return np.array([number[text] for text in texts], dtype=np.int32)

    def _prompt(self, part: int, group: int) -> tuple[Array, list[str]]:
        rollouts = self._parts[part]
        assert rollouts.prompt_lengths is not None
        begin = int(rollouts.prompt_lengths[:group].sum())
        end = begin + int(rollouts.prompt_lengths[group])
        if not 0 <= begin <= end <= LONGEST:
            raise ValueError(f"a prompt of {end - begin} tokens")
        ids = (
            np.full(end - begin, -1, dtype=np.int32) if rollouts.prompt_ids is None else rollouts.prompt_ids[begin:end]
        )
        return ids, [""] * (end - begin) if rollouts.prompt_texts is None else rollouts.prompt_texts[begin:end]

    def _scored(self, update: int) -> Scored | None:
        names = list(dict.fromkeys(name for part in self._parts for name in part.rewards))
        roles = [role for part in self._parts for role in (part.roles or [""] * len(part.group))]
        if not names and not any(roles) and np.isnan(self.advantages).all():
            return None
        weights = {name: w for part in self._parts for name, w in part.reward_weights.items()}
        missing = [np.full(len(part.group), np.nan) for part in self._parts]
        parts = {
            name: np.concatenate([p.rewards.get(name, gap) for p, gap in zip(self._parts, missing, strict=True)])
            for name in names
        }
        weighted = np.array([weights[name] * values for name, values in parts.items()])
        total = np.nansum(weighted, axis=0) if names else np.full(len(self.group), np.nan)
        if names:
            total[np.isnan(weighted).all(axis=0)] = np.nan
        gold = {name: values for name, values in parts.items() if weights[name] == 0}
        return Scored(
            update=update, rewards=total, parts={k: v for k, v in parts.items() if k not in gold}, weights=weights,
            gold=gold, roles=roles if any(roles) else [],
        )  # fmt: skip

    def _credited(self, update: int, scored: Scored) -> Credited | None:
        values, reference, taught = (self._known(name) for name in ("values", "ref_logprobs", "teacher_logprobs"))
        if np.isnan(self.advantages).all() and values is None and reference is None and taught is None:
            return None
        mean, std = (self._of_groups(name, scored.rewards) for name in ("group_mean", "group_std"))
        return Credited(
            update=update, advantages=self.advantages, values=values, ref_logprobs=reference, group_mean=mean,
            group_std=std, correction=self._known("correction"), correction_rule=self._parts[0].correction_rule,
            teacher_logprobs=taught,
        )  # fmt: skip

    def _of_groups(self, name: str, rewards: Array) -> Array:
        given = [getattr(self._parts[part], name) for part, _ in self._owners]
        if all(values is not None for values in given):
            return np.array([values[g] for values, (_, g) in zip(given, self._owners, strict=True)], dtype=np.float64)
        groups = [rewards[(self.group == g) & ~np.isnan(rewards)] for g in range(len(self._owners))]
        if name == "group_mean":
            return np.array([values.mean() if len(values) else np.nan for values in groups])
        return np.array([values.std(ddof=1) if len(values) > 1 else 0.0 for values in groups])

    def _tokens(self, name: str, dtype: Any, missing: float) -> Array:
        sizes = [int(part.lengths.sum()) for part in self._parts]
        return self._joined(name, dtype, missing, sizes)

    def _known(self, name: str) -> Array | None:
        """Float32 values of tokens; None if there are none."""
        values = self._tokens(name, np.float32, np.nan)
        return None if np.isnan(values).all() else values

    def _answers(self, name: str, dtype: Any, missing: float) -> Array:
        return self._joined(name, dtype, missing, [len(part.group) for part in self._parts])

    def _joined(self, name: str, dtype: Any, missing: float, sizes: Sequence[int]) -> Array:
        each = [getattr(part, name) for part in self._parts]
        filled = [np.full(n, missing) if x is None else x for x, n in zip(each, sizes, strict=True)]
        return np.concatenate(filled).astype(dtype)


def finished(ended: Ended) -> Finished:
    """The end of an update, without tokens under the new policy, which the trainer did not evaluate.

    Raises ValueError if its trainer's steps are none.
    """
    check_steps(ended.trainer_steps)
    none = np.zeros(0, dtype=np.float32)
    return Finished(
        update=ended.update, rows=np.zeros(0, dtype=np.int32), logprobs=none, top_logprobs=none.reshape(0, 0),
        metrics=ended.metrics, timings={}, seconds=ended.seconds, trainer_steps=ended.trainer_steps,
    )  # fmt: skip


def _means(metrics: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of each number over the processes that know it."""
    names = dict.fromkeys(name for each in metrics for name in each)
    known = {name: [each[name] for each in metrics if name in each] for name in names}
    return {name: sum(values) / len(values) for name, values in known.items()}


def _all(values: Sequence[Array | None], size: int | None = None) -> Any:
    """The joined arrays; if one is missing None, or `size` NaN."""
    if any(x is None for x in values):
        return None if size is None else np.full(size, np.nan, dtype=np.float32)
    return np.concatenate([x for x in values if x is not None])

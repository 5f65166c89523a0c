"""The answers of one or several samplings of a TRL trainer, on this process, as arrays without padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from rlplay.record.recorder import Recorder
from rlplay.record.trl import private
from rlplay.record.trl.texts import Texts
from rlplay.trace.records import Array, CorrectionRule


class Generation:
    """N answers as TRL sampled them. Arrays of tokens are padded, [N, L], until `flat` or `write`."""

    def __init__(
        self, trainer: Any, inputs: Sequence[dict[str, Any]], out: dict[str, Any], made: int, in_order: bool = True
    ) -> None:
        """`inputs` are the rows of the dataset, one for each answer; `out` is what TRL computed.

        `made` is the number of optimizer steps of the update before this sampling. If the answers are not `in_order`,
        nothing says which row and which rewards are theirs.
        """
        self._texts = Texts(trainer)
        ids, mask = _numpy(out["completion_ids"]), _numpy(out["completion_mask"])
        self._lengths = np.array([_length(row, kept, self._texts.pad) for row, kept in zip(ids, mask, strict=True)])
        self._left_out: Array = mask.sum(axis=1) == 0  # of the loss and of every forward pass, as they were cut
        self._ids = _rows(ids, self._lengths)
        self._made = np.full(len(ids), made)
        self._prompts = [row[kept.astype(bool)] for row, kept in zip(*map(_numpy, _both(out, "prompt")), strict=True)]
        asked = inputs if in_order else [{} for _ in ids]
        self._columns = [{k: v for k, v in row.items() if k != "prompt"} for row in asked]
        self._headings = [
            _heading(row["prompt"]) if "prompt" in row else self._texts.whole(prompt)
            for row, prompt in zip(asked, self._prompts, strict=True)
        ]
        tools = _rows(_numpy(out["tool_mask"]), self._lengths) if "tool_mask" in out else None
        self._mask = (
            [np.ones(n, np.uint8) for n in self._lengths] if tools is None else [t.astype(np.uint8) for t in tools]
        )
        self._old = self._optional(out, "old_per_token_logps")
        self._sampling = self._optional(out, "sampling_per_token_logps")
        self._reference = self._optional(out, "ref_per_token_logps")
        self._advantages = self._optional(out, "advantages")
        self._correction = self._optional(out, "importance_sampling_ratio")
        self._rule = None if self._correction is None else _rule(trainer)
        ends = self._texts.ends
        self._truncated = np.array(
            [n == 0 or int(row[n - 1]) not in ends for row, n in zip(ids, self._lengths, strict=True)]
        )
        self.temperature = float(trainer.temperature)
        if in_order:
            self._of_trainer(trainer, len(inputs))
        else:
            self._of_nobody()

    def _of_nobody(self) -> None:
        """No rewards; a group is the answers to one prompt, on this process."""
        prompts = [tuple(prompt.tolist()) for prompt in self._prompts]
        place = {prompt: number for number, prompt in enumerate(dict.fromkeys(prompts))}
        self._rewards: dict[str, Array] = {}
        self._weights: dict[str, float] = {}
        self._group = np.array([place[prompt] for prompt in prompts], dtype=np.int64)
        self._groups = len(place)
        self._mean = self._std = np.full(len(prompts), np.nan)

    def _of_trainer(self, trainer: Any, count: int) -> None:
        """Rewards of this process's answers, and mean and deviation of their groups over all processes."""
        size = trainer.num_generations
        first = trainer.accelerator.process_index * count
        world = count * trainer.accelerator.num_processes
        scored = {name: _numbers(list(values)[-world:]) for name, values in private.logged(trainer, "rewards").items()}
        names = trainer.reward_func_names
        if len(set(names)) < len(names):  # TRL keeps those of the last one under the name
            scored = {}
        weights = dict(zip(names, trainer.reward_weights.tolist(), strict=True)) if scored else {}
        weighted = np.array([weights[name] * values for name, values in scored.items()]).reshape(-1, world)
        total = np.where(np.isnan(weighted).all(axis=0), np.nan, np.nansum(weighted, axis=0)).reshape(-1, size)
        known = [group[~np.isnan(group)] for group in total]
        mean = np.array([group.mean() if len(group) else np.nan for group in known])
        std = np.array([group.std(ddof=1) if len(group) > 1 else 0.0 if len(group) else np.nan for group in known])
        here = slice(first, first + count)
        self._rewards = {name: values[here] for name, values in scored.items()}
        self._weights = weights
        self._group = np.arange(first, first + count) // size
        self._groups = world // size  # over all processes
        self._mean, self._std = mean[self._group], std[self._group]
        for name, values in private.logged(trainer, "extra").items():
            for row, value in zip(self._columns, list(values)[-world:][here], strict=True):
                row[name] = value

    def __len__(self) -> int:
        return len(self._lengths)

    @staticmethod
    def joined(parts: Sequence[Generation]) -> Generation:
        """All answers of an update; the groups of a later sampling follow those of the earlier."""
        first = parts[0]
        for part in parts[1:]:
            for name in ("_ids", "_prompts", "_columns", "_headings", "_mask"):
                getattr(first, name).extend(getattr(part, name))
            for name in ("_old", "_sampling", "_reference", "_advantages", "_correction"):
                mine, theirs = getattr(first, name), getattr(part, name)
                setattr(first, name, None if mine is None or theirs is None else mine + theirs)
            part._group = part._group + first._groups
            first._groups += part._groups
            for name in ("_lengths", "_truncated", "_left_out", "_group", "_mean", "_std", "_made"):
                setattr(first, name, np.concatenate([getattr(first, name), getattr(part, name)]))
            first._rewards = {k: np.concatenate([v, part._rewards[k]]) for k, v in first._rewards.items()}
        return first

    def flat(self, passes: Sequence[dict[str, Any]], name: str) -> Array:
        """A padded tensor of each micro-batch as flat tokens of their answers, float32; NaN if it was not seen."""
        missing = 0.0 if name == "gradient" else np.nan
        pieces = [
            np.full(self._lengths[which], missing)
            if self._left_out[which] or name not in one
            else _numpy(one[name][place])[: self._lengths[which]]
            for one in passes
            for place, which in enumerate(one["rows"])
        ]
        return np.concatenate(pieces).astype(np.float32)

    def write(self, recorder: Recorder, update: int, steps: Sequence[Sequence[dict[str, Any]]]) -> None:
        """Record the answers.

        What TRL did not compute while it sampled comes from the pass with gradients before the next optimizer step.
        Then the policy is another, so it is not known of answers that only later steps include.
        """
        if not recorder.keeps(update):
            return
        firsts: dict[int, tuple[dict[str, Any], int]] = {}
        for number, one in ((number, one) for number, passes in enumerate(steps) for one in passes):
            for place, which in enumerate(one["rows"].tolist()):
                if number == self._made[which]:
                    firsts.setdefault(which, (one, place))
        old = self._old or list(self._first(firsts, "logprobs"))
        reference = self._reference and self._scored(self._reference)
        keys, group = np.unique(self._group, return_inverse=True)
        one_of = [int(np.flatnonzero(group == g)[0]) for g in range(len(keys))]
        recorder.rollouts(
            update,
            prompts=[self._headings[i] for i in one_of],
            columns=[self._columns[i] for i in one_of],
            group=group,
            group_ids=keys,
            group_mean=self._mean[one_of],
            group_std=self._std[one_of],
            prompt_ids=np.concatenate([self._prompts[i] for i in one_of]),
            prompt_lengths=[len(self._prompts[i]) for i in one_of],
            prompt_texts=[text for i in one_of for text in self._texts.of(self._prompts[i])],
            lengths=self._lengths,
            token_ids=np.concatenate(self._ids),
            texts=[text for row in self._ids for text in self._texts.of(row)],
            temperature=self.temperature,
            mask=np.concatenate(self._mask),
            truncated=self._truncated,
            old_logprobs=np.concatenate(self._scored(old)),
            sampling_logprobs=None if self._sampling is None else np.concatenate(self._sampling),
            entropy=np.concatenate(self._scored(list(self._first(firsts, "entropy")))),
            ref_logprobs=None if reference is None else np.concatenate(reference),
            rewards=self._rewards,
            reward_weights=self._weights,
            advantages=None if self._advantages is None else np.concatenate(self._advantages),
            correction=None if self._correction is None else np.concatenate(self._correction),
            correction_rule=self._rule,
        )

    def _scored(self, rows: Sequence[Array]) -> list[Array]:
        """Values of a forward pass; NaN for the answers that it left out, where TRL writes 0."""
        return [np.full(len(row), np.nan) if out else row for row, out in zip(rows, self._left_out, strict=True)]

    def _first(self, firsts: dict[int, tuple[dict[str, Any], int]], name: str) -> Iterator[Array]:
        for which, length in enumerate(self._lengths.tolist()):
            one, place = firsts.get(which, ({}, 0))
            found = one.get(name)
            yield np.full(length, np.nan) if found is None else _numpy(found[place])[:length]

    def _optional(self, out: dict[str, Any], name: str) -> list[Array] | None:
        """A tensor of tokens, [N, L], or of answers, [N] or [N, 1], as rows of tokens; None if it is not there."""
        if name not in out:
            return None
        values = _numpy(out[name])
        return _rows(np.broadcast_to(_column(values), out["completion_ids"].shape), self._lengths)


def _rule(trainer: Any) -> CorrectionRule:
    """How TRL corrects for vLLM, by its `vllm_importance_sampling_mode` and bounds."""
    level, _, outside = trainer.vllm_importance_sampling_mode.partition("_")
    low, high = trainer.vllm_importance_sampling_clip_min, trainer.vllm_importance_sampling_clip_max
    return CorrectionRule(level, outside, low, high)


def _both(out: dict[str, Any], name: str) -> tuple[Tensor, Tensor]:
    return out[f"{name}_ids"], out[f"{name}_mask"]


def _numpy(values: Tensor) -> Array:
    values = values.detach().cpu()
    return (values.float() if values.is_floating_point() else values).numpy()


def _column(values: Array) -> Array:
    return values[:, None] if values.ndim == 1 else values


def _rows(values: Array, lengths: Array) -> list[Array]:
    return [row[:length] for row, length in zip(values, lengths, strict=True)]


def _length(ids: Array, mask: Array, pad: int | None) -> int:
    """The length of an answer; TRL's mask is empty for one that it leaves out because it was cut."""
    if mask.any():
        return int(mask.sum())
    real = np.flatnonzero(ids != pad)
    return int(real[-1]) + 1 if len(real) else 0


def _numbers(values: Sequence[Any]) -> Array:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _heading(prompt: Any) -> str:
    """The text of the last user turn."""
    if isinstance(prompt, str):
        return prompt
    said = [turn.get("content", "") for turn in prompt if isinstance(turn, dict) and turn.get("role") == "user"]
    return said[-1] if said and isinstance(said[-1], str) else ""

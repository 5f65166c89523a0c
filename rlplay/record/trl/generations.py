"""The answers of one or several samplings of a TRL trainer, on this process, as arrays without padding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlplay.record.recorder import Recorder
from rlplay.record.trl import compat
from rlplay.record.trl.answer import Seen, arguments, cut, firsts, joined, numpy
from rlplay.record.trl.texts import Texts
from rlplay.trace.records import Array, CorrectionRule

_TOKENS = {
    "old_per_token_logps": "old_logprobs", "sampling_per_token_logps": "sampling_logprobs",
    "ref_per_token_logps": "ref_logprobs", "advantages": "advantages", "importance_sampling_ratio": "correction",
}  # fmt: skip
"""TRL's tensors of tokens, [N, L], or of answers, [N] or [N, 1], with the recorder's names."""


@dataclass
class SampledAnswers(Seen):
    """An answer as TRL sampled it."""

    made: int = 0  # optimizer steps of the update before this sampling
    left_out: bool = False  # of the loss and of every forward pass, as it was cut
    mean: float = math.nan  # of the rewards of its group, over all processes
    std: float = math.nan

    def scored(self, values: Array | None) -> Array:
        """Values of a forward pass; NaN where it did not see the answer, for which TRL writes 0."""
        return np.full(len(self), np.nan) if values is None or self.left_out else values[: len(self)]


class Generation:
    """N answers of one sampling, with what they have in common."""

    def __init__(
        self,
        trainer: Any,
        texts: Texts,
        inputs: Sequence[dict[str, Any]],
        out: dict[str, Any],
        made: int,
        in_order: bool = True,
    ) -> None:
        """`inputs` are the rows of the dataset, one for each answer; `out` is what TRL computed.

        `made` is the number of optimizer steps of the update before this sampling. If the answers are not `in_order`,
        nothing says which row and which rewards are theirs.
        """
        names = ("completion_ids", "completion_mask", "prompt_ids", "prompt_mask")
        ids, mask, asked, real = (numpy(out[name]) for name in names)
        tools = numpy(out["tool_mask"]) if "tool_mask" in out else np.ones_like(ids)
        known = {ours: _wide(numpy(out[name]), ids) for name, ours in _TOKENS.items() if name in out}
        self.answers: list[SampledAnswers] = []
        for i, row in enumerate(inputs if in_order else [{} for _ in ids]):
            n = _length(ids[i], mask[i], texts.pad)
            answer = SampledAnswers(
                i, _heading(row["prompt"]) if "prompt" in row else None, prompt_ids=asked[i][real[i].astype(bool)],
                columns={k: v for k, v in row.items() if k != "prompt"}, ids=ids[i, :n],
                mask=tools[i, :n].astype(np.uint8), cut=cut(ids[i, :n], texts.ends), made=made,
                left_out=not mask[i].any(),
                tokens={name: values[i, :n] for name, values in known.items()},
            )  # fmt: skip
            self.answers.append(answer)
            for name in ("old_logprobs", "ref_logprobs"):
                if name in known:
                    answer.tokens[name] = answer.scored(known[name][i])
        self.rule = _rule(trainer) if "correction" in known else None
        self.temperature = float(trainer.temperature)
        self.weights: dict[str, float] = {}
        if in_order:
            self._of_trainer(trainer, len(inputs))
        else:
            self._of_nobody()

    def _of_nobody(self) -> None:
        """No rewards; a group is the answers to one prompt, on this process."""
        place: dict[tuple[int, ...], int] = {}
        for answer in self.answers:
            answer.group = place.setdefault(tuple(np.asarray(answer.prompt_ids).tolist()), len(place))
        self.groups = len(place)

    def _of_trainer(self, trainer: Any, count: int) -> None:
        """Rewards of this process's answers, and mean and deviation of their groups over all processes."""
        size = trainer.num_generations
        first = trainer.accelerator.process_index * count
        world = count * trainer.accelerator.num_processes
        scored = {name: _numbers(list(values)[-world:]) for name, values in compat.logged(trainer, "rewards").items()}
        names = trainer.reward_func_names
        if len(set(names)) < len(names):  # TRL keeps those of the last one under the name
            scored = {}
        self.weights = weights = dict(zip(names, trainer.reward_weights.tolist(), strict=True)) if scored else {}
        weighted = np.array([weights[name] * values for name, values in scored.items()]).reshape(-1, world)
        total = np.where(np.isnan(weighted).all(axis=0), np.nan, np.nansum(weighted, axis=0)).reshape(-1, size)
        known = [group[~np.isnan(group)] for group in total]
        self.groups = world // size  # over all processes
        extra = {name: list(values)[-world:] for name, values in compat.logged(trainer, "extra").items()}
        for place, answer in enumerate(self.answers, first):
            answer.group = place // size
            answer.rewards = {name: values[place] for name, values in scored.items()}
            answer.columns |= {name: values[place] for name, values in extra.items()}
            if len(group := known[answer.group]):
                answer.mean, answer.std = group.mean(), group.std(ddof=1) if len(group) > 1 else 0.0


class TrainerSampling:
    """All answers of an update; the groups of a later sampling follow those of the earlier."""

    def __init__(self, parts: Sequence[Generation]) -> None:
        self._first = parts[0]
        self._answers = joined((part.answers, part.groups) for part in parts)

    def flat(self, passes: Sequence[dict[str, Any]], name: str) -> Array:
        """A padded tensor of each micro-batch as flat tokens of their answers, float32; NaN if it was not seen."""
        missing = 0.0 if name == "gradient" else np.nan
        pieces = []
        for one in passes:
            for place, which in enumerate(one["rows"]):
                answer = self._answers[which]
                seen = name in one and not answer.left_out
                pieces.append(numpy(one[name][place])[: len(answer)] if seen else np.full(len(answer), missing))
        return np.concatenate(pieces).astype(np.float32)

    @property
    def lengths(self) -> list[int]:
        """The tokens of each answer."""
        return [len(answer) for answer in self._answers]

    def splitter(self, rows: Array) -> Callable[[Array], list[tuple[int, Array]]]:
        """Splits numbers of these answers' tokens, padded, into those of each, with its number."""
        lengths = self.lengths
        return lambda values: [(which, values[place][: lengths[which]]) for place, which in enumerate(rows.tolist())]

    def write(self, recorder: Recorder, update: int, steps: Sequence[Sequence[dict[str, Any]]], texts: Texts) -> None:
        """Record the answers.

        What TRL did not compute while it sampled comes from the pass with gradients before the next optimizer step.
        Then the policy is another, so it is not known of answers that only later steps include.
        """
        if not recorder.keeps(update):
            return
        found: dict[int, dict[str, Array]] = {}
        for number, one in ((number, one) for number, passes in enumerate(steps) for one in passes):
            for place, which in enumerate(one["rows"].tolist()):
                if number == self._answers[which].made:
                    names = [name for name in ("logprobs", "entropy") if one.get(name) is not None]
                    found.setdefault(which, {name: numpy(one[name][place]) for name in names})
        for which, answer in enumerate(self._answers):
            seen = found.get(which, {})
            answer.tokens.setdefault("old_logprobs", answer.scored(seen.get("logprobs")))
            answer.tokens["entropy"] = answer.scored(seen.get("entropy"))
        asked = firsts(self._answers)
        recorder.rollouts(
            update,
            **arguments(self._answers, self._first.weights, texts),
            group_ids=[each.group for each in asked],
            group_mean=[each.mean for each in asked],
            group_std=[each.std for each in asked],
            temperature=self._first.temperature,
            correction_rule=self._first.rule,
        )


def _rule(trainer: Any) -> CorrectionRule:
    """How TRL corrects for vLLM, by its `vllm_importance_sampling_mode` and bounds."""
    level, _, outside = trainer.vllm_importance_sampling_mode.partition("_")
    low, high = trainer.vllm_importance_sampling_clip_min, trainer.vllm_importance_sampling_clip_max
    return CorrectionRule(level, outside, low, high)


def _wide(values: Array, like: Array) -> Array:
    return np.broadcast_to(values[:, None] if values.ndim == 1 else values, like.shape)


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

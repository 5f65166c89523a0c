"""The recording of one trainer of verl: the answers of each step and the numbers that it logs."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from rlplay.record.format import free
from rlplay.record.recorder import Recorder
from rlplay.record.texts import decode_each
from rlplay.record.verl import compat
from rlplay.record.verl.batches import Answer
from rlplay.record.verl.losses import correction_rule, rejects
from rlplay.record.verl.option import option
from rlplay.record.verl.options import settings_of
from rlplay.trace.records import Array

COMPLETIONS = 64
"""Answers that are kept of each step, in whole groups."""


class VerlRecording:
    """A recording in the folder `rlplay` of the run's checkpoints, `trainer.default_local_dir`.

    Raises OSError if it cannot be written.
    """

    def __init__(self, trainer: Any) -> None:
        config, older = trainer.config, compat.is_older(trainer)
        folder = Path(option(config, "trainer.default_local_dir", "checkpoints"))
        self.path = free(folder / "rlplay")
        self._recorder = Recorder(self.path, COMPLETIONS)
        self._tokenizer = trainer.tokenizer
        self._temperature = option(config, "actor_rollout_ref.rollout.temperature")
        self._rule, self.rejects = correction_rule(config), rejects(config)
        self._began = time.perf_counter()
        name = option(config, "trainer.experiment_name", "run")
        self._recorder.begin(
            f"verl {_version('verl')}", settings_of(config, older), title=f"verl · {name}",
            model=str(option(config, "actor_rollout_ref.model.path", "")),
            versions={"verl": _version("verl"), "torch": _version("torch")},
        )  # fmt: skip

    def answers(self, step: int, answers: Sequence[Answer], total: int) -> None:
        """Record the answers of a step; of `total` in all, some may not be among them."""
        names = dict.fromkeys(each.group for each in answers)
        numbers = {group: place for place, group in enumerate(names)}
        first = {each.group: each for each in reversed(answers)}
        asked = [first[group] for group in names]
        known = {name for each in answers for name in each.numbers}
        if _same(answers, "sampling_logprobs", "old_logprobs"):
            known.discard("sampling_logprobs")  # a copy is nothing to hold the sampler against
        tracked = [name for name in answers[0].tracked if all(name in each.tracked for each in answers)]
        rewards = {"score": [each.score for each in answers]}
        rewards |= {name: [each.tracked[name] for each in answers] for name in tracked if name not in rewards}
        arrays: dict[str, Any] = {name: _flat(answers, name) for name in sorted(known)}
        if self.rejects:  # as a factor of 0, beside that of the correction, if there is one
            left = np.concatenate([np.where(a.mask == 1, np.where(a.kept, 1.0, 0.0), np.nan) for a in answers])
            arrays["correction"] = left * np.nan_to_num(arrays.get("correction", left))
        self._recorder.rollouts(
            step,
            prompts=[self._tokenizer.decode(each.prompt_ids, skip_special_tokens=True) for each in asked],
            columns=[{} if each.ground_truth is None else {"ground_truth": each.ground_truth} for each in asked],
            prompt_ids=[i for each in asked for i in each.prompt_ids],
            prompt_lengths=[len(each.prompt_ids) for each in asked],
            prompt_texts=[text for each in asked for text in decode_each(self._tokenizer, each.prompt_ids)],
            group=[numbers[each.group] for each in answers],
            lengths=[len(each.ids) for each in answers],
            token_ids=[i for each in answers for i in each.ids],
            texts=[text for each in answers for text in decode_each(self._tokenizer, each.ids)],
            mask=np.concatenate([each.mask for each in answers]),
            rewards=rewards,
            reward_weights={name: float(name == "score") for name in rewards},
            temperature=self._temperature,
            correction_rule=self._rule if "correction" in known else None,
            **arrays,
        )
        if step == 1 and len(answers) < total:
            self._recorder.remark(
                step, f"{len(answers)} of the {total} answers of a step are recorded; metrics are of all"
            )

    def logged(self, step: int, data: Mapping[str, Any]) -> None:
        """Record the numbers that verl logs: those of a validation apart from those of training."""
        numbers = {
            name: float(value) for name, value in data.items()
            if isinstance(value, int | float | np.number) and math.isfinite(value)
        }  # fmt: skip
        held_out = {
            name: value for name, value in numbers.items() if name.startswith("val-") or name.startswith("val/")
        }
        if held_out:
            self._recorder.heldout(step, {f"eval_{name.split('/', 1)[1]}": value for name, value in held_out.items()})
        own = {name: value for name, value in numbers.items() if name not in held_out}
        if own and step > 0:
            seconds = numbers.get("timing_s/step", time.perf_counter() - self._began)
            self._recorder.end(step, own, seconds, (step, step))
        self._began = time.perf_counter()

    def remark(self, text: str) -> None:
        """Say something about the recording."""
        self._recorder.remark(0, text)


def _flat(answers: Sequence[Answer], name: str) -> Array:
    """Numbers of all tokens; NaN where they are not the policy's, but for advantages, which are 0 there."""
    other = 0.0 if name == "advantages" else np.nan
    each = [np.where(a.mask == 1, a.numbers[name], other) if name in a.numbers else np.full(len(a.ids), np.nan)
            for a in answers]  # fmt: skip
    found: Array = np.concatenate(each)
    return found


def _same(answers: Sequence[Answer], one: str, other: str) -> bool:
    """Whether two arrays are known and the same."""
    return all(
        one in each.numbers and other in each.numbers
        and np.array_equal(each.numbers[one][each.mask == 1], each.numbers[other][each.mask == 1]) for each in answers
    )  # fmt: skip


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""

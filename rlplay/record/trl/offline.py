"""Watches a trainer of TRL that learns from given answers: DPOTrainer, KTOTrainer, SFTTrainer, RewardTrainer.

A hook on the model's forward pass sees the log-probabilities that TRL takes the loss of, and their derivatives in the
backward pass. An update is one optimizer step. Absent are the reference's log-probabilities where TRL computed only
their sums, before training; all log-probabilities of a reward model, which has scores; and, in fp16, the derivatives.
Answers that TRL packs into one row are one answer here. A loss that needs none of this, as that of a subclass may,
shows its texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from rlplay.record.trl import compat
from rlplay.record.trl.given import Given, write
from rlplay.record.trl.guard import Call, Part, argument
from rlplay.record.trl.observer import Observer
from rlplay.record.trl.teachers.kept import PICTURES, Again, KeptBatch, Pass, pictured
from rlplay.trace.records import Array

_UNKNOWN = -(2**40)
"""Stands for the tokens of a process that cannot count them: the sum over the processes is then below 0."""


class Offline(Observer):
    """Writes an update after each optimizer step, when its numbers have been logged."""

    def _watch(self) -> None:
        self._inputs: Any = None  # of the micro-batch under way
        self._before = 0
        self._hooks.wrap(self._trainer, "compute_loss", Part.ANSWERS, before=self._losing, after=self._lost)
        if self._trainer.accelerator.num_processes > 1:
            self._hooks.wrap(self._trainer, "compute_loss", Part.COUNT, after=self._counted)
        policy = self._trainer.accelerator.unwrap_model(self._trainer.model)
        if _compiled(self._trainer, policy):
            self._guard.leave_out(Part.NUMBERS)
            self._guard.remark("no hook is safe in this compiled model, so no numbers of tokens are recorded")
        for model in (policy, getattr(self._trainer, "ref_model", None)):
            if model is not None:
                self._hooks.forward(model, Part.NUMBERS, self._passed)
        self._begin()

    def _begin(self) -> None:
        super()._begin()
        self._passes: list[Given] = []  # micro-batches since the last update
        self._tokens = 0  # in their loss, over all processes

    def _losing(self, call: Call) -> None:
        self._inputs, self._before = argument(call, 1, "inputs"), len(self._passes)

    def _lost(self, _call: Call, _loss: Any) -> None:
        inputs, self._inputs = self._inputs, None
        if not self._training():
            return
        new = self._passes[self._before :]
        if not new:
            self._see(inputs)
        elif self._trainer.accelerator.num_processes == 1:
            self._tokens += sum(one.tokens for one in new)

    def _counted(self, _call: Call, _loss: Any) -> None:
        """Add up the tokens in the loss, with the other processes: all of them take part, whatever has failed here."""
        if not self._training():
            return
        new = self._passes[self._before :]
        whole = self._guard.alive(Part.ANSWERS) and self._guard.alive(Part.NUMBERS) and bool(new)
        own = sum(one.tokens for one in new) if whole else _UNKNOWN
        count = torch.tensor(own, device=self._trainer.accelerator.device)
        self._tokens += int(self._trainer.accelerator.reduce(count))

    def _trained(self, call: Call, loss: torch.Tensor) -> None:
        super()._trained(call, loss)
        kl = compat.metrics(self._trainer).get("kl")
        if self._passes:
            self._passes[-1].loss = float(loss)
            self._passes[-1].baseline = float(kl[-1]) if kl else None

    def _passed(self, options: dict[str, Any], out: Any) -> None:
        """One forward pass for the loss: of the policy, of the reference, or of KTO on other prompts' answers."""
        inputs = self._inputs
        logprobs = getattr(out, "log_probs", None)
        scored = getattr(out, "logits", None) if logprobs is None else logprobs
        if inputs is None or scored is None or scored.ndim != 2 or options.get("input_ids") is None:
            return
        if scored.requires_grad:
            one = Given(inputs, options, out)
            self._passes.append(one)
            if self.teachers.keeps:
                one.again = _again(options)
                if pictured(options):
                    self.teachers.lacks(PICTURES)
            if logprobs is not None:
                self._hooks.gradient(logprobs, Part.NUMBERS, one.differentiated)
        elif self._passes and logprobs is not None and "ref_logps" not in inputs:
            self._passes[-1].compared(options["input_ids"], logprobs)

    def _write_answers(self) -> None:
        if not self._passes:
            super()._write_answers()
        elif self._recorder.keeps(self.update):
            accelerator = self._trainer.accelerator
            exact = accelerator.scaler is None and self._tokens > 0
            write(
                self._passes, self._recorder, self.update, self._texts, accelerator.num_processes,
                self._tokens if exact else None, self._named,
            )  # fmt: skip

    def _batch(self) -> KeptBatch | None:
        recorded, first, passes = self._recorder.rows_of(self.update), 0, []
        for one in self._passes:
            if one.again is None or one.gradient is None:
                return None
            passes.append(Pass(one.again, _splitter(one, first), one.gradient))
            first += len(one.answers)
        lengths = [len(answer) for one in self._passes for answer in one.answers]
        return KeptBatch([passes], lengths, recorded) if recorded else None


def _again(options: dict[str, Any]) -> Again:
    """Takes the forward pass with these arguments once more."""
    return lambda forward: (forward(**options).log_probs, None)


def _splitter(one: Given, first: int) -> Callable[[Array], Iterator[tuple[int, Array]]]:
    """Splits numbers of a pass into those of its answers, which are numbered from `first` on."""
    return lambda values: enumerate(one.by_answer(values), first)


def _compiled(trainer: Any, policy: Any) -> bool:
    """Whether a hook on the policy would run inside of compiled code, which may not allow it."""
    plugin = getattr(trainer.accelerator.state, "dynamo_plugin", None)
    return compat.compiled(policy) or bool(getattr(plugin, "fullgraph", False))

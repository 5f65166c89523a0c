"""Watches a trainer of TRL that learns from given answers: DPOTrainer, KTOTrainer, SFTTrainer, RewardTrainer.

A hook on the model's forward pass sees the log-probabilities that TRL takes the loss of, and their derivatives in the
backward pass. An update is one optimizer step. Absent are the reference's log-probabilities where TRL computed only
their sums, before training; all log-probabilities of a reward model, which has scores; and, in fp16, the derivatives.
Answers that TRL packs into one row are one answer here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlplay.record.recorder import Recorder
from rlplay.record.trl.given import Given
from rlplay.record.trl.numbers import Numbers, finite
from rlplay.record.trl.texts import Texts


class Offline:
    """Writes an update after each optimizer step, when its numbers have been logged."""

    def __init__(self, trainer: Any, recorder: Recorder, guarded: Callable[..., None]) -> None:
        """`guarded(work, *values)` does work on the recording, which must not stop the training."""
        self._trainer, self._recorder, self._guarded = trainer, recorder, guarded
        self._texts = Texts(trainer.processing_class)
        self._numbers = Numbers(trainer)
        self._update = 1
        self._passes: list[Given] = []  # micro-batches since the last update
        self._tokens = 0  # in their loss, over all processes
        self._stepped = False
        self._inputs: dict[str, Any] | None = None  # of the micro-batch under way
        self._compute_loss, self._training_step = trainer.compute_loss, trainer.training_step
        trainer.compute_loss, trainer.training_step = self._in_compute_loss, self._in_training_step
        models = [trainer.accelerator.unwrap_model(trainer.model), getattr(trainer, "ref_model", None)]
        for model in (model for model in models if model is not None):
            model.register_forward_hook(self._in_forward, with_kwargs=True)

    @property
    def finished(self) -> int:
        """The last update that has ended."""
        return self._update - 1

    def step(self) -> None:
        """An optimizer step was made."""
        self._stepped = True

    def end(self) -> None:
        """After an optimizer step, when its numbers are known."""
        if self._stepped:
            self._write()

    def logged(self, logs: dict[str, Any]) -> None:
        """TRL logs numbers: of training, or of an evaluation."""
        if any(name.startswith("eval_") for name in logs):
            self._recorder.heldout(self.finished, {k: v for k, v in finite(logs).items() if k.startswith("eval_")})
            return
        self._numbers.logged(logs)
        self.end()

    def changed(self, name: str, value: Any, previous: Any) -> None:
        """A setting has another value from the next update on."""
        self._recorder.changed(self._update, name, value, previous)

    def close(self) -> None:
        """Close the recording."""
        self._recorder.close()

    def _in_compute_loss(self, model: Any, inputs: dict[str, Any], *values: Any, **options: Any) -> Any:
        self._inputs, before = inputs, len(self._passes)
        try:
            return self._compute_loss(model, inputs, *values, **options)
        finally:
            self._inputs = None
            if torch.is_grad_enabled() and self._trainer.model.training:
                self._counted(self._passes[before:])

    def _counted(self, new: list[Given]) -> None:
        """Add up the tokens in the loss, with the other processes: not guarded, as all of them have to take part."""
        count = torch.tensor(sum(one.tokens for one in new), device=self._trainer.accelerator.device)
        several = self._trainer.accelerator.num_processes > 1
        self._tokens += int(self._trainer.accelerator.reduce(count) if several else count)

    def _in_training_step(self, *values: Any, **options: Any) -> Any:
        loss = self._training_step(*values, **options)
        self._guarded(self._trained, loss)
        return loss

    def _trained(self, loss: Tensor) -> None:
        if self._passes:
            self._passes[-1].loss = float(loss)
            kl = self._trainer._metrics["train"].get("kl")
            self._passes[-1].baseline = float(kl[-1]) if kl else None

    def _in_forward(self, _module: Any, _values: Any, options: dict[str, Any], out: Any) -> None:
        if self._inputs is not None:
            self._guarded(self._passed, self._inputs, options, out)

    def _passed(self, inputs: dict[str, Any], options: dict[str, Any], out: Any) -> None:
        """One forward pass for the loss: of the policy, of the reference, or of KTO on other prompts' answers."""
        logprobs = getattr(out, "log_probs", None)
        scored = out.logits if logprobs is None else logprobs
        if scored is None or scored.ndim != 2 or options.get("input_ids") is None:
            return
        if scored.requires_grad:
            one = Given(inputs, options, out)
            self._passes.append(one)
            if logprobs is not None:
                logprobs.register_hook(one.differentiated)
        elif self._passes and logprobs is not None and "ref_logps" not in inputs:
            self._passes[-1].compared(options["input_ids"], logprobs)

    def _write(self) -> None:
        """Write the update and begin the next."""
        if self._recorder.keeps(self._update) and self._passes:
            whole = Given.joined(self._passes)
            exact = self._trainer.accelerator.scaler is None
            whole.write(
                self._recorder, self._update, self._texts, self._trainer.accelerator.num_processes,
                self._tokens if exact else None,
            )  # fmt: skip
        losses = [sum(one.loss for one in self._passes)] if self._passes else []
        self._recorder.end(self._update, self._numbers.taken(losses))
        self._update, self._passes, self._stepped, self._tokens = self._update + 1, [], False, 0

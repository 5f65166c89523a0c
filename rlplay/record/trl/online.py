"""Watches a trainer of TRL that samples its answers: GRPOTrainer, RLOOTrainer.

Four methods of the trainer object are wrapped. What they return stays the same object; numbers are copied, and the
derivative of the loss by each log-probability is taken from a hook in the backward pass, so it is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlplay.record.recorder import Recorder
from rlplay.record.trl.answers import Generation
from rlplay.record.trl.numbers import Numbers, finite

ROW = "rlplay_row"
"""The tensor in TRL's batches that says which answers they hold; TRL shuffles and splits it with the others."""


class Online:
    """An update is everything from one sampling of answers to the next; it is written when it is complete."""

    def __init__(self, trainer: Any, recorder: Recorder, guarded: Callable[..., None]) -> None:
        """`guarded(work, *values)` does work on the recording, which must not stop the training."""
        self._trainer, self._recorder, self._guarded = trainer, recorder, guarded
        self._update = 1
        self._generations: list[Generation] = []
        self._seen: dict[str, Any] = {}  # of the newest forward pass with gradients
        self._passes: list[dict[str, Any]] = []  # micro-batches since the last optimizer step
        self._steps: list[list[dict[str, Any]]] = []  # the micro-batches of each optimizer step of the update
        self._before: list[Tensor] | None = None  # log-probs that TRL computes while it samples
        self._numbers = Numbers(trainer)
        for name in ("_generate_and_score_completions", "_get_per_token_logps_and_entropies", "_compute_loss"):
            setattr(trainer, name, getattr(self, "_in" + name)(getattr(trainer, name)))
        trainer.training_step = self._in_training_step(trainer.training_step)

    def step(self) -> None:
        """An optimizer step was made on the micro-batches since the last one."""
        self._steps.append(self._passes)
        self._passes = []

    def end(self) -> None:
        """After an optimizer step: write the update if it is complete."""
        args = self._trainer.args
        if self._generations and self._trainer._step % (args.steps_per_generation * args.num_iterations) == 0:
            self._write()

    def logged(self, logs: dict[str, Any]) -> None:
        """TRL logs numbers: of training, or of an evaluation."""
        if any(name.startswith("eval_") for name in logs):
            self._recorder.heldout(self._update - 1, {k: v for k, v in finite(logs).items() if k.startswith("eval_")})
            return
        self._numbers.logged(logs)
        if self._generations:  # afterwards TRL logs a summary
            self.end()

    @property
    def finished(self) -> int:
        """The last update that has ended."""
        return self._update - 1

    def changed(self, name: str, value: Any, previous: Any) -> None:
        """A setting has another value from the next update on."""
        self._recorder.changed(self._update, name, value, previous)

    def close(self) -> None:
        """Close the recording, with an update that the end of the training cut short."""
        if self._generations and self._steps:
            self._write()
        self._recorder.close()

    def _in_generate_and_score_completions(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(inputs: Any) -> Any:
            self._before = []
            out = inner(inputs)
            if self._trainer.model.training:
                self._guarded(self._generated, inputs, out, self._before)
            self._before = None
            return out

        return wrapped

    def _generated(self, inputs: Any, out: dict[str, Any], before: list[Tensor]) -> None:
        first = sum(len(generation) for generation in self._generations)
        rows = torch.arange(len(out["completion_ids"])) + first
        out[ROW] = rows.to(out["completion_ids"].device)
        # RLOOTrainer returns the sums of these over an answer; the reference, if there is one, comes second.
        names = ("old_per_token_logps", "ref_per_token_logps") if "old_logps" in out else ()
        known = out | dict(zip(names, before, strict=False))
        self._generations.append(Generation(self._trainer, inputs, known))

    def _in_get_per_token_logps_and_entropies(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*values: Any, **options: Any) -> Any:
            found = inner(*values, **options)
            if self._before is not None:
                self._before.append(found[0])
            if torch.is_grad_enabled() and options.get("compute_entropy") and found[0].requires_grad:
                self._guarded(self._scored, found[0], found[1])
            return found

        return wrapped

    def _scored(self, logprobs: Tensor, entropies: Tensor | None) -> None:
        seen = self._seen = {"logprobs": logprobs.detach().float().cpu()}
        if entropies is not None:
            seen["entropy"] = entropies.detach().float().cpu()

        def keep(gradient: Tensor) -> None:
            seen["gradient"] = gradient.detach().float().cpu()

        logprobs.register_hook(keep)  # type: ignore[no-untyped-call]

    def _in_compute_loss(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(model: Any, inputs: Any) -> Any:
            loss = inner(model, inputs)
            if ROW in inputs and torch.is_grad_enabled():
                self._guarded(self._lost, inputs)
            return loss

        return wrapped

    def _lost(self, inputs: dict[str, Tensor]) -> None:
        mask = inputs["completion_mask"] * inputs.get("tool_mask", 1)
        self._seen |= {"rows": inputs[ROW].cpu().numpy(), "tokens": int(mask.sum()), "loss": math.nan}
        self._passes.append(self._seen)

    def _in_training_step(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*values: Any, **options: Any) -> Any:
            loss = inner(*values, **options)
            self._guarded(self._trained, loss)
            return loss

        return wrapped

    def _trained(self, loss: Tensor) -> None:
        """The loss of a micro-batch as it is added to the step's."""
        if self._passes:
            self._passes[-1]["loss"] = float(loss)

    def _write(self) -> None:
        """Write the whole update and begin the next."""
        answers = Generation.joined(self._generations)
        answers.write(self._recorder, self._update, self._steps)
        for number, passes in enumerate(self._steps):
            self._write_step(answers, number, passes)
        metrics = self._numbers.taken([_loss(passes) for passes in self._steps])
        self._recorder.end(self._update, metrics, metrics.get("step_time", 0.0) * len(self._steps))
        self._update += 1
        self._generations, self._steps = [], []

    def _write_step(self, answers: Generation, number: int, passes: list[dict[str, Any]]) -> None:
        processes = self._trainer.accelerator.num_processes
        rows = np.concatenate([one["rows"] for one in passes])
        # The scaler of fp16 multiplies the gradients by a number that changes.
        exact = self._trainer.accelerator.scaler is None and all("gradient" in one for one in passes)
        self._recorder.step(
            self._update,
            number,
            len(self._steps),
            rows=rows,
            logprobs=answers.flat(passes, "logprobs"),
            # Gradients are averaged over the processes.
            dloss_dlogp=answers.flat(passes, "gradient") / processes if exact else None,
            tokens=sum(one["tokens"] for one in passes),
            metrics={"loss": _loss(passes)},
        )


def _loss(passes: list[dict[str, Any]]) -> float:
    """The loss of an optimizer step on this process: that of its micro-batches, which TRL has scaled to be added."""
    return float(sum(one["loss"] for one in passes))

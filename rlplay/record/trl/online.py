"""Watches a trainer of TRL that samples its answers: GRPOTrainer, RLOOTrainer.

Three methods of the trainer object are wrapped. What they return stays the same object; numbers are copied, and the
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

PROGRESS = ("epoch", "num_tokens", "total_flos", "train_runtime")
"""What TRL logs about its progress."""
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
        self._counts: dict[str, int] = {}  # of TRL's metrics when the update began
        self._logs: list[dict[str, float]] = []  # what TRL logged during the update
        for name in ("_generate_and_score_completions", "_get_per_token_logps_and_entropies", "_compute_loss"):
            setattr(trainer, name, getattr(self, "_in" + name)(getattr(trainer, name)))

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
        numbers = {k: float(v) for k, v in logs.items() if isinstance(v, int | float) and math.isfinite(v)}
        if any(name.startswith("eval_") for name in numbers):
            self._recorder.heldout(self._update - 1, {k: v for k, v in numbers.items() if k.startswith("eval_")})
        elif self._generations:  # afterwards TRL logs a summary
            self._logs.append({k: v for k, v in numbers.items() if k not in PROGRESS})
            self._counts = {}
            self.end()

    @property
    def finished(self) -> int:
        """The last update that has ended."""
        return self._update - 1

    def changed(self, name: str, value: Any, previous: Any) -> None:
        """A setting has another value from the next update on."""
        self._recorder.changed(self._update, name, value, previous)

    def close(self) -> None:
        """Close the recording."""
        self._recorder.close()

    def _in_generate_and_score_completions(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(inputs: Any) -> Any:
            if not self._generations:
                self._counts = {name: len(values) for name, values in self._trainer._metrics["train"].items()}
            out = inner(inputs)
            if self._trainer.model.training:
                self._guarded(self._generated, inputs, out)
            return out

        return wrapped

    def _generated(self, inputs: Any, out: dict[str, Any]) -> None:
        first = sum(len(generation) for generation in self._generations)
        rows = torch.arange(len(out["completion_ids"])) + first
        out[ROW] = rows.to(out["completion_ids"].device)
        self._generations.append(Generation(self._trainer, inputs, out))

    def _in_get_per_token_logps_and_entropies(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*values: Any, **options: Any) -> Any:
            found = inner(*values, **options)
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
                self._guarded(self._lost, inputs[ROW], loss)
            return loss

        return wrapped

    def _lost(self, rows: Tensor, loss: Tensor) -> None:
        self._seen |= {"rows": rows.cpu().numpy(), "loss": float(loss.detach())}
        self._passes.append(self._seen)

    def _write(self) -> None:
        """Write the whole update and begin the next."""
        answers = Generation.joined(self._generations)
        answers.write(self._recorder, self._update, self._steps)
        for number, passes in enumerate(self._steps):
            self._write_step(answers, number, passes)
        metrics = self._metrics()
        self._recorder.end(self._update, metrics, metrics.get("step_time", 0.0) * len(self._steps))
        self._update += 1
        self._generations, self._steps, self._logs = [], [], []

    def _write_step(self, answers: Generation, number: int, passes: list[dict[str, Any]]) -> None:
        processes = self._trainer.accelerator.num_processes
        rows = np.concatenate([one["rows"] for one in passes])
        gradients = all("gradient" in one for one in passes)
        self._recorder.step(
            self._update,
            number,
            len(self._steps),
            rows=rows,
            logprobs=answers.flat(passes, "logprobs"),
            # Gradients are averaged over the processes.
            dloss_dlogp=answers.flat(passes, "gradient") / processes if gradients else None,
            tokens=int(answers.sampled_lengths[rows].sum()) * processes,
            metrics={"loss": float(sum(one["loss"] for one in passes))},
        )

    def _metrics(self) -> dict[str, float]:
        """The means of TRL's numbers over the update, logged or not."""
        rest = self._trainer._metrics["train"].items()
        unlogged = {name: list(values[self._counts.get(name, 0) :]) for name, values in rest}
        found: dict[str, list[float]] = {}
        for name, value in (item for logs in self._logs for item in logs.items()):
            found.setdefault(name, []).append(value)
        for name, values in unlogged.items():
            found.setdefault(name, []).extend(values)
        known = {name: [v for v in values if not math.isnan(v)] for name, values in found.items()}
        return {name: sum(values) / len(values) for name, values in known.items() if values}

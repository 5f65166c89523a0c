"""Watches any trainer: texts where its loss or its rewards show them, rewards, and metrics."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rlplay.record.recorder import Recorder
from rlplay.record.trl import compat, seen
from rlplay.record.trl.answer import Seen
from rlplay.record.trl.guard import Call, Guard, Hooks, Part, argument
from rlplay.record.trl.step_metrics import StepMetrics, finite
from rlplay.record.trl.teachers.kept import KeptBatch
from rlplay.record.trl.teachers.watch import TeacherWatch
from rlplay.record.trl.texts import Texts
from rlplay.record.trl.weight_sample import WeightSample


class Observer:
    """Writes an update after each optimizer step, when its numbers have been logged.

    `attach` and `detach` for each training; the updates go on counting.
    """

    def __init__(self, recorder: Recorder, named: bool) -> None:
        """`named`: whether rlplay has the trainer's loss."""
        self._recorder, self._named = recorder, named
        self.update = 1
        """The update under way."""
        self._losses: list[float] = []  # of the update's optimizer steps on this process
        self._loss = 0.0  # of the micro-batches since the last
        self._first = self._last = 0  # the trainer's numbers of these steps
        self._trainer: Any = None
        self._numbers: Any = None
        self._weights: WeightSample | None = None
        self._texts: Any = None
        self._in_loss: list[Seen] = []
        self._rewarded: list[Seen] = []

    def attach(self, trainer: Any, guard: Guard, failed: Callable[[], None], before: Callable[[Call], None]) -> None:
        """Watch this trainer, until `detach`.

        `failed` is called if its training raises, `before` at each event that its callbacks hear of.
        """
        self._trainer, self._guard, self._hooks = trainer, guard, Hooks(guard)
        self._numbers = StepMetrics(trainer)
        self.teachers = TeacherWatch(trainer, guard, self._named)
        if getattr(trainer, "processing_class", None) is None:
            guard.leave_out(Part.ANSWERS)
        self._guard(Part.ANSWERS, self._read)
        self._weights = self._guard(Part.WEIGHTS, WeightSample, trainer)
        try:
            self._hooks.wrap(trainer, "training_step", Part.METRICS, after=self._trained)
            for name in (compat.EPOCH.name, compat.FINALIZE.name):
                if hasattr(trainer, name):
                    self._hooks.wrap(trainer, name, Part.RECORDING, failed=failed)
            self._hooks.wrap(trainer.callback_handler, "call_event", Part.END, before=before, failed=failed)
            self._watch()
        except Exception:
            self._hooks.remove()
            raise

    def detach(self) -> None:
        """Leave the trainer and its models as they were, and keep neither alive."""
        self._hooks.remove()
        self.teachers.end()
        self._trainer = self._numbers = self._texts = self._weights = None

    @property
    def finished(self) -> int:
        """The last update that has ended."""
        return self.update - 1

    def step(self, number: int) -> None:
        """An optimizer step was made, which the trainer counts as `number`."""
        self.end()  # of the one before, if nothing was logged after it
        self._took(number)

    def _took(self, number: int) -> None:
        self._first, self._last = self._first if self._losses else number, number
        self._losses.append(self._loss)
        self._loss = 0.0

    def end(self) -> None:
        """After an optimizer step, when its numbers are known."""
        if self._losses:
            self._write()

    def logged(self, logs: dict[str, Any]) -> None:
        """The trainer logs numbers: of training, or of an evaluation."""
        if any(name.startswith("eval_") for name in logs):
            self.end()  # of the update before it, whose numbers are not logged any more
            self._recorder.heldout(self.finished, {k: v for k, v in finite(logs).items() if k.startswith("eval_")})
            return
        self._guard(Part.METRICS, self._numbers.logged, logs)
        self.end()

    def changed(self, name: str, value: Any, previous: Any) -> None:
        """A setting has another value from the next update on."""
        self._recorder.changed(self.update, name, value, previous)

    def close(self) -> None:
        """Close the recording until the next training, with an update that the end of this one cut short."""
        if self._losses:
            self._write()
        self._begin()
        self._loss = 0.0
        self._recorder.close()

    def _read(self) -> None:
        self._texts = Texts(self._trainer)

    def _watch(self) -> None:
        """Hook up what shows answers."""
        self._hooks.wrap(self._trainer, "compute_loss", Part.ANSWERS, before=self._losing)
        for name in compat.CALCULATE:
            method = getattr(self._trainer, name, None)
            if callable(method):
                self._hooks.wrap(self._trainer, name, Part.ANSWERS, after=self._scoring(inspect.unwrap(method)))

    def _losing(self, call: Call) -> None:
        if self._training():
            self._see(argument(call, 1, "inputs"))

    def _see(self, inputs: Any) -> None:
        """The answers in the inputs of a loss that is trained on."""
        before = len(self._in_loss)  # pairs are numbered anew in each micro-batch
        self._in_loss += [
            replace(each, group=(before, each.group)) if each.role else each
            for each in seen.in_loss(inputs, self._texts.ends)
        ]

    def _scoring(self, method: Any) -> Callable[[Call, Any], None]:
        bound = method if inspect.ismethod(method) else method.__get__(self._trainer)

        def scored(call: Call, found: Any) -> None:
            if self._trainer.model.training:
                self._rewarded += seen.rewarded(bound, call, found, self._trainer, self._texts)

        return scored

    def _training(self) -> bool:
        """Whether a loss under way is trained on; else it is an evaluation's."""
        return torch.is_grad_enabled() and bool(self._trainer.model.training)

    def _trained(self, _call: Call, loss: Tensor) -> None:
        """The loss of a micro-batch as it is added to the step's."""
        self._loss += float(loss)

    def _write(self) -> None:
        """Write the whole update and begin the next; each part that fails is left out."""
        self._guard(Part.ANSWERS, self._write_answers)
        metrics = self._guard(Part.METRICS, self._numbers.close_update, self._losses) or {}
        metrics = (self._guard(Part.ANSWERS, self._scores) or {}) | metrics
        if self._weights is not None:
            metrics |= self._guard(Part.WEIGHTS, self._weights.close_update) or {}
        seconds, steps = metrics.get("step_time", 0.0), (self._first, self._last)
        self._guard(Part.RECORDING, self._recorder.end, self.update, metrics, seconds, steps)
        if self.teachers.keeps:
            self._guard(Part.TEACHERS, self.teachers.ends, self.update, self._guard(Part.TEACHERS, self._batch))
            if not self._guard.alive(Part.TEACHERS):
                self.teachers.leave()
        self.update += 1
        self._losses = []
        self._begin()

    def _batch(self) -> KeptBatch | None:
        """What the update learned from, if that was kept."""
        return None

    def _begin(self) -> None:
        """Nothing is known of the next update yet."""
        self._in_loss, self._rewarded = [], []

    def _answers(self) -> list[Seen]:
        """The update's answers as its loss showed them, or its rewards, if only these know what they earned."""
        scored = any(each.rewards for each in self._in_loss)
        return self._in_loss if scored or not self._rewarded else self._rewarded

    def _scores(self) -> dict[str, float]:
        """The mean reward of these answers, if this is the only process."""
        mean = seen.mean_reward(self._answers(), seen.weights_of(self._trainer))
        return {} if mean is None or self._trainer.accelerator.num_processes > 1 else {"reward": mean}

    def _write_answers(self) -> None:
        if answers := self._answers():
            seen.write(self._recorder, self.update, answers, seen.weights_of(self._trainer), self._texts)

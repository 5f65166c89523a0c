"""Keeps what the question who taught a token needs, from the first time somebody asks until the screen leaves.

Before that nothing is kept or computed. The first question gets the reason, and the next update can be asked about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlplay.record.saying import said_by
from rlplay.record.trl.guard import Call, Guard, Hooks, Part, argument
from rlplay.record.trl.teachers.adam import Adam
from rlplay.record.trl.teachers.as_it_was import lent
from rlplay.record.trl.teachers.kept import KeptBatch, KeptStep, KeptUpdate, kept_step
from rlplay.record.trl.teachers.refused import kept_bytes, too_large, why_not
from rlplay.record.trl.teachers.taught import taught
from rlplay.trace.numbers import byte_size
from rlplay.trace.teachers import Taught, Teach, refuse_teaching

MEANWHILE = "the trainer was asked something else meanwhile"


class TeacherWatch:
    """What a trainer's newest update was made of, while somebody asks; the trainer's own thread calls all methods."""

    def __init__(self, trainer: Any, guard: Guard, named: bool) -> None:
        """`named`: whether rlplay has the loss."""
        self._trainer, self._guard, self._named = trainer, guard, named
        self._adam: Adam | None = None  # while it keeps
        self._hooks = Hooks(guard)
        self._clip = 1.0
        self._steps: list[KeptStep] = []  # of the update under way
        self._kept: KeptUpdate | None = None
        self._lack = ""  # why the update under way cannot be asked about
        self._missing = ""  # the same of the one that has just ended

    @property
    def keeps(self) -> bool:
        """Whether somebody asks, so that what happens is kept."""
        return self._adam is not None

    def leave(self) -> None:
        """Nobody asks any more: forget everything, and take the hook away."""
        self._hooks.remove()
        self._hooks = Hooks(self._guard)
        self._adam, self._kept = None, None
        self._begin()

    def end(self) -> None:
        """The training is over: keep nothing of its trainer alive."""
        self.leave()
        self._trainer = None

    def step_begins(self) -> None:
        """The optimizer is about to take a step."""
        if self._adam is None:
            return
        self._kept = None
        self._steps.append(kept_step(self._adam, self._clip, first=not self._steps))
        self._clip = 1.0

    def lacks(self, reason: str) -> None:
        """Nobody can ask about the update under way."""
        self._lack = reason

    def ends(self, update: int, batch: KeptBatch | None) -> None:
        """An update ends; None: its answers are not on record, or not what was computed of them."""
        steps, lack = self._steps, self._lack
        self._begin()
        if batch is not None and not lack and len(steps) == len(batch.passes):
            self._kept = KeptUpdate(update, steps, batch)
        else:
            self._missing = lack or f"the tokens of update {update} or their derivatives are not on record"

    def taught(self, question: Teach, interrupted: Callable[[], bool]) -> Taught:
        """The answer, or the reason why there is none; the first question makes the next update one to ask about."""
        try:
            return self._taught(question, interrupted)
        except Exception as error:
            answer = refuse_teaching(question, said_by(error))
            assert isinstance(answer, Taught)
            return answer

    def _taught(self, question: Teach, interrupted: Callable[[], bool]) -> Taught:
        if not self._guard.alive(Part.TEACHERS):
            self.leave()
            raise ValueError("what shares need could not be kept; the trainer has said why")
        if self._adam is None:
            self._adam = self._keep()
            size = byte_size(kept_bytes(self._trainer, _steps(self._trainer)))
            raise ValueError(
                f"from now on the trainer keeps what this needs of each update, {size} of weights: let it take the "
                "next one (u), then ask"
            )
        kept = self._kept
        if question.by != question.update:
            raise ValueError("TRL keeps no earlier batch, so only the update's own tokens have shares")
        if kept is None:
            raise ValueError(self._missing or "nothing is kept of this update: let the trainer take the next one")
        if kept.number != question.update:
            raise ValueError(f"only the newest update, {kept.number}, is kept; pause, and ask once it is shown")
        if problem := too_large(self._adam):
            raise ValueError(problem)

        def go_on() -> None:
            if interrupted():
                raise ValueError(MEANWHILE)

        with lent(self._trainer, self._adam.parameters) as model:
            model.check(question.target)
            return taught(question, kept, self._adam, model, go_on)

    def _keep(self) -> Adam:
        """Keep what is needed from now on. Raises ValueError, one line, if that cannot be done."""
        if refused := why_not(self._trainer, self._named, _steps(self._trainer)):
            raise ValueError(refused)
        if not self._guard.alive(Part.NUMBERS):
            raise ValueError("the derivatives of the loss are not on record, and shares are made of them")
        self._hooks.wrap(self._trainer.accelerator, "clip_grad_norm_", Part.TEACHERS, after=self._clipped)
        return Adam(self._trainer.optimizer)

    def _clipped(self, call: Call, norm: Any) -> None:
        longest = float(argument(call, 1, "max_norm"))
        self._clip = min(1.0, longest / (float(norm) + 1e-6))

    def _begin(self) -> None:
        self._steps, self._clip, self._lack, self._missing = [], 1.0, "", ""


def _steps(trainer: Any) -> int:
    """The optimizer steps of an update."""
    args = trainer.args
    if not hasattr(args, "steps_per_generation"):
        return 1
    made = args.steps_per_generation * args.num_iterations
    return max(1, int(made // args.gradient_accumulation_steps))

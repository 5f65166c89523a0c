"""What the learner does in a lesson: a script that says `you` or sets an exercise waits here until it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rlplay.scenario.expect import ClaimResult
from rlplay.scenario.player import goes_back_to
from rlplay.scenario.script import Change, Exercise, PreferStep, RewindStep, ScreenVerb, Step, Train
from rlplay.ui.lesson.lesson_engine import LessonEngine

if TYPE_CHECKING:
    from rlplay.ui.lesson.script_view import ScriptView


class Learner:
    """Follows the engine and the verbs that are performed, and knows when something is done."""

    def __init__(self, view: ScriptView, engine: LessonEngine) -> None:
        self._view, self._engine = view, engine
        self._performed: set[str] = set()  # since the lesson began to wait
        self._waiting: tuple[Callable[[], bool], asyncio.Future[bool]] | None = None
        self._limit: asyncio.Timeout | None = None  # of this wait

    @property
    def at_work(self) -> bool:
        """Whether the lesson waits until the learner has done something."""
        return self._waiting is not None

    def performed(self, verb: str) -> None:
        """A key, the palette or the script itself has performed a verb."""
        self._performed.add(verb)
        self.looks_again()

    def looks_again(self) -> None:
        """The engine has said where it is, or a dialogue was closed."""
        if self._waiting is not None and not self._waiting[1].done() and self._waiting[0]():
            self._waiting[1].set_result(True)

    def gives_up(self) -> None:
        """The learner asks for help."""
        if self._waiting is not None and not self._waiting[1].done():
            self._waiting[1].set_result(False)

    async def does(self, step: Step, patience: float | None) -> bool:
        """Wait until what `step` does is done; False when the learner gives up, or after `patience` seconds."""
        return await self._wait(self._done(step), patience)

    def takes_time(self) -> None:
        """The learner took over: wait from now on without a time limit."""
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(None)

    def attempt(
        self, task: Exercise, missed: Callable[[list[ClaimResult]], None], reached: Callable[[], None]
    ) -> Callable[[], bool]:
        """A test for whether every claim of `task` holds and the engine rests.

        Claims that hold from the beginning solve nothing: they must have failed in between. Wherever the engine rests
        meanwhile, `missed` gets the outcomes; none before there is a number. `reached` is called once in a run whose
        claims hold, so that the run may end; where they must last, once they have had the time to.
        """
        failed, seen, told = False, self._engine.place, False
        lasts = self._lasting(task.updates)

        def solved() -> bool:
            nonlocal failed, seen, told
            outcomes, due = [self._view.check(each) for each in task.claims], lasts()
            holds = due and all(each.passed for each in outcomes)
            failed = failed or not holds
            ends = failed and (holds or (due and task.updates > 0))
            if ends and not self._engine.rests and not told:
                reached()
            told = not self._engine.rests and (told or ends)
            if not holds and self._engine.rests and self._engine.place != seen:
                seen = self._engine.place
                missed(_measured(outcomes) if due else [])
            return failed and holds and self._engine.rests

        return solved

    def _lasting(self, updates: int) -> Callable[[], bool]:
        """A test for whether the run has had `updates` updates since a setting was changed or it went back."""
        begun, last, held = self._engine.update, self._engine.update, self._engine.settings

        def lasts() -> bool:
            nonlocal begun, last, held
            now = self._engine.update
            if now < last or self._engine.settings != held:
                begun, held = now, self._engine.settings
            last = now
            return now - begun >= updates

        return lasts

    async def solves(self, attempt: Callable[[], bool], patience: float | None) -> bool:
        """Wait until the `attempt` has succeeded; False as above. It may be continued by another call."""
        return attempt() or await self._wait(attempt, patience)

    async def writes(self, exercise: str, patience: float | None) -> bool:
        """Wait until the learner's lines for a writing exercise agree with the engine's; False as above."""
        return await self._wait(lambda: self._view.wrote(exercise), patience)

    async def _wait(self, test: Callable[[], bool], patience: float | None) -> bool:
        self._performed.clear()
        self._waiting = test, asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(patience) as self._limit:
                return await self._waiting[1]
        except TimeoutError:
            return False
        finally:
            self._waiting = self._limit = None

    def _done(self, step: Step) -> Callable[[], bool]:
        """A test for whether what `step` does has been done since now."""
        (begun, phase), asked = self._engine.place, len(self._engine.asks)

        def performed(*verbs: str) -> bool:
            return not self._performed.isdisjoint(verbs)

        def done() -> bool:
            match step:
                case Train(until="update", count=count):
                    found = self._engine.rests and self._engine.place[0] == begun + count
                case Train(until="token"):
                    found = self._engine.rests and performed("token", "phase", "step", "update", "run")
                case Train():
                    found = self._engine.rests and self._engine.place != (begun, phase)
                case Change(settings):
                    found = settings.items() <= self._engine.settings.items()
                case RewindStep():
                    target = max(0, goes_back_to(step, begun, phase != "sample"))
                    found = self._engine.rests and performed("undo", "rewind") and self._engine.place[0] == target
                case PreferStep(choices):
                    found = len(self._engine.asks) <= max(0, asked - len(choices))
                case ScreenVerb(verb, argument):
                    found = performed(verb, f"{verb}_back") and self._view.shows(verb, argument)
                case _:
                    raise TypeError(f"a learner cannot be asked for {type(step).__name__}")
            return found

        return done


def _measured(outcomes: Sequence[ClaimResult]) -> list[ClaimResult]:
    """The outcomes, without a verdict on those that have no number yet; empty if none has one."""
    unknown = [each for each in outcomes if each.value is None]
    if len(unknown) == len(outcomes):
        return []
    return [ClaimResult(each.text, None, None, "not measured yet") if each in unknown else each for each in outcomes]

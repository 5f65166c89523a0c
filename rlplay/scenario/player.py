"""Plays a script: what each step means, on the screen (`ui/lesson/`) and without one (`engine/headless.py`).

A question stays open until the claims after it, or until the next words: a `Reveal` then checks the claims and answers
the question. What `you` asks the learner to do may lie in between: it brings the answer about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Protocol, cast

from rlplay.scenario.claim import Expect
from rlplay.scenario.expect import ClaimResult
from rlplay.scenario.script import (
    Ask,
    Change,
    Exercise,
    Moving,
    Pace,
    PreferStep,
    RewindStep,
    Say,
    ScreenVerb,
    Step,
    Train,
    Watch,
    WithholdStep,
    Write,
    You,
)
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import Choice


class Presenter(Protocol):
    """What a script shows, and to whom."""

    def say(self, text: str) -> None: ...
    def remark(self, text: str) -> None: ...  # during a run
    def check(self, claim: Expect) -> ClaimResult: ...
    async def inquire(self, claims: Sequence[Expect]) -> None: ...  # ask the engine what they need
    def reveal(self, outcomes: list[ClaimResult], about: Ask | Exercise | None) -> None: ...
    def look(self, verb: str, argument: Any) -> None: ...
    async def ask(self, question: Ask) -> bool: ...  # False if the question was withdrawn
    async def turn(self, task: You | Exercise) -> bool: ...  # whether the learner has done it
    async def write(self, task: Write) -> None: ...  # until it is solved


class ScriptEngine(Protocol):
    """The engine that a script moves; what returns False was cut short."""

    @property
    def update(self) -> int: ...  # finished
    @property
    def under_way(self) -> bool: ...  # whether another update is
    @property
    def asks(self) -> Sequence[int]: ...  # the pairs that wait for a label
    async def advance(self, until: Pace, count: int) -> bool: ...
    async def rewind(self, update: int) -> bool: ...  # -1: an undo at the start of the run
    async def set(self, settings: SomeSettings) -> None: ...
    async def prefer(self, pair: int, choice: Choice) -> None: ...
    async def withhold(self, tokens: list[int]) -> None: ...


@dataclass(frozen=True)
class Reveal:
    """Check `claims`, then answer the question that was `asked` before them, if there is one."""

    claims: list[Expect]
    asked: Ask | None


Action = Say | Ask | You | Exercise | Write | Watch | Moving | ScreenVerb | Reveal


class ScriptPlayer:
    """Where a script is: `at` of its `steps` were played, `asked` is the question that is open."""

    def __init__(self, steps: Iterable[Step], presenter: Presenter, engine: ScriptEngine) -> None:
        self.steps = tuple(steps)
        self.at = 0
        self.asked: Ask | None = None
        self.watched: list[Expect] = []  # what is said as soon as it holds
        self._presenter, self._engine = presenter, engine

    @property
    def finished(self) -> bool:
        """Whether every step was played; a question may still be open."""
        return self.at >= len(self.steps)

    @property
    def action(self) -> Action | None:
        """What is to be done now; None at the end."""
        step = None if self.finished else self.steps[self.at]
        if isinstance(step, Expect):
            claims = takewhile(lambda each: isinstance(each, Expect), self.steps[self.at :])
            return Reveal(list(cast("Iterator[Expect]", claims)), self.asked)
        if self.asked is not None and (step is None or isinstance(step, Say | Ask | Exercise | Write)):
            return Reveal([], self.asked)
        return step

    @property
    def more(self) -> bool:
        """Whether steps follow what is to be done now."""
        return self._next < len(self.steps)

    @property
    def _next(self) -> int:
        action = self.action
        return self.at + (len(action.claims) if isinstance(action, Reveal) else 1)

    async def play(self) -> bool:
        """Do what is to be done now; False if it was cut short, and is still to be done."""
        action = self.action
        if action is None or not await self.carry_out(action):
            return False
        self.at = self._next
        if isinstance(action, Ask | Reveal):
            self.asked = action if isinstance(action, Ask) else None
        return True

    async def carry_out(self, step: Step | Reveal) -> bool:
        """Carry out one step, wherever the script is; False if it was cut short."""
        match step:
            case Say(text):
                self.watched.clear()
                self._presenter.say(text)
            case Ask():
                return await self._presenter.ask(step)
            case You():
                return await self._presenter.turn(step) or await self.carry_out(step.step)
            case Exercise():
                return await self._exercise(step)
            case Write():
                await self._presenter.write(step)
            case Watch(claim):
                self.watched.append(claim)
            case Train(until, count):
                return await self._engine.advance(until, count)
            case RewindStep():
                return await self._engine.rewind(goes_back_to(step, self._engine.update, self._engine.under_way))
            case Change() | PreferStep() | WithholdStep():
                await self._arrange(step)
            case ScreenVerb(verb, argument):
                self._presenter.look(verb, argument)
            case Reveal(claims, asked):
                await self._presenter.inquire(claims)
                self._reveal(claims, asked)
        return True

    async def _arrange(self, step: Change | PreferStep | WithholdStep) -> None:
        match step:
            case Change(settings):
                await self._engine.set(settings)
            case PreferStep(choices):
                await self._prefer(choices)
            case WithholdStep(tokens):
                await self._engine.withhold(tokens)

    async def _exercise(self, step: Exercise) -> bool:
        if not await self._presenter.turn(step):
            for each in step.solution:
                if not await self.carry_out(each):
                    return False
        self._reveal(step.claims, step)
        return True

    async def _prefer(self, choices: Sequence[Choice]) -> None:
        for number, choice in enumerate(choices):
            waiting = self._engine.asks
            if number and not waiting:  # identical answers need no label, so there may be fewer pairs
                break
            await self._engine.prefer(next(iter(waiting), 0), choice)

    def _reveal(self, claims: Sequence[Expect], about: Ask | Exercise | None) -> None:
        self._presenter.reveal([self._presenter.check(claim) for claim in claims], about)

    def speak_up(self) -> None:
        """Say what waited for its claim to hold."""
        for claim in [each for each in self.watched if self._presenter.check(each).passed]:
            self.watched.remove(claim)
            self._presenter.remark(claim.text)


def goes_back_to(step: RewindStep, finished: int, under_way: bool) -> int:
    """The update to whose end `step` goes back, of a run that has `finished` so many; -1 at the start of the run.

    An undo gives up the update that is `under_way`; else it takes back the last one that is finished.
    """
    if step.update is not None:
        return step.update
    return finished if under_way else finished - 1


def begins_within(action: Action) -> bool:
    """Whether `action` needs the run where the script left it within an update: every step that moves the engine does,
    but for whole updates, which come to the same."""
    if isinstance(action, You):
        return begins_within(action.step)
    whole = isinstance(action, Train) and action.until == "update"
    return not (whole or isinstance(action, Say | Ask | Write | Watch | ScreenVerb | Reveal))

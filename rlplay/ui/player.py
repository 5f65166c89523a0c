"""Plays a scenario's script on the screen: up to the next text at each key press, or hands-free.

The player does not know Textual. It sees the screen as a `Stage`, so that tests need no screen. The app passes on
every `Status`, every answer of the user, and the news that the user took over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

from rlplay.link.messages import Advance, Status
from rlplay.scenario.claim import Expect
from rlplay.scenario.expect import Outcome
from rlplay.scenario.interpreter import Interpreter, Reveal, begins_within, goes_back_to
from rlplay.scenario.script import (
    Ask,
    Change,
    Exercise,
    Prefer,
    Rewind,
    Say,
    ScreenVerb,
    Step,
    Train,
    Watch,
    You,
)
from rlplay.trace.update import PHASES, Phase
from rlplay.ui.learner import Learner
from rlplay.ui.lesson_engine import LessonEngine, differing
from rlplay.ui.lesson_stage import Stage
from rlplay.ui.words.lesson import Place, reading_time, solved_by, turned, verdict, where
from rlplay.user_preferences import LessonProgress

BEGIN = "`t` plays the lesson · `space` runs freely"
TAKE_OVER = "any key: take over"
NEXT = "`t` next"
LAST = "Lesson complete · `l` next lesson"


class Player:
    """The progress of a script."""

    def __init__(self, steps: Sequence[Step], stage: Stage, pace: Callable[[str], float] | None = None) -> None:
        """`pace` gives the seconds a text takes to read, for hands-free play."""
        self.hands_free = False
        self._pace = pace or reading_time
        self._said = ""
        self._script = Interpreter(steps)
        self._stage = stage
        self._choice: int | None = None  # what was predicted to the question that is open
        self._answers: dict[str, str] = {}  # the choice that the user made, by question
        self._target: int | None = None
        self._engine = LessonEngine(stage.send)
        self._answer: asyncio.Future[int | None] | None = None
        self.learner = Learner(stage)
        self._watched: list[Expect] = []  # what is said as soon as it holds
        self._task = "", ""  # what the learner is to do, and which key helps
        self._ending: asyncio.Future[None] | None = None  # the sending of what ends a run, held until it is sent
        self._playing = False
        self._left: Place = (0, "sample")  # where the engine was at the script's last text
        self._begun: dict[str, Any] = {}  # the settings that the run began with
        self._held: dict[str, Any] = {}  # the settings at the script's last text
        self._way: list[Step] = []  # the script's steps since the end of the last update
        self._ahead: Place | None = None  # where the first batch is that was sampled before the lesson began
        self._lowest = 0  # the earliest update that the run went back to since then
        self._offered = False
        self._goal: int | None = None  # the step to which it goes without waiting
        self._words: tuple[str, list[Outcome], str] = ("", [], "")
        self._colour: Any = None

    @property
    def finished(self) -> bool:
        """Whether every step has been played."""
        return self._script.finished

    @property
    def played(self) -> LessonProgress:
        """How far it was played, and the user's answers."""
        return LessonProgress(self._script.at, len(self._script.steps), dict(self._answers))

    @property
    def playing(self) -> bool:
        """Whether a step is running or a question is waiting for its answer."""
        return self._playing

    @property
    def begun(self) -> bool:
        """Whether anything has been played."""
        return self._script.at > 0 or self._playing

    @property
    def waits_for(self) -> str:
        """What a script that is `playing` waits for."""
        if self._target is None:
            return "Waiting for the engine; the lesson then continues by itself."
        return f"The lesson continues by itself after update {self._target}; this is update {self._engine.update}."

    def heard(self, status: Status) -> None:
        """Take the engine's status."""
        self._ahead = None if status.update else self._ahead
        if not self._playing:
            self._lowest = min(self._lowest, status.update)
        if not self._begun and not status.update:
            self._begun = self._held = status.settings
        self._engine.heard(status)
        self._tell_how_far()
        self._speak_up()
        self.learner.heard(status)

    def answered(self, choice: int) -> None:
        """Take the user's prediction."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(choice)

    def looks_ahead(self) -> None:
        """The screen has the first batch sampled; the lesson goes back before it moves the engine within an update."""
        self._ahead = (0, "score")

    def take_over(self) -> None:
        """The user took over: end hands-free play and withdraw an unanswered question."""
        watched, self.hands_free = self.hands_free, False
        if self.learner.at_work:
            if watched:
                self.learner.takes_time()
                self._show_task(self._words[1])
            return
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)
        if not self._playing:
            self._let_go_of_colour()
            self._stage.over()

    async def play(self) -> None:
        """Carry out steps up to the next text, or until the user stops the engine.

        If the user moved the engine meanwhile, the next steps may not fit. The first call then says so, and the next
        call goes back.
        """
        if self._playing:
            return
        self._playing = True
        try:
            if self._wandered and not await self._find_back():
                return
            self._offered = False
            while (action := self._script.action) is not None and self._script.at != self._goal:
                if isinstance(action, Reveal):
                    self._reveal(action)
                    return
                before = self._engine.update
                if not await self._carry_out(action):
                    return
                self._note(action.step if isinstance(action, You) else action, before)
                self._script.done()
                if isinstance(action, Say | Exercise):
                    return
        finally:
            self._playing = False
            if not self._offered:
                self._left, self._lowest = self._engine.place, self._engine.update
                self._held = self._engine.settings

    def start_over(self) -> None:
        """Forget the answers; `play` then begins with the first step. No call of it may be under way."""
        self._script, self._answers = Interpreter(self._script.steps), {}
        self._left, self._way, self._held = (0, "sample"), [], self._begun
        self._target, self._offered = None, False
        self._watched.clear()

    async def demo(self) -> None:
        """Play hands-free, with time to read, until the end or until the user takes over."""
        self.hands_free = True
        while self.hands_free and not self.finished:
            await self.play()
            await asyncio.sleep(self._pace(self._said))
        self._let_go_of_colour()

    async def go_to(self, step: int) -> None:
        """Play up to the end of `step` steps without waiting for the user, or until the user takes over."""
        demo, pace = self.hands_free, self._pace
        self.hands_free, self._goal, self._pace = True, step, lambda _text: 0.0
        try:
            while self.hands_free and self._script.at < step and not self.finished:
                await self.play()
        finally:
            self._goal, self._pace = None, pace
        if self.hands_free:
            self.hands_free = demo
            text, outcomes, _ = self._words
            self._show(text, LAST if self.finished else NEXT, outcomes)

    @property
    def _wandered(self) -> bool:
        """Whether the run is not as the script left it; a run stopped by the user still has its target."""
        return self._target is None and not self.finished and (self._moved or bool(self._changed))

    @property
    def _moved(self) -> bool:
        return self._engine.place not in (self._left, self._ahead)

    @property
    def _changed(self) -> dict[str, Any]:
        """The settings of the script that were changed since."""
        return differing(self._held, self._engine.settings)

    def _note(self, step: Step, before: int) -> None:
        """Record the steps since the end of the last update; `before` is the update number before `step`."""
        if isinstance(step, Rewind) or (isinstance(step, Train) and self._engine.update != before):
            begun = PHASES.index(cast(Phase, self._engine.place[1]))
            self._way = [Train("phase", begun)] if begun else []
        elif isinstance(step, Train | Change | Prefer):
            self._way.append(step)

    async def _find_back(self) -> bool:
        """Offer to go back to the lesson; on the second call, go back. True if the script can then continue."""
        undone = self._lowest < self._left[0]
        if not self._offered:
            self._offered = True
            on = "`t` start the lesson again" if undone else "`t` back to the lesson"
            changed = "" if undone else turned(self._changed, begins=not self._script.at)
            begun = f"The lesson stopped {where(self._left)}" if self._script.at else "The lesson begins at the start"
            lost = ", which is undone" if undone else ""
            place = f"{begun}{lost}. This is {where(self._engine.place)}. " if self._moved else ""
            self._stage.say(f"{place}{changed}".strip(), [], on)
            return False
        self._offered, self._ahead = False, None
        if undone:
            self.start_over()
        await self._engine.rewind(self._left[0])
        for step in self._way:
            await self._carry_out(step)
        await self._engine.set(self._held)
        if self._script.at:
            if self._colour is not None:
                self._stage.look("lens", self._colour)
            self._stage.say(*self._words)
        return not self._script.at

    def _let_go_of_colour(self) -> None:
        """After the lesson ends, return from its colour to the automatic one."""
        if self.finished and self._colour is not None:
            self._colour = None
            self._stage.look("lens", "auto")

    async def _carry_out(self, step: Step) -> bool:
        if self._ahead is not None and begins_within(step):
            self._ahead = None
            await self._engine.rewind(0)
        match step:
            case Say():
                self._say(step.text, [], more=self._script.at + 1 < len(self._script.steps))
            case Ask():
                return await self._ask(step)
            case You():
                return await self._you(step)
            case Exercise():
                await self._exercise(step)
            case Watch():
                self._watched.append(step.claim)
            case Train():
                return await self._go(step)
            case Change():
                await self._engine.set(step.settings)
            case Prefer():
                for choice in step.choices:
                    await self._engine.prefer(choice)
            case Rewind():
                under_way = any(isinstance(each, Train) for each in self._way)
                await self._engine.rewind(max(0, goes_back_to(step, self._engine.update, under_way)))
            case ScreenVerb():
                self._colour = step.argument if step.verb == "lens" else self._colour
                self._stage.look(step.verb, step.argument)
        return True

    async def _ask(self, step: Ask) -> bool:
        """Wait for a prediction (hands-free: for the reading time); False if the question was withdrawn."""
        self._answer = asyncio.get_running_loop().create_future()
        later = self._script.steps[self._script.at :]
        quiz = not any(isinstance(each, Expect) for each in later)
        self._stage.ask(step.question, step.choices, "answer" if quiz else "prediction")
        seconds = self._pace(f"{step.question} {' '.join(step.choices)}") if self.hands_free else None
        try:
            choice = await asyncio.wait_for(self._answer, seconds)
        except TimeoutError:
            self._choice = None
            self._stage.say(step.question, [], f"watch · {TAKE_OVER}")
            return True
        finally:
            self._answer = None
        if choice is None:
            self._stage.over()
            return False
        self._choice = choice
        return True

    async def _you(self, step: You) -> bool:
        """Wait until the learner has done what `step` does, or do it; False if the engine stopped before its target."""
        self._set_task(step.text, "`t` do it for me")
        if await self.learner.does(step.step, self._patience(step.text)):
            return True
        if not await self._carry_out(step.step):
            return False
        if isinstance(step.step, ScreenVerb):
            await self._stage.viewed(self._patience(step.text))
        return True

    async def _exercise(self, step: Exercise) -> None:
        """Wait until the learner has made every claim hold; on request, give the hint and then the solution."""
        attempt = self.learner.attempt(step.claims, self._show_task, self._end_run)
        self._set_task(step.text, "Your turn · `t` hint")
        solved = await self.learner.solves(attempt, self._patience(step.text))
        if not solved and not self.hands_free:
            self._set_task(f"{step.text} Hint: {step.hint}", "Your turn · `t` solution")
            solved = await self.learner.solves(attempt, None)
        if not solved:
            for each in step.solution:
                await self._carry_out(each)
        self._way = []
        outcomes = [self._stage.check(claim) for claim in step.claims]
        more = self._script.at + 1 < len(self._script.steps)
        self._say("✓ Solved." if solved else f"{step.hint} The solution: {solved_by(step.solution)}", outcomes, more)

    def _set_task(self, text: str, on: str) -> None:
        self._task = text, on
        self._show_task([])

    def _show_task(self, outcomes: Sequence[Outcome]) -> None:
        """Show what the learner is to do, with the outcomes of the last try."""
        text, on = self._task
        self._show(text, TAKE_OVER if self.hands_free else on, outcomes)

    def _end_run(self) -> None:
        """Let a run that goes on by itself rest after the update under way."""
        self._ending = asyncio.ensure_future(self._stage.send(Advance("update", 1)))

    def _patience(self, text: str) -> float | None:
        """Seconds to wait for the learner: for ever, or hands-free the time to read `text`."""
        return self._pace(text) if self.hands_free else None

    def _speak_up(self) -> None:
        """Say what was waiting for its claim to hold."""
        for claim in [each for each in self._watched if self._stage.check(each).passed]:
            self._watched.remove(claim)
            self._show(claim.text, "")
            self._tell_how_far()

    async def _go(self, step: Train) -> bool:
        """Advance the engine; False if it stopped before the script's target."""
        count = step.count
        if step.until == "update":
            self._target = self._engine.update + count if self._target is None else self._target
            count = self._target - self._engine.update
        if count > 0:
            begun = False

            def ended(status: Status) -> bool:
                nonlocal begun
                begun = begun or status.running
                return begun and not status.running and not status.waits

            self._tell_how_far()
            await self._engine.until(Advance(step.until, count), ended)
        target, reached = self._target, self._engine.finished
        if target is not None and self._engine.update < target and not reached:
            self._stage.over()
            return False
        self._target = None
        return True

    def _tell_how_far(self) -> None:
        if self._playing and self._target is not None and self._engine.update < self._target:
            self._stage.under_way(self._engine.update, self._target)

    def _reveal(self, action: Reveal) -> None:
        outcomes, words = [self._stage.check(claim) for claim in action.claims], ""
        if action.asked is not None:
            words = verdict(action.asked, self._choice)
            if self._choice is not None:
                self._answers[action.asked.question] = action.asked.choices[self._choice]
        self._script.done()
        self._say(words, outcomes, more=not self.finished)

    def _show(self, text: str, hint: str, outcomes: Sequence[Outcome] = ()) -> None:
        """Show a text that is not the script's last word before the next key press."""
        self._words = text, list(outcomes), hint
        self._stage.say(*self._words)

    def _say(self, text: str, outcomes: list[Outcome], more: bool) -> None:
        self._watched.clear()
        self._said = " ".join([text, *(outcome.finding for outcome in outcomes)])
        on = TAKE_OVER if self.hands_free else NEXT
        self._words = text, outcomes, on if more else LAST
        self._stage.say(*self._words)

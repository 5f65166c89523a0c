"""Plays a scenario's script on the screen: up to the next text at each key press, or hands-free.

The lesson does not know Textual. It sees the screen as a `ScriptView`, so that tests need no screen. The app passes on
every `Status`, every answer of the user, and the news that the user took over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from rlplay.link.messages import Advance, AnyCommand, Status
from rlplay.scenario.claim import Expect
from rlplay.scenario.expect import ClaimResult
from rlplay.scenario.player import Reveal, ScriptPlayer, begins_within
from rlplay.scenario.script import Ask, Exercise, Say, ScreenVerb, Step, Train, Write, You
from rlplay.trace.kinds import SomeSettings
from rlplay.ui.lesson.learner import Learner
from rlplay.ui.lesson.lesson_engine import LessonEngine, differing
from rlplay.ui.lesson.verdicts import Place, reading_time, solved_by, turned, verdict, where
from rlplay.user_preferences import LessonProgress

if TYPE_CHECKING:
    from rlplay.ui.lesson.script_view import ScriptView

BEGIN = "`t` plays the lesson · `space` runs freely"
TAKE_OVER = "any key: take over"
NEXT = "`t` next"
LAST = "Lesson complete · `l` next lesson"


class Lesson:
    """The progress of a script, as its `Presenter`."""

    def __init__(self, steps: Sequence[Step], view: ScriptView, pace: Callable[[str], float] | None = None) -> None:
        """`pace` gives the seconds a text takes to read, for hands-free play."""
        self.hands_free = False
        self._pace = pace or reading_time
        self._view, self.check = view, view.check
        self._choice: int | None = None  # what was predicted to the question that is open
        self._alone = False  # whether the learner needed no help with the last task
        self._answers: dict[str, str] = {}  # the choice that the user made, by question
        self._engine = LessonEngine(self._send)
        self._script = ScriptPlayer(steps, self, self._engine)
        self._answer: asyncio.Future[int | None] | None = None
        self.learner = Learner(view, self._engine)
        self._task = "", ""  # what the learner is to do, and which key helps
        self._ending: asyncio.Future[None] | None = None  # the sending of what ends a run, held until it is sent
        self.playing = False  # whether a step is running or a question is waiting for its answer
        self._left: Place = (0, "sample")  # where the engine was at the script's last text
        self._begun: SomeSettings = {}  # the settings that the run began with
        self._held: SomeSettings = {}  # the settings at the script's last text
        self._ahead: Place | None = None  # where the first batch is that was sampled before the lesson began
        self._lowest = 0  # the earliest update that the run went back to since then
        self._offered = False
        self._goal: int | None = None  # the step to which it goes without waiting
        self._words: tuple[str, list[ClaimResult], str] = ("", [], "")
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
    def begun(self) -> bool:
        """Whether anything has been played."""
        return self._script.at > 0 or self.playing

    @property
    def waits_for(self) -> str:
        """What a script that is `playing` waits for."""
        if self._engine.target is None:
            return "Waiting for the engine; the lesson then continues by itself."
        return (
            f"The lesson continues by itself after update {self._engine.target}; this is update {self._engine.update}."
        )

    def receive(self, status: Status) -> None:
        """Take the engine's status."""
        self._ahead = None if status.update else self._ahead
        if not self.playing:
            self._lowest = min(self._lowest, status.update)
        if not self._begun and not status.update:
            self._begun = self._held = status.settings
        self._engine.receive(status)
        self._tell_how_far()
        self._script.speak_up()
        self.learner.looks_again()

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
        if not self.playing:
            self._let_go_of_colour()
            self._view.over()

    async def play(self) -> None:
        """Carry out steps up to the next text, or until the user stops the engine.

        If the user moved the engine meanwhile, the next steps may not fit. The first call then says so, and the next
        call goes back.
        """
        if self.playing:
            return
        self.playing = True
        try:
            if self._wandered and not await self._find_back():
                return
            self._offered = False
            while (action := self._script.action) is not None and self._script.at != self._goal:
                if self._ahead is not None and begins_within(action):
                    self._ahead = None
                    await self._engine.rewind(0)
                before = self._engine.update
                if not await self._script.play():
                    self._view.over()
                    return
                if isinstance(action, Reveal | Say | Exercise | Write):
                    return
                self._engine.note(action.step if isinstance(action, You) else action, before)
        finally:
            self.playing = False
            if not self._offered:
                self._left, self._lowest = self._engine.place, self._engine.update
                self._held = self._engine.settings

    def start_over(self) -> None:
        """Forget the answers; `play` then begins with the first step. No call of it may be under way."""
        self._script, self._answers = ScriptPlayer(self._script.steps, self, self._engine), {}
        self._left, self._engine.way, self._held = (0, "sample"), [], self._begun
        self._engine.target, self._offered = None, False

    async def demo(self) -> None:
        """Play hands-free, with time to read, until the end or until the user takes over."""
        self.hands_free = True
        while self.hands_free and not self.finished:
            await self.play()
            text, outcomes, _ = self._words
            await asyncio.sleep(self._pace(" ".join([text, *(outcome.finding for outcome in outcomes)])))
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
        return self._engine.target is None and not self.finished and (self._moved or bool(self._changed))

    @property
    def _moved(self) -> bool:
        return self._engine.place not in (self._left, self._ahead)

    @property
    def _changed(self) -> SomeSettings:
        """The settings of the script that were changed since."""
        return differing(self._held, self._engine.settings)

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
            self._view.say(f"{place}{changed}".strip(), [], on)
            return False
        self._offered, self._ahead = False, None
        if undone:
            self.start_over()
        await self._engine.rewind(self._left[0])
        for step in self._engine.way:
            await self._script.carry_out(step)
        await self._engine.set(self._held)
        if self._script.at:
            if self._colour is not None:
                self._view.look("lens", self._colour)
            self._view.say(*self._words)
        return not self._script.at

    def _let_go_of_colour(self) -> None:
        """After the lesson ends, return from its colour to the automatic one."""
        if self.finished and self._colour is not None:
            self._colour = None
            self._view.look("lens", "auto")

    # What the script asks for

    def say(self, text: str) -> None:
        """Show a text; the question before it is settled."""
        self._view.guess("", 0, None)
        self._say(text, [])

    async def ask(self, question: Ask) -> bool:
        """Wait for a prediction (hands-free: for the reading time); False if the question was withdrawn."""
        self._answer, self._choice = asyncio.get_running_loop().create_future(), None
        later = self._script.steps[self._script.at :]
        quiz = not any(isinstance(each, Expect) for each in later)
        self._view.ask(question.question, question.choices, "answer" if quiz else "prediction")
        self._view.guess(question.curve, _updates_ahead(question, later), None)
        try:
            async with asyncio.timeout(self._patience(f"{question.question} {' '.join(question.choices)}")):
                self._choice = await self._answer
        except TimeoutError:
            self._view.say(question.question, [], f"watch · {TAKE_OVER}")
            return True
        finally:
            self._answer = None
        if self._choice is not None and question.ways:
            self._view.guess(question.curve, _updates_ahead(question, later), question.ways[self._choice])
        return self._choice is not None

    async def turn(self, task: You | Exercise) -> bool:
        """Wait until the learner has done what is asked for; False if the lesson is to do it."""
        self._alone = await (self._you(task) if isinstance(task, You) else self._exercise(task))
        return self._alone

    async def _you(self, task: You) -> bool:
        self._set_task(task.text, "`t` do it for me")
        began, held = self._engine.place, self._engine.settings
        if await self.learner.does(task.step, self._patience(task.text)):
            return True
        if isinstance(task.step, ScreenVerb):
            self.look(task.step.verb, task.step.argument)
            await self._view.viewed(self._patience(task.text))
            return True
        await self._go_back_to(began, held)
        return False

    async def _go_back_to(self, place: Place, held: SomeSettings) -> None:
        """Where the learner went elsewhere before they asked for help: back to where the step was set."""
        if self._engine.place != place and self._engine.update >= place[0]:
            await self._engine.rewind(place[0])
            for step in self._engine.way:
                await self._script.carry_out(step)
        if differing(held, self._engine.settings):
            await self._engine.set(held)

    async def _exercise(self, task: Exercise) -> bool:
        """On request, give the hint and then the solution."""
        attempt = self.learner.attempt(task, self._show_task, self._end_run)
        self._set_task(task.text, "Your turn · `t` hint")
        solved = await self.learner.solves(attempt, self._patience(task.text))
        if not solved and not self.hands_free:
            self._set_task(f"{task.text} Hint: {task.hint}", "Your turn · `t` solution")
            solved = await self.learner.solves(attempt, None)
        return solved

    async def write(self, task: Write) -> None:
        """Open the editor and wait until the learner's lines agree; on request, give the hints and the solution."""
        if self._goal is not None:
            return
        self._set_task(task.text, "`J` write · `t` hint")
        self._view.look("write", task.exercise)
        while not await self.learner.writes(task.exercise, self._patience(task.text)):
            if self.hands_free:
                await self._view.write_solution(self._pace(task.text))
                break
            self._view.help_to_write(task.exercise)
        self._say("✓ Solved.", [])

    async def inquire(self, claims: Sequence[Expect]) -> None:
        """Ask the engine what the claims need and nobody has asked yet."""
        for claim in claims:
            if (question := self._view.question(claim)) is not None:
                await self._engine.ask(question, partial(self._view.question, claim))

    def reveal(self, outcomes: list[ClaimResult], about: Ask | Exercise | None) -> None:
        """Show the outcomes of claims, with the answer to a question or the solution of an exercise."""
        match about:
            case Ask():
                self._say(verdict(about, self._choice), outcomes)
                if self._choice is not None:
                    self._answers[about.question] = about.choices[self._choice]
            case Exercise():
                self._engine.way = []
                solution = f"{about.hint} The solution: {solved_by(about.solution)}"
                self._say("✓ Solved." if self._alone else solution, outcomes)
            case None:
                self._say("", outcomes)

    def look(self, verb: str, argument: Any) -> None:
        """Carry out a verb of the screen."""
        self._colour = argument if verb == "lens" else self._colour
        self._view.look(verb, argument)

    def remark(self, text: str) -> None:
        """Show a text during a run."""
        self._show(text, "")
        self._tell_how_far()

    def _set_task(self, text: str, on: str) -> None:
        self._task = text, on
        self._show_task([])

    def _show_task(self, outcomes: Sequence[ClaimResult]) -> None:
        """Show what the learner is to do, with the outcomes of the last try."""
        text, on = self._task
        self._show(text, TAKE_OVER if self.hands_free else on, outcomes)

    def _end_run(self) -> None:
        """Let a run that goes on by itself rest after the update under way."""
        self._ending = asyncio.ensure_future(self._view.send(Advance("update", 1)))

    def _patience(self, text: str) -> float | None:
        """Seconds to wait for the learner: for ever, or hands-free the time to read `text`."""
        return self._pace(text) if self.hands_free else None

    async def _send(self, command: AnyCommand) -> None:
        self._tell_how_far()
        await self._view.send(command)

    def _tell_how_far(self) -> None:
        if self.playing and self._engine.target is not None and self._engine.update < self._engine.target:
            self._view.under_way(self._engine.update, self._engine.target)

    def _show(self, text: str, hint: str, outcomes: Sequence[ClaimResult] = ()) -> None:
        """Show a text that is not the script's last word before the next key press."""
        self._words = text, list(outcomes), hint
        self._view.say(*self._words)

    def _say(self, text: str, outcomes: list[ClaimResult]) -> None:
        self._script.watched.clear()
        on = TAKE_OVER if self.hands_free else NEXT
        self._words = text, outcomes, on if self._script.more else LAST
        self._view.say(*self._words)


def _updates_ahead(question: Ask, steps: Sequence[Step]) -> int:
    """The updates that the steps after the question take before the lesson speaks again."""
    after = (step for step in steps if step is not question)
    silent = takewhile(lambda step: not isinstance(step, Say | Ask | Exercise | Write), after)
    done = (step.step if isinstance(step, You) else step for step in silent)
    return sum(step.count for step in done if isinstance(step, Train) and step.until == "update")

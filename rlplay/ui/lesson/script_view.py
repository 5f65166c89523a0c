"""The screen as a scenario's script sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from rlplay.link.messages import AnyCommand
from rlplay.scenario.claim import Expect, MetricValue, ShareValue
from rlplay.scenario.expect import ClaimResult, check
from rlplay.scenario.script import Way
from rlplay.scenario.shares import question_of
from rlplay.trace.teachers import TakeAway, Teach
from rlplay.ui.main.playground import Playground
from rlplay.ui.plot.guess import Guess

_RUNS_WITHIN = 1.5
"""Seconds after which lines that were put into the editor have run."""


class ScriptView:
    """What a lesson sees of the screen: the session and the narrator."""

    def __init__(self, playground: Playground) -> None:
        self._playground = playground
        self.waits = False  # whether the lesson waits until a dialogue is closed
        self._back = asyncio.Event()
        self._metrics: dict[str, str] = {}  # of the claims checked so far, by their texts

    async def send(self, command: AnyCommand) -> None:
        """Pass a command to the engine."""
        await self._playground.send(command)

    def look(self, verb: str, argument: Any) -> None:
        """Carry out a verb of the screen; a walk that nobody makes is the best one."""
        argument = "best" if verb == "walk" else argument
        self._playground.app.call_later(self._playground.perform, verb, argument)

    def say(self, text: str, outcomes: Sequence[ClaimResult], hint: str) -> None:
        """Show a scenario's text with the curves that it speaks of, and return to the live update."""
        self._playground.session.back_to_live()
        spoken = (self._metrics.get(words) for words in (text, *(outcome.text for outcome in outcomes)))
        self._playground.exhibit([metric for metric in spoken if metric is not None])
        self._playground.panels.narrator.say(text, outcomes, hint)

    def ask(self, question: str, choices: Sequence[str], wanted: str) -> None:
        """Ask a question about the live update, for a "prediction" or an "answer"; see `Lesson.answered`."""
        self._playground.session.back_to_live()
        self._playground.panels.narrator.ask(question, choices, wanted)

    def guess(self, metric: str, ahead: int, way: Way | None) -> None:
        """Light the curve of a question, answered in `ahead` updates, and draw the learner's guess; "": no curve."""
        play = self._playground
        history = play.session.run.history
        now = max(history.updates, default=0)
        guess = Guess(history.named(metric), now, now + ahead, way) if metric else None
        if guess == play.guess:
            return
        play.guess = guess
        if metric and way is None:
            play.exhibit([metric])
        play.session.touch("history")

    def under_way(self, update: int, target: int) -> None:
        """Show the progress of the engine towards the update at which the script continues."""
        self._playground.panels.narrator.under_way(update, target)

    def check(self, expect: Expect) -> ClaimResult:
        """Check a claim against the records so far."""
        if isinstance(expect.quantity, MetricValue):
            self._metrics[expect.text] = expect.quantity.metric.removeprefix("eval_")
        session = self._playground.session
        return check(expect, session.run.history, session.run.ended, session.teachers.answer)

    def question(self, claim: Expect) -> Teach | TakeAway | None:
        """What the engine must be asked before a claim can be checked; None if nothing is missing."""
        session = self._playground.session
        if not isinstance(claim.quantity, ShareValue) or session.run.ended is None:
            return None
        try:
            question = question_of(claim.quantity, session.run.ended)
        except ValueError:  # which the check says
            return None
        return question if session.teachers.answer(question) is None else None

    def shows(self, verb: str, argument: Any) -> bool:
        """Whether the screen is as the verb with this argument leaves it, as far as that can be seen.

        A dialogue has been shown once it is closed again: what it is opened for happens in it.
        """
        if not self._undisturbed:
            return False
        if verb in ("walk", "paint"):
            panels = self._playground.panels.curves.panels
            return any(panel.walk_ended if verb == "walk" else panel.painted for panel in panels)
        if verb == "probe" and isinstance(argument, dict) and "force" in argument:
            return self._playground.session.probing.texts[argument.get("token", 0) :][:1] == [argument["force"]]
        if verb == "teachers" and isinstance(argument, dict) and "prompt" in argument:
            return self._taught(argument)
        return verb != "lens" or argument is None or self._playground.lens.name == argument

    def _taught(self, named: dict[str, Any]) -> bool:
        """Whether the engine was asked who taught the token that a script names, or what some answers did to it."""
        session, without = self._playground.session, named.get("without")
        quantity = ShareValue(
            named["candidate"],
            named["prompt"],
            named.get("token", 0),
            without=without,
            answers=named.get("answers", ""),
        )
        try:
            ended = session.run.ended
            return ended is not None and session.teachers.answer(question_of(quantity, ended)) is not None
        except ValueError:
            return True

    def wrote(self, exercise: str) -> bool:
        """Whether a writing exercise was solved on this screen, and its editor is closed."""
        return exercise in self._playground.session.writing.solved and self._undisturbed

    def help_to_write(self, exercise: str) -> None:
        """Open the editor with one hint more, or with the solution."""
        self._playground.session.writing.open(exercise)
        self._playground.session.writing.more_help()
        self.look("write", exercise)

    async def write_solution(self, seconds: float) -> None:
        """Show the solution in the editor for `seconds`, at least until it has run, and close the editor."""
        self._playground.session.writing.show_solution()
        await asyncio.sleep(max(seconds, _RUNS_WITHIN))
        self._close_dialogues()

    @property
    def _undisturbed(self) -> bool:
        return self._playground.at_home

    def back(self) -> None:
        """The last dialogue was closed."""
        self._back.set()

    async def viewed(self, seconds: float | None) -> None:
        """Wait until the user has closed the dialogue that `look` opened; close it after `seconds`."""
        self.waits = True
        try:
            opened = asyncio.Event()
            self._playground.app.call_later(opened.set)  # after what `look` has asked for
            await opened.wait()
            async with asyncio.timeout(seconds):
                while not self._undisturbed:
                    self._back.clear()
                    await self._back.wait()
        except TimeoutError:
            self._close_dialogues()
        finally:
            self.waits = False

    def _close_dialogues(self) -> None:
        for screen in reversed(self._playground.app.screen_stack[1:]):
            screen.dismiss(None)

    def over(self) -> None:
        """The script has released the screen."""
        self._playground.guess = None
        self._playground.panels.narrator.release()

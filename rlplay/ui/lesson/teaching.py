"""The lesson of the run on the screen: when it plays, and what the user's keys do to it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any

from rlplay import user_preferences
from rlplay.link.messages import Advance, Set, Status
from rlplay.scenario.reproduction import Reproduction, bundled_name, scenario_of
from rlplay.scenario.script import parse
from rlplay.scenario.share import START, Moment
from rlplay.trace.questions import Imagined
from rlplay.ui.labels.labels import label
from rlplay.ui.lesson.lesson_on_screen import BEGIN, Lesson
from rlplay.ui.lesson.script_view import ScriptView
from rlplay.ui.lesson.verdicts import no_lesson
from rlplay.ui.main.playground import Feature, Playground


@dataclass(frozen=True)
class Plan:
    """How the screen opens, and how its lesson is played."""

    demo: bool = False
    """Whether the lesson plays hands-free."""
    then: str | None = None
    """The scenario that is next after a demo that nobody has taken over."""
    moment: Moment = START
    """Where the lesson goes first."""
    samples_first: bool = False
    """Whether the first batch is sampled without a key."""
    opens: bool = False
    """Whether the opening comes first."""
    plays: bool = False
    """Whether the lesson begins without a key."""
    keeps_theme: bool = False
    """Whether the theme that the user chooses is remembered."""


NO_PLAN = Plan()


class Teaching(Feature):
    """The lesson, and what it sees of the screen."""

    def __init__(self, playground: Playground, plan: Plan) -> None:
        self._playground, self.plan = playground, plan
        self.view = ScriptView(playground)
        self.lesson = Lesson(parse(playground.session.source.script), self.view)
        self.lesson.hands_free = plan.demo
        self._greeted = False
        playground.join({"tour": self._tour, "lessons": self._lessons}, self)

    async def _tour(self, _play: Playground, _argument: Any) -> None:
        self.tour()

    async def _lessons(self, play: Playground, _argument: Any) -> None:
        """Show the lessons; the chosen one goes on, or replaces this run."""
        from rlplay.ui.lesson.lessons import LessonsScreen

        session = play.session
        # Resumed runs have no lesson.
        here = bundled_name(session.run.started) if session.run.started is not None and session.source.script else ""

        def chosen(name: str | None) -> None:
            if name is None:
                return
            if name == here:
                self.tour()
            else:
                play.open_lesson(name)

        screen = LessonsScreen(here, user_preferences.lessons(), play.moves, self.share, self.restart)
        play.app.push_screen(screen, chosen)

    def performed(self, verb: str) -> None:
        """The learner, or the script itself, has done something."""
        self.lesson.learner.performed(verb)

    @property
    def watches_dialogues(self) -> bool:
        """Whether the lesson waits for what the learner does in a dialogue."""
        return self.lesson.learner.at_work or self.view.waits

    def dialogues_closed(self) -> None:
        """No dialogue is open any more."""
        self.lesson.learner.looks_again()
        self.view.back()

    async def receive(self, event: Status | Imagined) -> None:
        """Take the engine's status; the first one begins the lesson."""
        if isinstance(event, Status):
            await self._receive(event)

    async def _receive(self, status: Status) -> None:
        first, self._greeted = not self._greeted, True
        self.lesson.receive(status)
        if first and (self.lesson.hands_free or self.plan.moment.step):
            self._playground.app.run_worker(self._begin(), group="lesson", exclusive=True)
        elif first and not self.lesson.begun:
            session = self._playground.session
            if not self.lesson.finished:
                self._invite()
            if self.plan.samples_first and not status.update and session.has_engine:
                self.lesson.looks_ahead()
                await self._playground.send(Advance("phase", 1), "sampling")
                self._playground.unasked = True
            if self.plan.plays:
                self.tour()

    def take_over(self) -> None:
        """The user drives the engine, if necessary before it has said anything."""
        self._greeted = True
        self.lesson.take_over()

    def _invite(self) -> None:
        self._playground.panels.narrator.say(self._playground.session.source.question, hint=BEGIN)

    async def _begin(self) -> None:
        plan, lesson, playground = self.plan, self.lesson, self._playground
        demo = lesson.hands_free
        await lesson.go_to(plan.moment.step)
        if plan.moment.changed:
            await playground.send(Set(plan.moment.changed))
        if demo and lesson.hands_free:
            await lesson.demo()
        if plan.then is not None and lesson.hands_free and lesson.finished:
            playground.next_scenario = plan.then
            playground.app.exit(0)

    def tour(self) -> None:
        """Play up to the next text; if the engine waits for labels that no step gives, ask for them."""
        playground, lesson, narrator = self._playground, self.lesson, self._playground.panels.narrator
        status, at_work = playground.session.status, lesson.learner.at_work
        if not at_work and status is not None and status.waits:
            label(playground)
        elif narrator.more():
            pass
        elif narrator.asking:
            narrator.insist()
        elif at_work:
            lesson.learner.gives_up()
        elif lesson.playing:
            playground.app.notify(lesson.waits_for)
        elif lesson.finished:
            lesson.take_over()
            playground.app.notify(no_lesson(playground.session), markup=False)
        else:
            playground.app.run_worker(self._play(), group="lesson")

    async def restart(self) -> None:
        """Begin again, with its answers forgotten."""
        app = self._playground.app
        under_way = app.workers.cancel_group(app, "lesson")
        await asyncio.gather(*(worker.wait() for worker in under_way), return_exceptions=True)
        self.lesson.start_over()
        self._invite()

    async def _play(self) -> None:
        await self.lesson.play()
        started = self._playground.session.run.started
        if started is not None and (name := bundled_name(started)):
            with contextlib.suppress(OSError):  # a lesson goes on where nothing can be kept
                user_preferences.keep_lesson(name, self.lesson.played)

    def share(self) -> tuple[str, str]:
        """The share code of the lesson at this moment, and what it leaves out; or "", and why there is none."""
        session = self._playground.session
        assert session.run.started is not None
        return Reproduction(scenario_of(session.run.started)).moment(self.lesson.played.steps, session.settings)

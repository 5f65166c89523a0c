"""The playground: a run, how the user looks at it, and what the user can do. It is no widget; `app.py` shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from textual.app import App

from rlplay.link.messages import AnyCommand, RecordView, Status
from rlplay.scenario.share import Shared
from rlplay.trace.lenses import LENSES, Lens, automatic
from rlplay.trace.questions import Imagined
from rlplay.trace.text import visible
from rlplay.ui.answers.answer_order import Sort
from rlplay.ui.answers.folding import Folding
from rlplay.ui.main.other_runs import OtherRuns
from rlplay.ui.main.panels import Panels
from rlplay.ui.narrator.narrator import Spot
from rlplay.ui.plot.guess import Guess
from rlplay.ui.session.follow import follow
from rlplay.ui.session.preview import Preview
from rlplay.ui.session.session import Session
from rlplay.ui.session.source import Source
from rlplay.ui.tokens.colouring import Colouring, colouring, reached
from rlplay.ui.tokens.facts import facts_of
from rlplay.ui.tokens.finder import Finder

Action = Callable[["Playground", Any], Awaitable[None]]
"""What a verb does, with the argument of a script."""

_INSTEAD = ("credit", "advantages", "probability")
"""The statistics that colour a finished update instead of the change in probability, by which has values."""


class Feature:
    """What joins a playground, to take part in what happens there."""

    def performed(self, verb: str) -> None:
        """A verb was carried out."""

    async def receive(self, event: Status | Imagined) -> None:
        """The engine says where it is, or answers the question of a preview."""

    def paint(self) -> None:
        """Something on the screen should change at once."""


class Playground:
    """The state behind the main screen. Keys, the palette, clicks and scripts come in through `perform`.

    It knows none of the features above it: each joins with the actions of its verbs.
    """

    def __init__(self, app: App[int], source: Source, others: Sequence[Source] = ()) -> None:
        """Play `source`, to be compared with the runs `others`. `app` shows dialogues and messages and runs tasks."""
        self.app = app
        self.actions: dict[str, Action] = {}
        self._features: list[Feature] = []
        self.session = Session(source)
        self.panels = Panels(source)
        self.preview = Preview(self.session, source.send)
        self.other_runs = OtherRuns(app, self.session, others, lambda: self.actions["compare"](self, None))
        self.lens_choice: str | None = None
        self.signs = self.maths = False  # whether numbers show beside tokens, and formulas in the token's panel
        self.sort = Sort()
        self.finder = Finder()
        self.guess: Guess | None = None  # what a lesson asks of a curve
        self.folding = Folding()
        self.own_keys: Mapping[str, str] = {}  # the user's keys, by action
        self.unasked = False  # whether the newest command was the screen's own
        self.next_scenario: str | None = None  # the scenario to open after this one,
        self.next_step = 0  # and the step of its lesson to begin at

    def join(self, actions: Mapping[str, Action], feature: Feature | None = None) -> None:
        """Take the actions of verbs, and let the `feature` that they belong to take part."""
        self.actions |= actions
        self._features += [] if feature is None else [feature]

    # What is on the screen

    @property
    def at_home(self) -> bool:
        """Whether no dialogue is open."""
        return self.app.screen is self.panels.main

    @property
    def lens(self) -> Lens:
        """The statistic that colours the tokens: the user's choice, or the one that fits the phase."""
        shown, preview = self.session.shown, self.preview
        if preview.shown is not None:
            return preview.lens(self.lens_choice).of(preview.settings)
        # While TRPO still searches for a step, no token has a gradient: keep the colours of the credit phase.
        phase = "sample" if shown is None else "credit" if shown.phase == "update" and not shown.steps else shown.phase
        session = self.session
        settings = session.settings_of(shown)
        chosen = self.lens_choice or automatic(phase, settings)
        # Another program's trainer does not look at the tokens again after its update.
        if self.lens_choice is None and phase == "after" and shown is not None:
            facts = facts_of(shown)
            chosen = next((name for name in (chosen, *_INSTEAD) if facts.lens(name) is not None), chosen)
        if chosen == "share":
            return session.teachers.lens
        return LENSES[chosen].of(settings)

    @property
    def colours(self) -> Colouring:
        """How the tokens are coloured: by `lens`, or by the nearest statistic that distinguishes them."""
        session, preview, automatically = self.session, self.preview, self.lens_choice is None
        if preview.shown is not None:
            return Colouring(self.lens, automatically)
        shown = session.shown
        return colouring(shown, self.lens, automatically, session.settings_of(shown), session.held is not None)

    def hold(self) -> None:
        """While the engine runs on, keep the last update on the screen until the newest has the chosen statistic."""
        session, newest, held = self.session, self.session.run.newest, None
        if self.lens_choice is not None and newest is not None and session.runs_on:
            lens, before = LENSES[self.lens_choice], session.run.updates.get(newest.number - 1)
            if before is not None and reached(before, lens) and not reached(newest, lens):
                held = before
        session.hold(held)

    def spot(self) -> Spot:
        """The update, its progress and the token on the screen; a remark belongs to them."""
        shown, cursor = self.session.shown, self.panels.tokens.cursor
        if shown is None or shown.sampled is None:
            return Spot(cursor=cursor)
        return Spot(shown.number, (shown.sampled.position, len(shown.steps)), cursor)

    def point(self, completion: int, token: int) -> None:
        """Put the cursor on a token, in every panel; of an answer that is folded away, on the one shown for it."""
        panels = self.panels
        panels.tokens.point(self.folding.shown_for(completion), token)
        panels.rollouts.point(*panels.tokens.cursor)
        panels.narrator.forget()
        self.inspect()

    def inspect(self) -> None:
        """Show the details of the token under the cursor."""
        session, preview, cursor = self.session, self.preview, self.panels.tokens.cursor
        self.panels.curves.follow(cursor, self.lens_choice or "")
        match self.panels.stage:
            case "pair":
                self.panels.pair.show(session.shown, cursor, session.settings_of(session.shown))
            case "conversation":
                self.panels.conversation.show(session.shown, cursor, self.lens, session.source.speaker)
        update, settings, result = session.shown, session.settings_of(session.shown), None
        if preview.shown is not None:
            update, settings, result = preview.shown, preview.settings, preview.result
        self.panels.inspector.live = session.looking is None
        self.panels.inspector.show(update, cursor, settings, result, self.maths, self.signs)

    def exhibit(self, metrics: Sequence[str]) -> None:
        """Show the curves of `metrics`, without the focus."""
        names = list(dict.fromkeys(map(self.session.run.history.named, metrics)))
        if names:
            self.panels.exhibit(names)

    def seek(self, typed: str) -> str:
        """Show only the matches of `typed`, or everything if it is empty; returns what is wrong, in one line."""
        problem = self.finder.ask(typed, self.session)
        self.session.touch("update")
        return problem

    def pick(self, number: int) -> None:
        """Look at update `number`, the newest of which is live."""
        newest = self.session.run.newest
        if newest is not None and number == newest.number:
            self.session.back_to_live()
        elif not self.session.look_at(number):
            self.app.notify(f"The {self.session.step_word}s of update {number} were not kept.")
        self.paint()  # whatever comes next may be about its tokens

    # What the user can do

    async def perform(self, name: str, argument: Any = None) -> None:
        """Carry out a verb, as a key or a script would, and start painting its effect."""
        self.panels.narrator.forget()
        if reason := self.session.cannot(name):
            self.app.notify(visible(reason), severity="warning", markup=False)
            return
        await self.actions[name](self, argument)
        for feature in self._features:
            feature.performed(name)
        self.paint()

    def paint(self) -> None:
        """Show the changes at once."""
        for feature in self._features:
            feature.paint()

    async def back(self) -> None:
        """Leave a search and show all answers; otherwise leave an older update and return to live."""
        if self.finder.query is not None:
            self.seek("")
        else:
            await self.perform("live")

    async def send(self, command: AnyCommand, asked: str = "") -> None:
        """Pass a command to the source, and show at once that it was requested."""
        session = self.session
        if session.failed is not None:
            ended = "The engine has ended. Press r to resume from the last snapshot."
            again = "The run could not be read. Press r to try again."
            self.app.notify(ended if session.source.live else again, severity="warning")
            return
        if session.looking is not None:
            session.back_to_live()
        session.asked, session.going_back_to = asked, None
        self.unasked = False
        session.touch("status")
        # Record the view only when a command follows: what the user saw then explains what they did.
        look = RecordView(self.lens_choice or "auto", *self.panels.tokens.cursor)
        if look != session.looked:
            session.looked = look
            await session.source.send(look)
        await session.source.send(command)

    @property
    def moves(self) -> bool:
        """Whether another run can be opened in place of this one."""
        return self.session.source.live and not self.app.is_web

    def open_lesson(self, name: str, step: int = 0) -> None:
        """Open the lesson `name` after `step` steps in place of this run, or copy the command for it."""
        if self.moves:
            self.next_scenario, self.next_step = name, step
            self.app.exit(0)
        else:
            command = f"rlplay {Shared(name, step=step).code if step else name}"
            self.app.copy_to_clipboard(command)
            self.app.notify(f"Copied: {command}", markup=False)

    # What the source tells

    def listen(self) -> None:
        """Start the source and follow its events."""
        self.app.run_worker(follow(self.session, self._receive), group="source", exclusive=True, exit_on_error=False)

    async def _receive(self, event: Status | Imagined) -> None:
        for feature in self._features:
            await feature.receive(event)

    async def close(self) -> None:
        """End the sources; the runs stay on disk."""
        self.session.digesting.stop()
        await asyncio.gather(self.session.source.close(), self.other_runs.close())

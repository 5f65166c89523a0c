"""The app: one screen over one session. Events fill the session; a timer paints the changes 15 times a second."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from textual import events, on
from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.driver import Driver
from textual.screen import Screen
from textual.theme import Theme

from rlplay import user_preferences
from rlplay.algorithms.settings import Settings
from rlplay.link.messages import Advance, Set, Status
from rlplay.scenario.reproduction import Reproduction, bundled_name, scenario_of
from rlplay.scenario.script import parse
from rlplay.scenario.share import START, Moment
from rlplay.trace.questions import Imagined
from rlplay.trace.text import visible
from rlplay.ui import dialogues
from rlplay.ui.actions import ACTIONS
from rlplay.ui.commands import send
from rlplay.ui.key_queue import KeyQueue
from rlplay.ui.leisure import Leisure
from rlplay.ui.lesson import BEGIN, Lesson
from rlplay.ui.messages import (
    Answered,
    CursorMoved,
    Perform,
    Reflowed,
    UpdatePicked,
)
from rlplay.ui.refresh import PARTS, Refresher
from rlplay.ui.script_view import ScriptView
from rlplay.ui.session.follow import follow
from rlplay.ui.session.happenings import Source
from rlplay.ui.terminal.driver import chosen_driver
from rlplay.ui.theme.themes import THEMES, borrowed, quiet, run_inks
from rlplay.ui.tuning import Tuning
from rlplay.ui.widgets.caption import Caption
from rlplay.ui.widgets.curve_panel import CurvePanel
from rlplay.ui.widgets.over_another import Dialogue, MainScreen
from rlplay.ui.widgets.splits import Splits
from rlplay.ui.words.lesson import no_lesson
from rlplay.verbs import VERBS

if TYPE_CHECKING:
    from textual.command import Provider

FRAMES = 15
LOOKS = 4
"""How many times a second it looks whether there is time for something else."""
SWITCH = 0.0005
"""Seconds for which one thread may hold up another."""


def _palette() -> type[Provider]:
    """The command palette, imported on first use: the first frame does not need it."""
    from rlplay.ui.command_palette import Palette

    return Palette


class RlplayApp(Tuning):
    """The playground."""

    TITLE = "rlplay"
    NOTIFICATION_TIMEOUT = 6
    CSS_PATH = "rlplay.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-medium"), (150, "-wide"), (200, "-huge")]  # noqa: RUF012 (Textual's type)
    VERTICAL_BREAKPOINTS = [(0, "-low"), (22, "-middle"), (60, "-tall")]  # noqa: RUF012 (Textual's type)
    COMMANDS = {_palette}  # noqa: RUF012 (Textual's type)
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(
                ",".join(verb.keys), f"verb('{verb.name}')", verb.title, verb.footer, tooltip=verb.help, id=verb.name
            )
            for verb in VERBS.values()
            if verb.keys
        ),
        Binding("escape", "back", "all answers, back to live", show=False),
        Binding("ctrl+z", "suspend_process", "suspend; fg returns", show=False, priority=True),
    ]

    def __init__(
        self,
        source: Source,
        demo: bool = False,
        others: Sequence[Source] = (),
        then: str | None = None,
        moment: Moment = START,
    ) -> None:
        """Show `source`. A `demo` plays its lesson hands-free; `others` are runs to compare it with.

        The lesson goes to `moment` first. After a demo that nobody has taken over, the scenario `then` is next.
        """
        super().__init__(source, others, lambda: dialogues.compare(self))
        if self.theme == "textual-dark":
            self.theme = THEMES[0].name
        self.script_view = ScriptView(self)
        self.lesson = Lesson(parse(source.script), self.script_view)
        self.lesson.hands_free = demo
        self._then, self._moment = then, moment
        self._waited = False
        self.key_queue = KeyQueue(self, super().on_event)
        self.orients = False  # whether to open with the orientation
        self.samples_first = False  # whether the first batch is sampled without a key
        self.keeps_theme = False  # whether to remember the theme that the user chooses
        self._greeted = False
        self.refresher = Refresher(self)
        self.leisure = Leisure(lambda: self.screen is self.main)

    def get_driver_class(self) -> type[Driver]:
        """The driver for the terminal, or the one for the browser."""
        return chosen_driver()

    def get_css_variables(self) -> dict[str, str]:
        """The theme's variables; themes that are not ours get quieter chrome."""
        variables = super().get_css_variables()
        theme = self.current_theme
        if theme not in THEMES:
            variables = borrowed(variables, theme.dark) if theme.ansi else quiet(variables)
        self.theme_variables = variables | run_inks(variables, theme.ansi)
        return self.theme_variables

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.phases
        yield self.banner
        with Splits(self.rollouts, self.inspector, self.curves, id="body"):
            with Horizontal(id="answers"):
                yield self.rollouts
                yield self.tokens
            yield self.curves.beside
            yield self.inspector
        yield self.curves
        yield self.narrator
        yield self.keys

    def on_mount(self) -> None:
        self.main = self.screen
        self.speak(self.session.step_word)
        self.banner.border_title = "The engine has ended" if self.session.source.live else "Cannot read the run"
        self.tokens.focus()
        self.theme_changed_signal.subscribe(self, self._theme_chosen)
        self.set_interval(1 / FRAMES / PARTS, self.refresher.next_part)
        self.watch(self.tokens, "scroll_y", self._scrolled, init=False)
        self.watch(self.rollouts, "scroll_y", self._scrolled, init=False)
        self.call_after_refresh(self.listen)
        if self.orients:
            self.call_after_refresh(self.perform, "orientation")
        if self.other_runs.sessions:
            self.other_runs.listen()
            dialogues.compare(self)
        if not self.is_headless:
            self.leisure.begin()
            self.set_interval(1 / LOOKS, self.leisure.look)
        # A thread that reads or digests updates would keep the interpreter for 5 ms whenever a key lets go of it.
        sys.setswitchinterval(SWITCH)

    def on_resize(self) -> None:
        """Another size has its own layout."""
        for splits in self.main.query(Splits) if hasattr(self, "main") else ():
            splits.reset()

    def _theme_chosen(self, theme: Theme) -> None:
        """Draw in the new colours, and remember the choice at once: a terminal that closes ends nothing in order."""
        self.session.changed |= {"update", "history"}
        if self.keeps_theme:
            with contextlib.suppress(OSError):  # a colour is not worth a complaint
                user_preferences.keep_theme(theme.name)

    @on(Reflowed)
    def _reflowed(self) -> None:
        """Tokens wrapped its lines again; the list of answers follows."""
        self.session.changed.add("update")

    def _scrolled(self, y: float) -> None:
        """Answers and their tokens are side by side, so they scroll together."""
        for panel in (self.tokens, self.rollouts):
            if panel.scroll_y != y:
                panel.scroll_to(y=y, animate=False, immediate=True)

    # Events in

    def listen(self) -> None:
        """Start the source and follow its events."""
        self.run_worker(follow(self.session, self._heard), group="source", exclusive=True, exit_on_error=False)

    async def _heard(self, event: Status | Imagined) -> None:
        if isinstance(event, Imagined):
            await self.preview.heard(event)
            self.show_preview()
        else:
            await self._greet(event)
            if self.knobs is not None and not event.running:
                await self.preview.paused()
                self.show_preview()
            waited, self._waited = self._waited, event.waits
            if event.waits and not waited and self.screen is self.main:
                dialogues.label(self)

    async def _greet(self, status: Status) -> None:
        first, self._greeted = not self._greeted, True
        self.lesson.heard(status)
        if first and (self.lesson.hands_free or self._moment.step):
            self.run_worker(self._begin(), group="lesson", exclusive=True)
        elif first and not self.lesson.begun:
            if not self.lesson.finished:
                self.narrator.say(self.session.source.question, hint=BEGIN)
            if self.samples_first and not status.update and self.session.has_engine:
                self.lesson.looks_ahead()
                await send(self, Advance("phase", 1), "sampling")
                self.unasked = True

    async def _begin(self) -> None:
        demo = self.lesson.hands_free
        await self.lesson.go_to(self._moment.step)
        if self._moment.changed:
            await send(self, Set(self._moment.changed))
        if demo and self.lesson.hands_free:
            await self.lesson.demo()
        if self._then is not None and self.lesson.hands_free and self.lesson.finished:
            self.next_scenario = self._then
            self.exit(0)

    async def on_unmount(self) -> None:
        self.session.digesting.stop()
        await asyncio.gather(self.session.source.close(), self.other_runs.close())

    def action_command_palette(self) -> None:
        """Open the palette, unless it is open."""
        from rlplay.ui.command_palette import Commands

        if not isinstance(self.screen, Commands):
            self.push_screen(Commands())

    # Screen out

    def paint(self) -> None:
        """Bring all panels up to date with the session."""
        self.refresher.panels()
        self.curves.draw_all()

    @on(CursorMoved)
    def _cursor_moved(self, event: CursorMoved) -> None:
        self.point(event.completion, event.token)

    @on(CurvePanel.Altered)
    def _view_altered(self) -> None:
        self.keys.follow(self.main.focused)

    @on(UpdatePicked)
    def _update_picked(self, event: UpdatePicked) -> None:
        newest = self.session.run.newest
        if newest is not None and event.number == newest.number:
            self.session.back_to_live()
        elif not self.session.look_at(event.number):
            self.notify(f"The {self.session.step_word}s of update {event.number} were not kept.")
        self.refresher.panels()  # whatever comes next may be about its tokens

    @on(Dialogue.Opened)
    async def _dialogue_opened(self, event: Dialogue.Opened) -> None:
        """Show the lesson's caption in it, while the lesson waits for what the learner does there."""
        if event.dialogue.is_attached and (self.lesson.learner.at_work or self.script_view.waits):
            await event.dialogue.mount(Caption(self.narrator))

    @on(MainScreen.Back)
    def _back_from_dialogues(self) -> None:
        self.lesson.learner.looks_again()
        self.script_view.back()

    # Verbs

    async def on_event(self, event: events.Event) -> None:
        """Typed keys and pasted text queue up; other events are handled at once."""
        if isinstance(event, events.InputEvent | events.Paste) and not isinstance(event, events.MouseMove):
            self.leisure.end()
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self.key_queue.take(event)
        else:
            await super().on_event(event)

    async def perform(self, name: str, argument: Any = None) -> None:
        """Carry out a verb, as a key or a script would, and start painting its effect."""
        self.narrator.forget()
        if reason := self.session.cannot(name):
            self.notify(visible(reason), severity="warning", markup=False)
            return
        await ACTIONS[name](self, argument)
        self.lesson.learner.performed(name)
        self.refresher.panels()

    async def action_verb(self, name: str) -> None:
        """The key of a verb. The one that leaves asks before it ends a run."""
        if name == "quit":
            dialogues.leave(self)
            return
        if VERBS[name].where == "engine":
            self._greeted = True
            self.lesson.take_over()
        await self.perform(name)

    async def action_quit(self) -> None:
        """Quit with ctrl+q, from anywhere."""
        await self.perform("quit")

    def action_help_quit(self) -> None:
        """Say how to quit when ctrl+c is pressed, which ends other programs."""
        self.notify("q quits. ctrl+q quits at once and from anywhere, even while you type.", title="Quit?")

    async def action_back(self) -> None:
        """Leave a search and show all answers; otherwise leave an older update and return to live."""
        if self.finder.query is not None:
            self.seek("")
        else:
            await self.perform("live")

    @on(Perform)
    async def _asked_to_perform(self, event: Perform) -> None:
        await self.perform(event.name, event.argument)

    @on(Answered)
    def _answered(self, event: Answered) -> None:
        self.lesson.answered(event.choice)

    def on_key(self, event: events.Key) -> None:
        if self.screen is self.main and self.narrator.key_choice(event.key):
            event.stop()
        elif self.lesson.hands_free:
            self.lesson.take_over()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette: our commands and Textual's own."""
        from rlplay.ui.command_palette import commands

        yield from commands(self)
        # Textual's screenshot squeezes wide characters; ours does not.
        yield from (each for each in super().get_system_commands(screen) if each.title != "Screenshot")

    def share(self) -> tuple[str, str]:
        """The share code of the lesson at this moment, and what it leaves out; or "", and why there is none."""
        started, held = self.session.run.started, msgspec.convert(self.session.settings, Settings)
        assert started is not None
        return Reproduction(scenario_of(started)).moment(self.lesson.played.steps, held)

    def tour(self) -> None:
        """Play the lesson up to its next text; if the engine waits for labels that no step gives, ask for them."""
        at_work = self.lesson.learner.at_work
        if not at_work and self.session.status is not None and self.session.status.waits:
            dialogues.label(self)
        elif self.narrator.more():
            pass
        elif self.narrator.asking:
            self.narrator.insist()
        elif at_work:
            self.lesson.learner.gives_up()
        elif self.lesson.playing:
            self.notify(self.lesson.waits_for)
        elif self.lesson.finished:
            self.lesson.take_over()
            self.notify(no_lesson(self.session), markup=False)
        else:
            self.run_worker(self._play(), group="lesson")

    async def restart_lesson(self) -> None:
        """Begin the lesson again, with its answers forgotten."""
        under_way = self.workers.cancel_group(self, "lesson")
        await asyncio.gather(*(worker.wait() for worker in under_way), return_exceptions=True)
        self.lesson.start_over()
        self.narrator.say(self.session.source.question, hint=BEGIN)

    async def _play(self) -> None:
        await self.lesson.play()
        started = self.session.run.started
        if started is not None and (name := bundled_name(started)):
            with contextlib.suppress(OSError):  # a lesson goes on where nothing can be kept
                user_preferences.keep_lesson(name, self.lesson.played)

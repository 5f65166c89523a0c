"""The app: Textual's side of the playground. Bindings, events and messages come in; panels and dialogues go out."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.screen import Screen
from textual.theme import Theme

from rlplay import user_preferences
from rlplay.ui import help_actions, run_actions
from rlplay.ui.compat import end_timers, lend_caches, notifications_of
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.idle_tasks import IdleTasks
from rlplay.ui.key_queue import KeyQueue
from rlplay.ui.knobs.tuning import Tuning
from rlplay.ui.labels.labels import Labels
from rlplay.ui.lesson.teaching import NO_PLAN, Plan, Teaching
from rlplay.ui.main import answer_actions, colour_actions, engine_actions, panel_actions
from rlplay.ui.main.playground import Playground
from rlplay.ui.main.refresh import PARTS, Refresher
from rlplay.ui.narrator.caption import Caption
from rlplay.ui.opening.opening import open_first
from rlplay.ui.parts.line_panel import COLOURS
from rlplay.ui.parts.over_another import Dialogue, MainScreen
from rlplay.ui.parts.panel_messages import (
    Answered,
    CursorMoved,
    CursorStepped,
    Drafted,
    Perform,
    PreviewToggled,
    Reflowed,
    UpdatePicked,
)
from rlplay.ui.probe import probe_actions
from rlplay.ui.session.source import Source
from rlplay.ui.teachers import teachers_actions
from rlplay.ui.terminal.chosen_driver import chosen_driver
from rlplay.ui.terminal.gate import GatedApp
from rlplay.ui.theme.curve_inks import curve_inks
from rlplay.ui.theme.inks import FALLBACK
from rlplay.ui.theme.themes import THEMES, borrowed, quiet
from rlplay.ui.weights import weights_actions
from rlplay.ui.writing import writing_actions
from rlplay.verbs import VERBS

if TYPE_CHECKING:
    from textual.command import Provider

ACTING = (
    engine_actions,
    colour_actions,
    answer_actions,
    panel_actions,
    run_actions,
    probe_actions,
    writing_actions,
    weights_actions,
    teachers_actions,
    help_actions,
)
"""Whose actions need nothing but the playground."""
FRAMES = 15
LOOKS = 4
"""How many times a second it looks whether there is time for something else."""
SWITCH = 0.0005
"""Seconds for which one thread may hold up another."""


def _palette() -> type[Provider]:
    """The command palette, imported on first use: the first frame does not need it."""
    from rlplay.ui.command_palette import CommandProvider

    return CommandProvider


class RlplayApp(GatedApp):
    """The screen of a playground."""

    TITLE = "rlplay"
    NOTIFICATION_TIMEOUT = 6
    CSS_PATH = "rlplay.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-medium"), (150, "-wide"), (200, "-huge")]  # noqa: RUF012 (Textual's type)
    VERTICAL_BREAKPOINTS = [(0, "-low"), (22, "-middle"), (60, "-tall")]  # noqa: RUF012 (Textual's type)
    COMMANDS = {_palette}  # noqa: RUF012 (Textual's type)
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(",".join(verb.keys), f"verb('{verb.name}')", verb.title, False, tooltip=verb.help, id=verb.name)
            for verb in VERBS.values()
            if verb.keys
        ),
        Binding("pagedown", "next_slide", "next", show=False, priority=True),
        Binding("escape", "back", "all answers, back to live", show=False),
        Binding("ctrl+z", "suspend_process", "suspend; fg returns", show=False, priority=True),
    ]

    def __init__(self, source: Source, others: Sequence[Source] = (), plan: Plan = NO_PLAN) -> None:
        """Show `source` as `plan` says; `others` are runs to compare it with."""
        self._themes: tuple[int, dict[str, Theme]] = -1, {}
        self._in_use: tuple[str, Theme] | None = None
        lend_caches()
        end_timers()
        super().__init__()
        if self.theme == "textual-dark":
            self.theme = THEMES[0].name
        self.play = Playground(self, source, others)
        for each in ACTING:
            self.play.join(each.ACTIONS)
        self.panels = self.play.panels
        self.teaching = Teaching(self.play, plan)
        self.tuning = Tuning(self.play)
        self.labels = Labels(self.play)
        self.refresher = Refresher(self.play)
        self.key_queue = KeyQueue(self, super().on_event)
        self.moves = False  # whether something that changes may slide or fade there
        self.play.join({"motion": self._toggle_motion})
        self.idle_tasks = IdleTasks(lambda: self.play.at_home)

    def get_driver_class(self) -> type[Driver]:
        """The driver for the terminal, or the one for the browser."""
        return chosen_driver()

    def get_css_variables(self) -> dict[str, str]:
        """The theme's variables; themes that are not ours get quieter chrome."""
        variables = super().get_css_variables()
        theme = self.current_theme
        if theme not in THEMES:
            variables = borrowed(variables, theme.dark) if theme.ansi else quiet(variables)
        colours = COLOURS[self.console.color_system]
        self.theme_variables = FALLBACK | variables | curve_inks(variables, theme.dark, theme.ansi, colours)
        return self.theme_variables

    @property
    def available_themes(self) -> dict[str, Theme]:
        """Textual's themes and ours, available from the start so that TEXTUAL_THEME can name them."""
        registered = super().available_themes
        if len(registered) != self._themes[0]:
            self._themes = len(registered), registered | {theme.name: theme for theme in THEMES}
        return self._themes[1]

    @property
    def current_theme(self) -> Theme:
        """The theme in use, looked up once: Textual asks for it twice for every line that it draws."""
        if self._in_use is None or self._in_use[0] != self.theme:
            self._in_use = self.theme, super().current_theme
        return self._in_use[1]

    def notify(self, message: str, **more: Any) -> None:
        """Show a message at the top right, unless it is there already."""
        if all(each.message != message or each.has_expired for each in notifications_of(self)):
            super().notify(message, **more)

    def take_keys(self, own: dict[str, str]) -> None:
        """Take the user's keys, by action, in Textual's names."""
        self.play.own_keys = own
        self.set_keymap(own)
        self.panels.keys.rename(own)

    def get_default_screen(self) -> Screen[Any]:
        """The screen of the panels."""
        return self.panels.main

    def compose(self) -> ComposeResult:
        yield from self.panels.compose()

    def on_mount(self) -> None:
        playground, panels = self.play, self.panels
        panels.speak(playground.session.step_word)
        panels.subject.focus()
        self.theme_changed_signal.subscribe(self, self._theme_chosen)
        self.set_interval(1 / FRAMES / PARTS, self.refresher.next_part)
        self.watch(panels.tokens, "scroll_y", panels.scroll, init=False)
        self.watch(panels.rollouts, "scroll_y", panels.scroll, init=False)
        self.call_after_refresh(playground.listen)
        if self.teaching.plan.opens:
            open_first(playground)
        if playground.other_runs.sessions:
            playground.other_runs.listen()
            run_actions.show_comparison(playground)
        if not self.is_headless:
            reduced = self.teaching.plan.keeps_theme and user_preferences.reduced_motion()
            self.moves = self.animation_level == "full" and not reduced
            self.idle_tasks.begin()
            self.set_interval(1 / LOOKS, self.idle_tasks.look)
        # A thread that reads or digests updates would keep the interpreter for 5 ms whenever a key lets go of it.
        sys.setswitchinterval(SWITCH)

    def on_resize(self) -> None:
        """Another size has its own layout."""
        if self.panels.splits.is_attached:
            self.panels.splits.reset()

    async def on_unmount(self) -> None:
        await self.play.close()

    def _theme_chosen(self, theme: Theme) -> None:
        """Draw in the new colours, and remember the choice at once: a terminal that closes ends nothing in order."""
        self.play.session.touch("update", "history")
        if self.teaching.plan.keeps_theme:
            with contextlib.suppress(OSError):  # a colour is not worth a complaint
                user_preferences.keep_theme(theme.name)

    async def _toggle_motion(self, _play: Playground, _argument: Any) -> None:
        """Let bars and shades move, or change at once; remembered."""
        self.moves = not self.moves
        self.notify("Bars and colours move to their new values." if self.moves else "Nothing moves any more.")
        if self.teaching.plan.keeps_theme:
            with contextlib.suppress(OSError):
                user_preferences.keep_reduced_motion(not self.moves)

    # Messages

    @on(Reflowed)
    def _reflowed(self) -> None:
        """Tokens wrapped its lines again; the list of answers follows."""
        self.play.session.touch("update")

    @on(CursorMoved)
    def _cursor_moved(self, event: CursorMoved) -> None:
        self.play.point(event.completion, event.token)

    @on(CursorStepped)
    def _cursor_stepped(self, event: CursorStepped) -> None:
        if event.along:
            self.panels.tokens.action_along(event.along)
        else:
            self.panels.tokens.action_across(event.across)

    @on(Drafted)
    async def _drafted(self, event: Drafted) -> None:
        await self.tuning.draft(event.changes)

    @on(PreviewToggled)
    def _preview_toggled(self) -> None:
        self.tuning.toggle()

    @on(CurvePanel.Altered)
    def _view_altered(self) -> None:
        self.panels.keys.follow(self.panels.main.focused)

    @on(UpdatePicked)
    def _update_picked(self, event: UpdatePicked) -> None:
        self.play.pick(event.number)

    @on(Dialogue.Opened)
    async def _dialogue_opened(self, event: Dialogue.Opened) -> None:
        """Show the lesson's caption in it, while the lesson waits for what the learner does there."""
        if event.dialogue.is_attached and event.dialogue.CAPTIONED and self.teaching.watches_dialogues:
            await event.dialogue.mount(Caption(self.panels.narrator))

    @on(Dialogue.Explain)
    def _dialogue_asks_for_help(self, event: Dialogue.Explain) -> None:
        help_actions.explain(self.play, event.dialogue)

    @on(MainScreen.Back)
    def _back_from_dialogues(self) -> None:
        self.teaching.dialogues_closed()

    @on(Perform)
    async def _asked_to_perform(self, event: Perform) -> None:
        await self.play.perform(event.name, event.argument)

    @on(Answered)
    def _answered(self, event: Answered) -> None:
        self.teaching.lesson.answered(event.choice)

    # Keys

    async def on_event(self, event: events.Event) -> None:
        """Typed keys and pasted text queue up; other events are handled at once."""
        if isinstance(event, events.InputEvent | events.Paste) and not isinstance(event, events.MouseMove):
            self.idle_tasks.end()
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self.key_queue.take(event)
        else:
            await super().on_event(event)

    def on_key(self, event: events.Key) -> None:
        if self.play.at_home and self.panels.narrator.key_choice(event.key):
            event.stop()
        elif self.teaching.lesson.hands_free:
            self.teaching.lesson.take_over()

    async def action_verb(self, name: str) -> None:
        """The key of a verb. The one that leaves asks before it ends a run."""
        if name == "quit":
            help_actions.leave(self.play)
            return
        if VERBS[name].where == "engine":
            self.teaching.take_over()
        await self.play.perform(name)

    async def action_next_slide(self) -> None:
        """Go on with the lesson."""
        await self.action_verb("tour")

    async def action_quit(self) -> None:
        """Quit with ctrl+q, from anywhere."""
        await self.play.perform("quit")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """In an editor ctrl+z takes back what was typed; a presenter's remote sends page down to go on."""
        if action == "next_slide":
            return self.panels.presenting and self.play.at_home
        typing = self.focused is not None and self.focused.has_class("-undoes")
        return not (typing and action == "suspend_process")

    def action_help_quit(self) -> None:
        """Say how to quit when ctrl+c is pressed, which ends other programs."""
        self.notify("q quits. ctrl+q quits at once and from anywhere, even while you type.", title="Quit?")

    async def action_back(self) -> None:
        """Leave a search or an older update."""
        await self.play.back()

    def action_command_palette(self) -> None:
        """Open the palette, unless it is open."""
        from rlplay.ui.command_palette import PaletteScreen

        if not isinstance(self.screen, PaletteScreen):
            self.push_screen(PaletteScreen())

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette: our commands and Textual's own."""
        from rlplay.ui.command_palette import commands

        yield from commands(self.play)
        # Textual's screenshot squeezes wide characters; ours does not.
        yield from (each for each in super().get_system_commands(screen) if each.title != "Screenshot")

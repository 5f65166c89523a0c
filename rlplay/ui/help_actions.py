"""What the verbs about the program do: help, glossary, and the way out."""

from __future__ import annotations

from typing import Any

from textual.widget import Widget

from rlplay.algorithms.settings import UNKNOWN, Settings
from rlplay.ui.main.playground import Action, Playground


def explain(play: Playground, widget: Widget | None, settings: Settings = UNKNOWN) -> None:
    """Explain a widget and list its keys; statistics follow the `settings`."""
    from rlplay.ui.help.help_screen import HelpScreen

    play.app.push_screen(HelpScreen(widget, settings, play.own_keys, play.session.step_word, play.session.shown))


async def _help(play: Playground, _argument: Any) -> None:
    explain(play, play.app.focused, play.session.settings_of(play.session.shown))


async def _glossary(play: Playground, term: Any) -> None:
    """Show the glossary; a moment of a lesson that is chosen there replaces this run."""
    from rlplay.ui.glossary.glossary_screen import GlossaryScreen

    def chosen(moment: tuple[str, str] | None) -> None:
        if moment is not None:
            from rlplay.scenario.lesson import step_saying
            from rlplay.scenario.loader import load

            name, words = moment
            play.open_lesson(name, step_saying(load(name), words))

    play.app.push_screen(GlossaryScreen(term, ("lens", play.lens.name), play.moves), chosen)


async def _quit(play: Playground, _argument: Any) -> None:
    session = play.session
    play.app.exit(2 if session.failed is not None and session.run.started is None else 0)


def leave(play: Playground) -> None:
    """Leave, in a live run after a question."""
    from rlplay.paths import shortest_name
    from rlplay.ui.log.leave import LeaveScreen, question

    async def answered(yes: bool | None) -> None:
        if yes:
            await play.perform("quit")

    name = shortest_name(play.session.source.path)
    if question(play.session, name):
        play.app.push_screen(LeaveScreen(play.session, name), answered)
    else:
        play.app.call_later(answered, True)


ACTIONS: dict[str, Action] = {
    "help": _help,
    "glossary": _glossary,
    "quit": _quit,
}

"""The screens that open over the main one: what each receives, and what happens with its result.

Each is imported when it opens, because the first frame needs none of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rlplay.algorithms.settings import UNKNOWN, Settings
from rlplay.trace.kinds import SomeSettings
from rlplay.ui.playground import Playground

if TYPE_CHECKING:
    from textual.widget import Widget

    from rlplay.ui.screens.labels import LabelScreen
    from rlplay.ui.session.session import Session


def paste(play: Playground) -> None:
    """Ask for a share code, and apply its settings."""
    started = play.session.run.started
    if started is None:
        play.app.notify("The engine is still starting; its settings are not yet known.")
        return
    from rlplay.scenario.reproduction import scenario_of
    from rlplay.ui.screens.paste import PasteScreen

    async def pasted(changes: SomeSettings | None) -> None:
        if changes:
            await play.perform("set", changes)

    play.app.push_screen(PasteScreen(play.session.settings, scenario_of(started)), pasted)


def lessons(
    play: Playground,
    go_on: Callable[[], None],
    share: Callable[[], tuple[str, str]],
    restart: Callable[[], Awaitable[None]],
) -> None:
    """Show the lessons; the chosen one goes on, or replaces this run.

    Of the run's own lesson, `share` gives the code and `restart` begins it again.
    """
    from rlplay import user_preferences
    from rlplay.scenario.reproduction import bundled_name
    from rlplay.ui.screens.lessons import LessonsScreen

    session = play.session
    # Resumed runs have no lesson.
    here = bundled_name(session.run.started) if session.run.started is not None and session.source.script else ""

    def chosen(name: str | None) -> None:
        if name is None:
            return
        if name == here:
            go_on()
        else:
            _play(play, name)

    screen = LessonsScreen(here, user_preferences.lessons(), _moves(play), share, restart)
    play.app.push_screen(screen, chosen)


def glossary(play: Playground, term: str | None) -> None:
    """Show the glossary; a moment of a lesson that is chosen there replaces this run."""
    from rlplay.ui.screens.glossary import GlossaryScreen

    def chosen(moment: tuple[str, str] | None) -> None:
        if moment is not None:
            from rlplay.scenario.lesson import step_saying
            from rlplay.scenario.loader import load

            name, words = moment
            _play(play, name, step_saying(load(name), words))

    play.app.push_screen(GlossaryScreen(term, ("lens", play.lens.name), _moves(play)), chosen)


def _moves(play: Playground) -> bool:
    """Whether another run can be opened in place of this one."""
    return play.session.source.live and not play.app.is_web


def _play(play: Playground, name: str, step: int = 0) -> None:
    """Open the lesson `name` after `step` steps in place of this run, or copy the command for it."""
    from rlplay.scenario.share import Shared

    if _moves(play):
        play.next_scenario, play.next_step = name, step
        play.app.exit(0)
    else:
        command = f"rlplay {Shared(name, step=step).code if step else name}"
        play.app.copy_to_clipboard(command)
        play.app.notify(f"Copied: {command}", markup=False)


def explain(play: Playground, widget: Widget | None, settings: Settings = UNKNOWN) -> None:
    """Explain a widget and list its keys; statistics follow the `settings`."""
    from rlplay.ui.screens.help import HelpScreen

    play.app.push_screen(HelpScreen(widget, settings, play.own_keys, play.session.step_word))


def label(play: Playground, session: Session | None = None, letter: str = "") -> None:
    """Ask the user to label the waiting pairs, of the run on the screen or of the compared run called `letter`."""
    from rlplay.ui.screens.labels import LabelScreen
    from rlplay.ui.session.labelling import Labelling

    session = session or play.session
    update = session.run.newest
    if update is None or update.sampled is None or not session.asks:
        return

    say = play.send if session is play.session else session.source.send
    play.app.push_screen(LabelScreen(session, Labelling(update, session.asks), say, letter))


def labelling(play: Playground) -> LabelScreen | None:
    """The open dialogue that asks for labels."""
    from rlplay.ui.screens.labels import LabelScreen

    return next((each for each in reversed(play.app.screen_stack) if isinstance(each, LabelScreen)), None)


def branch(play: Playground, number: int | None) -> None:
    """Ask what should differ in a branch from the end of update `number`; None means the update on the screen."""
    started = play.session.run.started
    if started is None:
        play.app.notify("Nothing to branch from yet: the engine is still starting.")
        return
    from rlplay.ui.screens.branch import BranchScreen

    at = play.session.branches_at if number is None else number

    def begin(changes: SomeSettings | None) -> None:
        if changes is not None:
            play.app.run_worker(play.other_runs.branch_off(at, changes), group="branch", exclusive=True)

    play.app.push_screen(BranchScreen(play.session, started, at), begin)


def leave(play: Playground) -> None:
    """Leave, in a live run after a question."""
    from rlplay.paths import shortest_name
    from rlplay.ui.screens.leave import LeaveScreen, question

    async def answered(yes: bool | None) -> None:
        if yes:
            await play.perform("quit")

    name = shortest_name(play.session.source.path)
    if question(play.session, name):
        play.app.push_screen(LeaveScreen(play.session, name), answered)
    else:
        play.app.call_later(answered, True)


def compare(play: Playground) -> None:
    """Compare this run with the others."""
    from rlplay.ui.screens.compare import CompareScreen

    if play.other_runs.sessions:
        play.app.push_screen(CompareScreen(play, [play.session, *play.other_runs.sessions], partial(label, play)))


def moments(play: Playground, chosen: list[int] | None = None) -> None:
    """Compare the answers at two moments; without `chosen`, at the first one and at the update on the screen."""
    from rlplay.ui.screens.compare_moments import CompareMomentsScreen
    from rlplay.ui.screens.moments import MomentsScreen
    from rlplay.ui.session.moments import first_moment

    session = play.session
    after = session.run.finished if session.older_update is None else min(session.older_update, session.run.finished)
    before, after = chosen or (first_moment(session, after), after)

    def compare(before: int, after: int, group: int) -> None:
        play.app.push_screen(CompareMomentsScreen(play, session, before, after, group))

    play.app.push_screen(MomentsScreen(session, before, after, compare))


def probe(play: Playground, at: dict[str, Any]) -> None:
    """Ask the model about the token under the cursor, or about a script's prompt; see the verb `probe`."""
    from rlplay.ui.screens.probe import ProbeScreen

    session, probing = play.session, play.session.probing
    if "prompt" in at:
        probing.type(at["prompt"], at.get("columns"), at.get("plain", False))
    else:
        if "completion" in at or "token" in at:
            play.point(at.get("completion", 0), at.get("token", 0))
        probing.open(None if session.shown is None else session.shown.sampled, play.panels.tokens.cursor)
    play.app.push_screen(ProbeScreen(session, at.get("then", ""), at.get("force", "")))

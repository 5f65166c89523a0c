"""The screens that open over the main one: what each receives, and what happens with its result.

Each is imported when it opens, because the first frame needs none of them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlplay.ui.playground import Playground
    from rlplay.ui.session.session import Session


def paste(app: Playground) -> None:
    """Ask for a share code, and apply its settings."""
    started = app.session.run.started
    if started is None:
        app.notify("The engine is still starting; its settings are not yet known.")
        return
    from rlplay.scenario.reproduction import scenario_of
    from rlplay.ui.screens.paste import PasteScreen

    async def pasted(changes: dict[str, Any] | None) -> None:
        if changes:
            await app.perform("set", changes)

    app.push_screen(PasteScreen(app.session.settings, scenario_of(started)), pasted)


def lessons(app: Playground) -> None:
    """Show the lessons; the chosen one continues, or replaces this run."""
    from rlplay import user_preferences
    from rlplay.scenario.reproduction import bundled_name
    from rlplay.ui.screens.lessons import LessonsScreen

    session = app.session
    # Resumed runs have no lesson.
    here = bundled_name(session.run.started) if session.run.started is not None and session.source.script else ""

    def chosen(name: str | None) -> None:
        if name is None:
            return
        if name == here:
            app.tour()
        else:
            _play(app, name)

    screen = LessonsScreen(here, user_preferences.lessons(), _moves(app), app.share, app.restart_lesson)
    app.push_screen(screen, chosen)


def glossary(app: Playground, term: str | None) -> None:
    """Show the glossary; a moment of a lesson that is chosen there replaces this run."""
    from rlplay.ui.screens.glossary import GlossaryScreen

    def chosen(moment: tuple[str, str] | None) -> None:
        if moment is not None:
            from rlplay.scenario.lesson import step_saying
            from rlplay.scenario.loader import load

            name, words = moment
            _play(app, name, step_saying(load(name), words))

    app.push_screen(GlossaryScreen(term, ("lens", app.lens.name), _moves(app)), chosen)


def _moves(app: Playground) -> bool:
    """Whether another run can be opened in place of this one."""
    return app.session.source.live and not app.is_web


def _play(app: Playground, name: str, step: int = 0) -> None:
    """Open the lesson `name` after `step` steps in place of this run, or copy the command for it."""
    from rlplay.scenario.share import Shared

    if _moves(app):
        app.next_scenario, app.next_step = name, step
        app.exit(0)
    else:
        command = f"rlplay {Shared(name, step=step).code if step else name}"
        app.copy_to_clipboard(command)
        app.notify(f"Copied: {command}", markup=False)


def label(app: Playground, session: Session | None = None, letter: str = "") -> None:
    """Ask the user to label the waiting pairs, of the run on the screen or of the compared run called `letter`."""
    from rlplay.ui.screens.labels import LabelScreen
    from rlplay.ui.session.labelling import Labelling

    session = session or app.session
    update = session.run.newest
    if update is None or update.sampled is None or not session.asks:
        return

    def closed(_result: None) -> None:
        app.labels = None

    app.labels = screen = LabelScreen(session, Labelling(update, session.asks), letter)
    app.push_screen(screen, closed)


def branch(app: Playground, number: int | None) -> None:
    """Ask what should differ in a branch from the end of update `number`; None means the update on the screen."""
    started = app.session.run.started
    if started is None:
        app.notify("Nothing to branch from yet: the engine is still starting.")
        return
    from rlplay.ui.screens.branch import BranchScreen

    at = app.session.branches_at if number is None else number

    def begin(changes: dict[str, Any] | None) -> None:
        if changes is not None:
            app.run_worker(app.other_runs.branch_off(at, changes), group="branch", exclusive=True)

    app.push_screen(BranchScreen(app.session, started, at), begin)


def leave(app: Playground) -> None:
    """Leave, in a live run after a question."""
    from rlplay.paths import shortest_name
    from rlplay.ui.screens.leave import LeaveScreen, question

    async def answered(yes: bool | None) -> None:
        if yes:
            await app.perform("quit")

    name = shortest_name(app.session.source.path)
    if question(app.session, name):
        app.push_screen(LeaveScreen(app.session, name), answered)
    else:
        app.call_later(answered, True)


def compare(app: Playground) -> None:
    """Compare this run with the others."""
    from rlplay.ui.screens.compare import CompareScreen

    if app.other_runs.sessions:
        app.push_screen(CompareScreen(app, [app.session, *app.other_runs.sessions], partial(label, app)))


def moments(app: Playground, chosen: list[int] | None = None) -> None:
    """Compare the answers at two moments; without `chosen`, at the first one and at the update on the screen."""
    from rlplay.ui.screens.compare_moments import CompareMomentsScreen
    from rlplay.ui.screens.moments import MomentsScreen
    from rlplay.ui.session.moments import first_moment

    session = app.session
    after = session.run.finished if session.older_update is None else min(session.older_update, session.run.finished)
    before, after = chosen or (first_moment(session, after), after)

    def compare(before: int, after: int, group: int) -> None:
        app.push_screen(CompareMomentsScreen(app, session, before, after, group))

    app.push_screen(MomentsScreen(session, before, after, compare))


def probe(app: Playground, at: dict[str, Any]) -> None:
    """Ask the model about the token under the cursor, or about a script's prompt; see the verb `probe`."""
    from rlplay.ui.screens.probe import ProbeScreen

    session, probing = app.session, app.session.probing
    if "prompt" in at:
        probing.type(at["prompt"], at.get("columns"), at.get("plain", False))
    else:
        if "completion" in at or "token" in at:
            app.point(at.get("completion", 0), at.get("token", 0))
        probing.open(None if session.shown is None else session.shown.sampled, app.tokens.cursor)
    app.push_screen(ProbeScreen(session, at.get("then", ""), at.get("force", "")))

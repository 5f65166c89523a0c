"""What the verb that asks who taught a token does."""

from __future__ import annotations

from typing import Any

from rlplay.trace.chosen_answers import answers_of
from rlplay.trace.questions import Prefix
from rlplay.trace.targets import candidate_id
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.main.panel_actions import completion_named
from rlplay.ui.main.playground import Action, Playground
from rlplay.ui.river.belief_river import River
from rlplay.ui.session.subjects import Subject
from rlplay.ui.teachers.captions import why_not


async def _teachers(play: Playground, argument: Any) -> None:
    """Ask about what another dialogue names, a script's token, or the one under the cursor; see the verb."""
    from rlplay.ui.teachers.teachers_screen import TeachersScreen

    if problem := why_not(play.session):
        play.app.notify(problem, severity="warning", markup=False)
        return
    try:
        elsewhere = isinstance(argument, Subject | Prefix)
        subject, update = (argument, play.session.run.finished) if elsewhere else _of_batch(play, argument)
    except ValueError as error:
        play.app.notify(f"{str(error)[:1].upper()}{str(error)[1:]}.", severity="warning", markup=False)
        return
    play.app.push_screen(TeachersScreen(play, subject, update, _taken_away(play, argument)))


def _taken_away(play: Playground, argument: Any) -> frozenset[int]:
    """The answers that a script takes away."""
    shown = play.session.shown
    if shown is None or not isinstance(argument, dict) or "without" not in argument:
        return frozenset()
    return frozenset(answers_of(shown, argument["prompt"], argument["without"], argument.get("answers", "")))


def _of_batch(play: Playground, argument: Any) -> tuple[Subject, int]:
    """The token under the cursor or of a script, and the update in which it moved. Raises ValueError, one line."""
    from rlplay.ui.session.subjects import token_subject

    session, panels, at = play.session, play.panels, argument if isinstance(argument, dict) else {}
    shown = session.shown
    if shown is None or shown.sampled is None:
        raise ValueError("there is no token yet; press u")
    if not {"completion", "token", "prompt"}.isdisjoint(at):
        play.point(completion_named(shown, at), at.get("token", 0))
    text, candidate = at.get("candidate"), None
    if text is not None:
        candidate = candidate_id(shown, *panels.tokens.cursor, text)
    focused, update = play.app.focused, shown.number if shown.finished is not None else session.run.finished
    if focused is panels.inspector and not at:
        candidate = panels.inspector.picked
    if isinstance(focused, CurvePanel) and isinstance(focused.view, River) and focused.cursor:
        update = min(focused.cursor, session.run.finished)  # the belief's cursor is on an update
    return token_subject(shown, *panels.tokens.cursor, candidate), update


ACTIONS: dict[str, Action] = {
    "teachers": _teachers,
}

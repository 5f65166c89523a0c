"""What the verb that asks who taught a token does."""

from __future__ import annotations

from typing import Any

from rlplay.ui.main.playground import Action, Playground
from rlplay.ui.session.session import Session
from rlplay.ui.session.teachers import Subject


def why_not(session: Session) -> str:
    """Why nobody can be asked, in one line; empty if it can."""
    if not session.source.live:
        return "This recording has no weights and gradients to ask. Resume the run (rlplay resume), then press Y."
    if session.failed is not None:
        return "The engine has ended. Press r to resume, then Y."
    if not session.run.finished:
        return "No update yet: press u, then Y asks what moved this token."
    return ""


async def show_teachers(play: Playground, subject: Subject, update: int) -> None:
    """Show who taught the subject, in `update`."""
    from rlplay.ui.teachers.teachers_screen import TeachersScreen

    play.app.push_screen(TeachersScreen(play, subject, update))


async def _teachers(play: Playground, argument: Any) -> None:
    """Ask about the token under the cursor, or about a script's; see the verb `teachers`."""
    from rlplay.ui.teachers.subjects import token_subject

    session, at = play.session, argument if isinstance(argument, dict) else {}
    shown = session.shown
    if problem := why_not(session):
        play.app.notify(problem, severity="warning", markup=False)
        return
    if shown is None or shown.sampled is None:
        return
    if "completion" in at or "token" in at:
        play.point(at.get("completion", 0), at.get("token", 0))
    completion, token = play.panels.tokens.cursor
    try:
        subject = token_subject(shown, completion, token, _candidate(shown.sampled.pieces, at.get("candidate")))
    except ValueError as error:
        play.app.notify(f"{str(error)[:1].upper()}{str(error)[1:]}.", severity="warning", markup=False)
        return
    await show_teachers(play, subject, shown.number if shown.finished is not None else session.run.finished)


def _candidate(pieces: dict[int, str], text: str | None) -> int | None:
    """The id of a candidate by its text. Raises ValueError if none has it."""
    if text is None:
        return None
    found = next((each for each, piece in pieces.items() if piece == text), None)
    if found is None:
        raise ValueError(f"no candidate is written {text!r}")
    return found


ACTIONS: dict[str, Action] = {
    "teachers": _teachers,
}

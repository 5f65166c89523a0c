"""The health of the run on the screen, up to the update that it shows."""

from __future__ import annotations

from rlplay.health.examine import findings
from rlplay.health.finding import Evidence, Finding
from rlplay.ui.session.session import Session

Examined = tuple[Evidence | None, list[Finding]]
"""What is known of a run up to some update, None before that is; and its problems, the gravest first."""


def examine(session: Session) -> Examined:
    """Examine the run up to the update on the screen.

    While that one is unfinished and nothing is wrong with it, up to the one before, if it is known. A finding from a
    part of the run may be another than that of all of it: nothing is said before the updates before it have been read.
    """
    shown = session.shown
    if shown is None:
        return None, []
    session.digesting.take(shown)
    if session.digesting.left(shown.number):
        return None, []
    run, found = _examined(session, shown.number)
    before = shown.number - 1
    if shown.finished is not None or found or not session.health.knows(before):
        return run, found
    return _examined(session, before)


def _examined(session: Session, number: int) -> Examined:
    timeline = session.run.timeline
    run = session.health.evidence(number, timeline.at(number) if timeline.begun else session.on_record())
    return run, [] if run is None else findings(run)

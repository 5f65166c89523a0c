"""Reads the recorded updates for the belief river, one at a time, so that no key waits for more than one."""

from __future__ import annotations

from rlplay.trace.runfile_format import RunFileError
from rlplay.ui.session.session import Session


def read_next(session: Session) -> bool:
    """Read one update that the run file has and the river lacks; False if there is none.

    An update that cannot be read leaves a gap; the panels say why when that update is on the screen.
    """
    beliefs = session.beliefs
    if beliefs.stale:
        try:
            beliefs.expect(session.source.recorded(), len(session.history.abandoned("num_tokens")))
        except RunFileError:
            beliefs.expect([])
        return True
    if not beliefs.missing:
        return False
    number = beliefs.missing[-1]  # the newest first: the place at the cursor is there
    beliefs.take(number, session.find(number))
    return True

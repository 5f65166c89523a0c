"""Reads what the belief river and the learning map lack, one record at a time: no key waits for more than one."""

from __future__ import annotations

from rlplay.trace.runfile_format import RunFileError
from rlplay.ui.session.session import Session


def next_belief(session: Session) -> bool:
    """Read one update that the run file has and the river lacks; False if there is none.

    An update that cannot be read leaves a gap; the panels say why when that update is on the screen.
    """
    beliefs = session.run.beliefs
    if beliefs.stale:
        try:
            beliefs.expect(session.source.recorded())
        except RunFileError:
            beliefs.expect([])
        return True
    if not beliefs.missing:
        return False
    number = beliefs.missing[-1]  # the newest first: the place at the cursor is there
    found = session.run.find(number)
    beliefs.take(number, None if found is None else found.sampled)
    return True


def next_evaluation(session: Session) -> bool:
    """Read one evaluation that the run file has and the learning map lacks; False if there is none.

    One that cannot be read is left out; the `problem` of the evaluations says why.
    """
    evaluations = session.run.evaluations
    if evaluations.stale:
        evaluations.expect(session.run.history.series("eval_reward")[0])
        return True
    if not evaluations.missing:
        return False
    number, found = evaluations.missing[0], None
    try:
        found = session.source.held_out(number)
    except RunFileError as error:
        evaluations.problem = str(error)
    evaluations.take(number, found)
    return True

"""What is tried against a problem of the run on the screen, or why nothing can be."""

from __future__ import annotations

from dataclasses import replace

from rlplay.health.finding import Problem
from rlplay.health.remedies.remedy import Untried
from rlplay.health.remedies.trial import first_to_try
from rlplay.trace.text import visible
from rlplay.ui.session.examination import examine
from rlplay.ui.session.rehearsing import Rehearsing
from rlplay.ui.session.session import Session


def to_try(session: Session, problem: Problem | None = None) -> Rehearsing | str:
    """The trial of the gravest problem that has one, or of this `problem`; else in one line why there is none.

    The last trial is found again as long as nothing has changed in the run.
    """
    if reason := _no_engine(session):
        return reason
    run, found = examine(session)
    chosen = [each for each in found if problem in (None, each.name)]
    if run is None or not chosen:
        return "No problem has been found yet, so there is nothing to repair."
    plan = first_to_try(run, chosen)
    if plan is None or isinstance(plan, Untried):
        return f"{visible(chosen[0].title)}: no setting to try, as {visible(plan.reason if plan else '')}."
    if plan.since > session.run.finished:
        since = session.run.finished
        plan = replace(plan, since=since, why=f"from update {since}, the last that is finished")
    begins = session.run.rewinds, session.settings_after(plan.since)
    known = session.rehearsing
    if known is None or (known.trial.finding, known.trial.since, known.begins) != (plan.finding, plan.since, begins):
        return Rehearsing(plan, run, begins)
    return known


def _no_engine(session: Session) -> str:
    if not session.has_engine:
        return _command(session)
    if session.failed is not None:
        return "The engine has ended. Press r to resume, then try again."
    if session.status is None:
        return "The engine is starting; try as soon as it is ready."
    within = session.run.newest is not None and session.run.newest.number > session.status.update
    if within and not session.status.running:
        return "An update is under way. Press u to finish it, then try."
    return ""


def _command(session: Session) -> str:
    """What tries a repair of a run that has no engine here."""
    path, started = visible(str(session.source.path)), session.run.started
    if started is None or not started.source:
        return f"Only an engine can try a repair, and a recording has none: rlplay try {path}"
    if started.source.startswith("TRL "):
        return f"Only an engine can try a repair. From a checkpoint of TRL: rlplay try {path} --checkpoint DIR"
    return f"Only an engine can try a repair, and rlplay makes none of a checkpoint of {visible(started.source)}."

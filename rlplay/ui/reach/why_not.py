"""Whether the question about other rewards can be asked now."""

from __future__ import annotations

from rlplay.trace.update import Update
from rlplay.ui.session.session import Session

LONGEST = 15.0
"""Seconds of an update that is taken once more for a question, at most."""


def why_not(session: Session, completion: int, token: int) -> str:
    """Why the question cannot be asked about a token of the update on the screen, in one line; empty if it can."""
    status, shown = session.status, session.shown
    if not session.has_engine:
        return "Another reward needs a live run: the engine takes the update once more."
    if status is None or status.running:
        return "Pause the run first: the engine takes the update once more for each reward."
    if session.looking is not None or shown is not session.run.newest or shown is None or shown.finished is None:
        return "Only the newest update can be taken once more, once it has finished: press u, or v to go to it."
    if shown.finished.seconds > LONGEST:
        return f"An update takes {shown.finished.seconds:.0f} s here, and this question takes it seven times: too long."
    return _why_no_reward(shown, completion, token)


def _why_no_reward(update: Update, completion: int, token: int) -> str:
    sampled, scored = update.sampled, update.scored
    if sampled is None or scored is None or scored.roles:
        return "These answers have no rewards."
    place = int(sampled.offsets[completion]) + token
    if place >= int(sampled.offsets[completion + 1]) or not sampled.mask[place]:
        return "The policy did not write this: put the cursor on a token that it wrote."
    return ""

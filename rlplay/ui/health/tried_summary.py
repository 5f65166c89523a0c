"""What a repair that is tried has come to, in a few sentences."""

from __future__ import annotations

from rlplay.ui.format.shown_text import literal
from rlplay.ui.health.tried_rows import called
from rlplay.ui.session.rehearsing import Candidate, Rehearsing


def summary(tried: Rehearsing, lost: bool = False, trains: bool = False) -> str:
    """What is under way, or what helped and what did not; with the keys that go on.

    `lost` if the engine has ended, `trains` while it still finishes an update of the run.
    """
    if tried.under_way and trains:
        return "The run finishes its update first, then it is paused. `esc` ends this."
    if tried.under_way:
        return f"{_progress(tried)} The run is paused; `esc` ends this, and the run is where it was."
    if tried.refused:
        return f"Nothing can be tried: {literal(tried.refused)}."
    parts = [f"Tried {literal(tried.trial.why)}."]
    if lost:
        parts.append("The engine has ended. The run is saved up to its last snapshot: `esc`, then `r` resumes it.")
    elif any(each.state == "stopped" for each in tried.candidates):
        parts.append("Ended before all was tried; the run is where it was. `enter` tries the rest.")
    return " ".join([*parts, *_helped(tried, lost)])


def _progress(tried: Rehearsing) -> str:
    now, count = tried.current, len(tried.candidates)
    if now is None:
        return "Starting."
    at, updates = tried.candidates.index(now) + 1, tried.trial.updates
    return f"{at} of {count}: {_said(now)}, update {min(now.tried + 1, updates)} of {updates}."


def _helped(tried: Rehearsing, lost: bool) -> list[str]:
    outcomes = [(each, each.judged.outcome) for each in tried.candidates if each.remedy.changes and each.judged]
    helped = [each for each, outcome in outcomes if outcome is not None and outcome.helped]
    others = [each for each, outcome in outcomes if outcome is not None and not outcome.helped]
    if not helped:
        count = "1 update" if tried.trial.updates == 1 else f"{tried.trial.updates} updates"
        return [f"Nothing that was tried helped in {count}; `+`, then `enter` looks further."] if others else []
    parts = [f"Helped: {_list(helped)}."]
    if others:
        parts.append(f"Did not help: {_list(others)}.")
    return parts if lost else [*parts, "`a` starts a branch with the selected change."]


def _list(candidates: list[Candidate]) -> str:
    return " · ".join(map(_said, candidates))


def _said(candidate: Candidate) -> str:
    return literal(called(candidate))

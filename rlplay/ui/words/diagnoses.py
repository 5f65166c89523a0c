"""The findings of the health checks as sentences of the screen."""

from __future__ import annotations

from rlplay.health.finding import Finding
from rlplay.trace.history import History
from rlplay.trace.numbers import number
from rlplay.ui.format.shown_text import literal


def warning(finding: Finding | None) -> str:
    """A finding in a few sentences; empty for none."""
    if finding is None:
        return ""
    title = "" if finding.evidence.startswith(finding.title) else f"{finding.title}. "
    return literal(f"{title}{finding.evidence} {finding.change}")


def progress(history: History) -> str:
    """The change of the reward, in one sentence; empty before there are two values."""
    updates, values = history.series("reward")
    if len(values) < 2:
        return ""
    span = f"from {number(values[0])} at update {updates[0]} to {number(values[-1])} at {updates[-1]}"
    return f"Reward {span}."

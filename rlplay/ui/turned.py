"""What is told once a knob has been turned: what changed, and from when on it makes a difference."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rlplay.scenario.knobs import KNOBS
from rlplay.scenario.settings import shown
from rlplay.trace.records import Changed
from rlplay.trace.settings import takes_hold
from rlplay.trace.text import visible


def told(changes: Sequence[Changed]) -> str:
    """A line for each setting, and below those that take hold together the update in which they do."""
    groups = groupby(changes, key=takes_hold)
    return "\n".join(line for since, group in groups for line in (*map(_line, group), f"from update {since} on"))


def _line(change: Changed) -> str:
    title = KNOBS[change.name].title if change.name in KNOBS else change.name
    others = f", and {len(change.also)} more with it" if change.also else ""
    return visible(f"{title} {shown(change.previous)} → {shown(change.value)}{others}")

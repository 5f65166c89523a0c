"""Texts about changed settings: what changed, and from which update it takes effect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec

from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.setting_values import shown
from rlplay.trace.records import Changed
from rlplay.trace.settings_timeline import effective_from
from rlplay.trace.text import visible


def changes_notice(changes: Sequence[Changed]) -> str:
    """A line for each setting; below settings that take effect together, their first update."""
    groups = groupby(changes, key=effective_from)
    return "\n".join(line for since, group in groups for line in (*map(_line, group), f"from update {since} on"))


def reverting_changes(changes: Iterable[Changed], number: int) -> list[Changed]:
    """The changes that revert `changes` when a run goes back to the end of update `number`, before all of them.

    `changes` are in the order they were made. The result has one change for each setting that they altered.
    """
    back: dict[str, Changed] = {}
    for change in changes:
        first = back.get(change.name)
        before = change.previous if first is None else first.value
        back[change.name] = msgspec.structs.replace(
            change, update=number + 1, phase="sample", value=before, previous=change.value
        )
    return [change for change in back.values() if change.value != change.previous]


def changes_line(changes: Iterable[Changed]) -> str:
    """Changed settings in one line: "Temperature 0.2 → 1 · Clip ε 0.1 → 0.2"."""
    return " · ".join(map(_line, changes))


def _line(change: Changed) -> str:
    title = KNOBS[change.name].title if change.name in KNOBS else change.name
    others = f", and {len(change.also)} more with it" if change.also else ""
    return visible(f"{title} {shown(change.previous)} → {shown(change.value)}{others}")

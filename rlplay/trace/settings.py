"""Which settings held when, from those a run began with and the changes since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rlplay.trace.records import Changed, Turn
from rlplay.trace.update import PHASES, Phase


def settings_at(
    begun: Mapping[str, Any], changes: Iterable[Turn], update: int, phase: Phase = "update"
) -> dict[str, Any]:
    """The settings that held in `phase` of update `update`; `changes` in the order they were made."""
    settings = dict(begun)
    for change in changes:
        if _order(change.update, change.phase) <= _order(update, phase):
            settings |= {**change.also, change.name: change.value} if isinstance(change, Changed) else change.settings
    return settings


def changes_until(changes: Iterable[Turn], update: int) -> list[Turn]:
    """The changes that are left when the run goes back to the end of `update`."""
    return [change for change in changes if _order(change.update, change.phase) <= _order(update + 1, "sample")]


def _order(update: int, phase: str) -> tuple[int, int]:
    return update, PHASES.index(phase)

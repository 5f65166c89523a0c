"""Which settings hold when: the initial ones and every change since, by the phase of the update it took effect in."""

from __future__ import annotations

from typing import Any

import msgspec

from rlplay.algorithms.apply import apply, validated
from rlplay.algorithms.settings import Settings
from rlplay.trace.records import Changed, Staged, Turn
from rlplay.trace.update import PHASES, Phase

Point = tuple[int, Phase]
"""The beginning of a phase of an update."""


class Knobs:
    """The history of a run's settings; with the seed it is all that a run needs to be done again."""

    def __init__(self, initial: Settings, changes: list[Turn]) -> None:
        self._initial = initial
        self._changes = list(changes)

    def at(self, point: Point) -> Settings:
        """The settings that a phase beginning at `point` reads."""
        return self._after([c for c in self._changes if _order((c.update, c.phase)) <= _order(point)])

    def latest(self) -> Settings:
        """The settings with every change, those that wait for the next phase included."""
        return self._after(self._changes)

    def _after(self, changes: list[Turn]) -> Settings:
        settings = self._initial
        for change in changes:
            if isinstance(change, Staged):
                settings = msgspec.convert(change.settings, Settings)
            else:
                settings = apply(settings, change.name, change.value)
        return settings

    def knows(self, stage: int) -> bool:
        """Whether a stage has begun, by its index."""
        return any(isinstance(change, Staged) and change.index == stage for change in self._changes)

    def begin(self, staged: Staged) -> None:
        """A stage begins; its settings replace all that were turned before."""
        self._changes.append(staged)

    def changes_loss(self, name: str, value: Any) -> bool:
        """Whether the change exchanges the loss, which an update under way cannot do. Raises ValueError as `change`."""
        before = self.latest()
        return apply(before, name, value).loss_type != before.loss_type

    def change(self, name: str, value: Any, point: Point) -> Changed:
        """Change one setting from `point` on. Raises ValueError, one line, if it is not allowed."""
        before = self.latest()
        after = validated(apply(before, name, value))
        update, phase = point
        differs = {key: value for key, value in as_dict(after).items() if value != getattr(before, key) and key != name}
        change = Changed(
            update=update,
            phase=phase,
            name=name,
            value=getattr(after, name),
            previous=getattr(before, name),
            also=differs,
        )
        self._changes.append(change)
        return change

    def forget_after(self, update: int) -> None:
        """Drop the changes that came after the end of `update`: the run went back there."""
        limit = _order((update + 1, "sample"))
        self._changes = [c for c in self._changes if _order((c.update, c.phase)) <= limit]


def _order(point: tuple[int, str]) -> tuple[int, int]:
    update, phase = point
    return update, PHASES.index(phase)


def next_point(point: Point) -> Point:
    """The phase that follows: after "after" comes the next update's "sample"."""
    update, phase = point
    index = PHASES.index(phase) + 1
    return (update, PHASES[index]) if index < len(PHASES) else (update + 1, "sample")


def as_dict(settings: Settings) -> dict[str, Any]:
    """Settings by name, for records and events."""
    return dict(msgspec.structs.asdict(settings))

"""A changed setting that may cure a finding, and what is rehearsed to see whether it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlplay.algorithms.setting_values import written
from rlplay.health.finding import Finding
from rlplay.trace.rehearsals import Rehearse

UNCHANGED = "unchanged"
"""The label of the run as it is, which the others are held against."""


@dataclass(frozen=True)
class Remedy:
    """Settings to try, with a short label: "a tenth of the learning rate". Without `changes` it is the run as it is."""

    label: str
    changes: dict[str, Any]

    @property
    def text(self) -> str:
        """The settings as commands write them: "learning_rate=0.001"; empty for the run as it is."""
        return ", ".join(f"{name}={written(value)}" for name, value in self.changes.items())


@dataclass(frozen=True)
class Trial:
    """What is rehearsed for a finding: the run as it is first, then each remedy, all from the end of update `since`.

    `why` says in a sentence why they begin there.
    """

    finding: Finding
    since: int
    updates: int
    why: str
    remedies: tuple[Remedy, ...]

    @property
    def branches(self) -> tuple[Remedy, ...]:
        """What is rehearsed, in order; `Rehearsed.index` counts them."""
        return Remedy(UNCHANGED, {}), *self.remedies

    def question(self, number: int = 0) -> Rehearse:
        """What to ask the engine."""
        return Rehearse(self.since, self.updates, [each.changes for each in self.branches], number)


@dataclass(frozen=True)
class Untried:
    """Nothing can be tried for a finding: why, in a sentence."""

    finding: Finding
    reason: str

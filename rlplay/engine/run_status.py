"""Where a run is, as its driver says; known without torch."""

from __future__ import annotations

from dataclasses import dataclass

from rlplay.algorithms.settings import Settings
from rlplay.trace.update import Phase


@dataclass(frozen=True)
class RunStatus:
    """Where a run is: updates finished, and the phase that is under way or next."""

    update: int
    phase: Phase
    settings: Settings  # with every change, those that wait for their phase included
    finished: bool  # max_updates reached
    kept: int = 0  # the last update whose state is on disk

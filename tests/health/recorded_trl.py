"""The health of a trainer of TRL that a test has really trained."""

from __future__ import annotations

from pathlib import Path

from rlplay.foreign.recording import Recording
from rlplay.health.finding import Evidence
from rlplay.health.health_of_run import Health
from rlplay.trace.run import Run


def examined(recording: Path) -> Evidence:
    """What the checks look at in a recording, up to its last update."""
    reading = Recording(recording)
    run = Run(kept=1000, candidates=False)
    run.add(reading.started())
    for record in reading.fresh():
        run.add(record)
    health = Health(run)
    for update in run.updates.values():
        health.add(update)
    found = health.evidence(run.finished, run.timeline.at(run.finished))
    assert found is not None
    return found

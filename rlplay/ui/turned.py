"""What is told once a knob has been turned: what changed, and from when on it holds."""

from __future__ import annotations

from collections.abc import Sequence

from rlplay.scenario.knobs import KNOBS
from rlplay.scenario.settings import written
from rlplay.trace.records import Changed
from rlplay.trace.text import visible
from rlplay.ui.legend import PHASE_MARKS


def told(changes: Sequence[Changed]) -> str:
    """A line for each setting, and a last one with the phase that reads them first."""
    last = changes[-1]
    phase = "" if last.phase == "sample" else f", phase {PHASE_MARKS[last.phase]} {last.phase},"
    return "\n".join([*map(_line, changes), f"holds from update {last.update}{phase} on"])


def _line(change: Changed) -> str:
    title = KNOBS[change.name].title if change.name in KNOBS else change.name
    others = f", and {len(change.also)} more with it" if change.also else ""
    return visible(f"{title} {written(change.previous)} → {written(change.value)}{others}")

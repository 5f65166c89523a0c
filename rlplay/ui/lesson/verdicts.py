"""What a lesson says of its own accord: the verdict on a prediction, and where it is."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.setting_values import written
from rlplay.scenario.reproduction import scenario_of
from rlplay.scenario.script import Ask, Change, PreferStep, RewindStep, Step, Train
from rlplay.trace.text import visible
from rlplay.ui.session.session import Session

Place = tuple[int, str]
"""The number of finished updates, and the current or next phase."""


def verdict(asked: Ask, choice: int | None) -> str:
    """Answer a question that the user predicted with `choice`, or not at all."""
    answer = f"{asked.choices[asked.answer]}. {asked.because}"
    if choice is None:
        return f"Answer: {answer}"
    return f"✓ Right: {answer}" if choice == asked.answer else f"✗ Not quite: {answer}"


def where(place: Place) -> str:
    """Describe a place in words."""
    update, phase = place
    if phase == "sample":
        return f"after update {update}" if update else "at the start"
    return f"in update {update + 1}, before {phase.upper()}"


def turned(names: Iterable[str], begins: bool) -> str:
    """Name the settings that are not as the lesson left them, or `begins` with; empty without any."""
    titles = ", ".join(KNOBS[name].title if name in KNOBS else name for name in names)
    if begins:  # it may have changed them itself, before it was started again
        return f"The lesson begins with its own settings. Changed since then: {titles}." if titles else ""
    return f"You changed {titles}. The lesson needs its own settings." if titles else ""


def solved_by(steps: Iterable[Step]) -> str:
    """What the steps of a solution do, as one sentence; empty where they neither change settings nor move the run."""
    parts = list(filter(None, map(_does, steps)))
    return f"{', then '.join(parts)}." if parts else ""


def _does(step: Step) -> str:
    match step:
        case Change(settings):
            return "set " + " and ".join(f"{name} to {written(value)}" for name, value in settings.items())
        case Train(until, count):
            return f"run {count} {'optimizer ' * (until == 'step')}{until}{'s' * (count > 1)}"
        case RewindStep(update):
            back = "by one update" if update is None else f"to update {update}" if update else "to the start"
            return f"go back {back}"
        case PreferStep(choices):
            return f"answer {', '.join(choices)}"
    return ""


def reading_time(text: str) -> float:
    """Seconds that `text` takes to read."""
    return max(3.0, len(text) / 18)


def no_lesson(session: Session) -> str:
    """Why no lesson can be played: it is over, or the run has none."""
    if session.source.script:
        return "The lesson is over."
    if session.source.live or session.run.started is None:
        return "There is no lesson here."
    played = scenario_of(session.run.started).origin or session.run.started.scenario
    return f"A recording has no lesson. To play one: rlplay {visible(shlex.quote(played))}"

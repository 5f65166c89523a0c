"""The stages of a recorded run, as far as it went; each becomes a section of the script."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import msgspec

from rlplay.algorithms.settings import Settings, written
from rlplay.export.atomic_output import ExportError
from rlplay.scenario.schema import Scenario, Stage
from rlplay.tasks import load_task
from rlplay.tasks.own import brings_answers, load_own
from rlplay.trace.pairs import pairs
from rlplay.trace.records import Changed
from rlplay.trace.runfile import RunReader


@dataclass(frozen=True)
class Played:
    """One stage: updates `first` to `last` of the run, the settings it began with, what was changed on the way.

    `planned` is how many updates its scenario gives it. `recorded` counts the pairs of the run that it learns from,
    None where answers are sampled anew or given; `thinned` says how many updates have theirs no more.
    """

    name: str
    first: int
    last: int
    planned: int
    settings: Settings
    changed: list[str]
    recorded: int | None
    thinned: str

    @property
    def updates(self) -> int:
        """How many the run has."""
        return self.last - self.first + 1


def stages_of(scenario: Scenario, reader: RunReader) -> tuple[list[Played], list[str]]:
    """The stages that the run reached, and the names of those it did not.

    Raises ValueError, one line, if its dataset is gone or a setting is not known any more.
    """
    reached = max(reader.updates(), default=0)
    if not reached:
        raise ExportError(f"{reader.path.name} has no finished update yet; let the run go on")
    stages = scenario.stages or [Stage("", scenario.max_updates)]
    firsts = list(accumulate((stage.updates for stage in stages), initial=1))
    # The last stage goes on for as long as somebody lets it.
    lasts = [first - 1 for first in firsts[1:-1]] + [reached]
    played = [
        _played(stage, first, min(last, reached), reader, scenario)
        for stage, first, last in zip(stages, firsts, lasts, strict=False)
        if first <= reached
    ]
    return played, [stage.name for stage in stages[len(played) :]]


def _played(stage: Stage, first: int, last: int, reader: RunReader, scenario: Scenario) -> Played:
    settings = msgspec.convert(reader.settings(first), Settings)
    changed = [
        f"{record.name} went from {written(record.previous)} to {written(record.value)} in update {record.update}"
        for record in reader.changes()
        if isinstance(record, Changed) and first <= record.update <= last and not _in_force(record, first)
    ]
    recorded, thinned = None, ""
    if settings.loss_type != "policy_gradient" and not _given(scenario, settings):
        kept = [number for number in reader.detailed() if first <= number <= last]
        recorded = sum(1 for number in kept for _ in pairs(reader.load(number)))
        lost = last - first + 1 - len(kept)
        thinned = f"; {lost} updates have theirs no more" if lost else ""
    return Played(stage.name, first, last, stage.updates, settings, changed, recorded, thinned)


def _in_force(change: Changed, first: int) -> bool:
    """Whether a change is among the settings of update `first`."""
    return change.update == first and change.phase != "after"


def _given(scenario: Scenario, settings: Settings) -> bool:
    """Whether the dataset says which answers are good, so that the model need not write any."""
    if settings.labeller == "user":
        return False
    if scenario.task:
        return brings_answers(load_task(scenario.task), settings)
    own = load_own(scenario.dataset or "", {}, config=scenario.dataset_config, split=scenario.dataset_train_split)
    return brings_answers(own, settings)

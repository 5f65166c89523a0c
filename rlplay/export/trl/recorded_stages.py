"""The stages that a recorded run reached; each becomes a section of the script."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from rlplay.algorithms.setting_values import check, written
from rlplay.algorithms.settings import Settings
from rlplay.export.atomic_output import ExportError
from rlplay.scenario.schema import Scenario, Stage
from rlplay.scenario.stage_settings import stage_scenarios
from rlplay.tasks import load_task
from rlplay.tasks.own_prompts import brings_answers, load_own
from rlplay.trace.pairs import pairs
from rlplay.trace.records import Changed
from rlplay.trace.runfile import RunReader
from rlplay.user_code import names_function


@dataclass(frozen=True)
class PlayedStage:
    """One stage: updates `first` to `last` of the run, the settings at its start, and the changes during it.

    `scenario` is the run's as the stage sees it. `planned` is the scenario's number of updates. `recorded` counts the
    run's pairs that the stage learns from; it is None if the script samples new answers or a dataset has them.
    `thinned` says how many updates lost their pairs.
    """

    name: str
    first: int
    last: int
    planned: int
    settings: Settings
    changed: list[str]
    recorded: int | None
    thinned: str
    scenario: Scenario

    @property
    def rewarded(self) -> bool:
        """Whether it learns from rewards."""
        return self.settings.loss_type == "policy_gradient"

    @property
    def updates(self) -> int:
        """How many updates of this stage the run has."""
        return self.last - self.first + 1


def stages_of(scenario: Scenario, reader: RunReader) -> tuple[list[PlayedStage], list[str]]:
    """The stages that the run reached, and the names of those it did not.

    Raises ValueError, one line, if its dataset is gone or this version does not know a setting.
    """
    reached = max(reader.updates(), default=0)
    if not reached:
        raise ExportError(f"{reader.path.name} has no finished update yet; continue the run")
    stages = scenario.stages or [Stage("", scenario.max_updates)]
    firsts = list(accumulate((stage.updates for stage in stages), initial=1))
    # The last stage may run beyond its planned updates.
    lasts = [first - 1 for first in firsts[1:-1]] + [reached]
    played = [
        _played(stage, first, min(last, reached), reader, seen)
        for stage, first, last, seen in zip(stages, firsts, lasts, stage_scenarios(scenario), strict=False)
        if first <= reached
    ]
    return played, [stage.name for stage in stages[len(played) :]]


def _played(stage: Stage, first: int, last: int, reader: RunReader, scenario: Scenario) -> PlayedStage:
    settings = Settings(**{name: check(name, value) for name, value in reader.settings(first).items()})
    changed = [
        f"{record.name} went from {written(record.previous)} to {written(record.value)} in update {record.update}"
        for record in reader.changes()
        if isinstance(record, Changed) and first <= record.update <= last and not _in_force(record, first)
    ]
    recorded, thinned = None, ""
    if settings.loss_type != "policy_gradient" and not _has_answers(scenario, settings):
        kept = [number for number in reader.detailed() if first <= number <= last]
        recorded = sum(1 for number in kept for _ in pairs(reader.load(number)))
        lost = last - first + 1 - len(kept)
        thinned = f"; {lost} updates no longer have theirs" if lost else ""
    return PlayedStage(stage.name, first, last, stage.updates, settings, changed, recorded, thinned, scenario)


def _in_force(change: Changed, first: int) -> bool:
    """Whether a change already holds in update `first`."""
    return change.update == first and change.phase != "after"


def _has_answers(scenario: Scenario, settings: Settings) -> bool:
    """Whether the dataset has the answers, so that the model need not write any."""
    if settings.labeller == "user":
        return False
    if scenario.task and names_function(scenario.task):
        return False  # only running the user's function could tell; the run has the answers in any case
    if scenario.task:
        return brings_answers(load_task(scenario.task), settings)
    own = load_own(scenario.dataset or "", {}, config=scenario.dataset_config, split=scenario.dataset_train_split,
                   columns=scenario.columns)  # fmt: skip
    return brings_answers(own, settings)

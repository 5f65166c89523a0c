"""The settings at each step of a scenario's script, so that a `set` that cannot fit is found before playing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from rlplay.algorithms.apply import apply_all, resolve
from rlplay.algorithms.settings import Settings
from rlplay.scenario.lesson import whole_script
from rlplay.scenario.named_files import mapping_problems
from rlplay.scenario.schema import Scenario, Stage
from rlplay.scenario.script import Change, Exercise, RewindStep, Step, Train, You, parse
from rlplay.spelling import did_you_mean
from rlplay.trace.text import quote

_OF_DATASET = ("dataset_config", "dataset_train_split", "columns")


class ScriptSettings:
    """Follows the settings through the steps of a script.

    It does not count updates that the script plays token by token or phase by phase; the engine checks again.
    """

    def __init__(self, stages: dict[int, Settings]) -> None:
        """`stages` holds the settings of each stage by the number of updates before it; the first has 0."""
        self._stages = stages
        self.settings = stages[0]
        self.at = {0: stages[0]}
        self.done = 0
        self.in_update = False

    def follow(self, step: Step) -> None:
        """Take one step. Raises ValueError, one line, if its settings do not fit together."""
        if isinstance(step, Exercise):
            for each in step.solution:
                self.follow(each)
            return
        step = step.step if isinstance(step, You) else step
        if isinstance(step, Change):
            self.settings = apply_all(self.settings, step.settings)
            if not self.in_update:
                self.at[self.done] = self.settings
        elif isinstance(step, RewindStep):
            back = self.done if self.in_update else self.done - 1
            self.done, self.in_update = max(0, back if step.update is None else step.update), False
            self.at = {update: settings for update, settings in self.at.items() if update <= self.done}
            self.settings = self.at[max(self.at)]
        elif isinstance(step, Train):
            self.in_update = step.until != "update"
            if not self.in_update:
                self._go(step.count)

    def _go(self, count: int) -> None:
        for update in range(self.done + 1, self.done + count + 1):
            if update in self._stages:
                self.settings = self.at[update] = self._stages[update]
        self.done += count
        self.at[self.done] = self.settings


def script_settings(settings: Settings, stages: Any) -> ScriptSettings | None:
    """The settings at the start of a scenario with these `settings` and `stages`; None if the stages are wrong."""
    if not stages:
        return ScriptSettings({0: settings})
    if not isinstance(stages, list) or any(_stage_faults(stages, settings)):
        return None
    stage_settings, updates_before = dict[int, Settings](), 0
    for stage in stages:
        stage_settings[updates_before] = apply_all(settings, stage.get("settings", {}))
        updates_before += stage["updates"]
    return ScriptSettings(stage_settings)


def settings_at(scenario: Scenario, step: int) -> Settings:
    """The settings after the first `step` steps of a lesson that nobody leaves.

    Raises ValueError, one line, if a `set` of the script does not fit.
    """
    following = script_settings(resolve(scenario.settings), msgspec.to_builtins(scenario.stages))
    if following is None:
        raise ValueError("the stages of the scenario do not fit")
    for each in parse(whole_script(scenario)[:step]):
        following.follow(each)
    return following.settings


def stage_problems(node: yaml.Node, stages: Any, settings: Settings | None) -> Iterator[tuple[int, str]]:
    """What is wrong with a scenario's stages, each with its line; `settings` are the scenario's own, if they fit."""
    if not isinstance(node, yaml.SequenceNode) or not stages:
        yield node.start_mark.line + 1, "stages is a list, as in '- {name: sft, updates: 20, settings: {…}}'"
        return
    for number, (place, fault) in enumerate(zip(node.value, _stage_faults(stages, settings), strict=True), start=1):
        if fault:
            yield place.start_mark.line + 1, f"stage {number}: {fault}"


def _stage_faults(stages: list[Any], settings: Settings | None) -> Iterator[str]:
    """The problem of each stage; empty if it has none."""
    names: list[Any] = []
    for stage in stages:
        yield _fault(stage, names, settings)
        names.append(stage.get("name") if isinstance(stage, dict) else None)


def _data_problems(stage: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the data of a stage; what is empty counts as left out."""
    stage = {name: value for name, value in stage.items() if value not in (None, {}, [])}
    for name in ("dataset", *_OF_DATASET):
        value = stage.get(name, "-")
        if name == "columns":
            yield from mapping_problems(name, value) if name in stage else ()
        elif not isinstance(value, str) or not value.strip():
            yield f"{name} takes text; got {quote(value)}"
        if name in stage and "dataset" not in stage:
            yield f"{name} belongs to a dataset of the stage, which has none"
    reward = stage.get("reward", ["-"])
    if not (isinstance(reward, list) and reward and all(isinstance(entry, str) for entry in reward)):
        yield f"reward takes a list of texts; got {quote(reward)}"


def _fault(stage: Any, earlier: list[Any], settings: Settings | None) -> str:
    if not isinstance(stage, dict):
        return "expected a mapping with name, updates and settings"
    name, updates, own = stage.get("name"), stage.get("updates"), stage.get("settings", {})
    known = Stage.__struct_fields__
    problems = [f"unknown key {quote(str(key))}{did_you_mean(str(key), known)}" for key in stage if key not in known]
    if not isinstance(name, str) or not name.strip() or name in earlier:
        problems.append(f"it needs a name that no other stage has; got {quote(name)}")
    if type(updates) is not int or updates < 1:
        problems.append(f"updates takes a whole number, 1 or more; got {quote(updates)}")
    if not isinstance(own, dict):
        problems.append("settings is a mapping, as in {beta: 0.1}")
    elif settings is not None:
        try:
            apply_all(settings, own)
        except ValueError as error:
            problems.append(str(error))
    problems += _data_problems(stage)
    return problems[0] if problems else ""

"""The whole script: its head, imports and constants, then for each stage its rows, trainer and model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlplay.algorithms.settings import REWARD_MODEL
from rlplay.algorithms.trl_verl import EXPERIMENTAL, trainer_of
from rlplay.export.atomic_output import ExportError, atomic_output
from rlplay.export.trl.fields import absolute, absolute_entry, literal, note, plain
from rlplay.export.trl.limits import unsupported_setting, unsupported_task
from rlplay.export.trl.section import RunFacts, section_lines
from rlplay.export.trl.stages import PlayedStage, stages_of
from rlplay.scenario.reproduction import scenario_of
from rlplay.scenario.schema import Scenario
from rlplay.tasks import load_task
from rlplay.trace.runfile import RunReader
from rlplay.user_code import names_function
from rlplay.version import __version__

TRL = "1.16"
"""The version of TRL whose names the script uses."""


def export_trl(run: Path, out: Path) -> None:
    """Write a script to `out` that trains with TRL under the settings of the run file `run`.

    Raises ValueError, one line, if TRL cannot do what the run did, or `out` cannot be written.
    """
    with RunReader(run) as reader:
        text = script(reader)
    with atomic_output(out) as partial:
        partial.write_text(text, encoding="utf-8")


def script(reader: RunReader) -> str:
    """The script for the updates that a run has. Raises ValueError as `export_trl` does."""
    scenario = scenario_of(reader.started)
    if reason := unsupported_task(scenario):
        raise ExportError(f"{reader.path.name}: {reason}; export the run's tokens or curves")
    own_words = scenario.tools or scenario.environment_factory
    if names_function(scenario.task or "") and not own_words and _has_environment(reader):
        reason = "the task's environment replies in the middle of an answer, which TRL does not support"
        raise ExportError(f"{reader.path.name}: {reason}; export the run's tokens or curves")
    stages, missing = stages_of(scenario, reader)
    for stage in stages:
        where = f"{reader.path.name}: stage {stage.name}: " if stage.name else f"{reader.path.name}: "
        if reason := unsupported_setting(stage.settings, bool(scenario.tools or scenario.environment_factory)):
            raise ExportError(f"{where}{reason}; change that, or export the run's tokens or curves")
        if stage.recorded == 0:
            raise ExportError(f"{where}it has no pairs to learn from yet; continue the run")
    lines = [*_head(reader), "", *_imports(scenario, stages), "", *_constants(reader, scenario, stages)]
    model, facts = "MODEL", _run_facts(reader, scenario, stages)
    for number, stage in enumerate(stages, start=1):
        place = "OUT" if len(stages) == 1 else f'OUT / "stage-{number}"'
        lines += ["", *section_lines(stage, facts, model, place)]
        if stage.settings.loss_type == "reward":
            facts.reward_model = f"str({place})"
        else:
            model = f"str({place})"
    for name in missing:
        lines += ["", note(f"the run ended before stage {name}; continue the run and export it again")]
    return "\n".join(lines) + "\n"


def _run_facts(reader: RunReader, scenario: Scenario, stages: list[PlayedStage]) -> RunFacts:
    evaluated = bool(scenario.eval_every) and reader.latest("eval_reward") is not None
    return RunFacts(scenario, reader.started.device == "cpu", evaluated, _reward_names(reader, scenario, stages))


def _reward_names(reader: RunReader, scenario: Scenario, stages: list[PlayedStage]) -> list[str]:
    """The names of the reward functions; of a task of the user's, which is not run here, those that the run called."""
    if scenario.reward or not scenario.task:
        return [entry.rpartition(":")[2] for entry in scenario.reward]
    if not names_function(scenario.task):
        return list(load_task(scenario.task).rewards)
    names = dict[str, None]()
    for stage in stages:
        kept = [number for number in reader.detailed() if stage.first <= number <= stage.last]
        scored = reader.load(kept[0]).scored if kept else None
        names |= dict.fromkeys(() if scored is None else scored.weights)
    of_environment = (scenario.environment_factory or "").rpartition(":")[2]  # TRL adds its reward itself
    return [name for name in names if name not in (REWARD_MODEL, of_environment)]


def _has_environment(reader: RunReader) -> bool:
    """Whether somebody else's words are in the answers of the run."""
    records = (reader.load(number).sampled for number in reader.detailed()[:1])
    return any(sampled is not None and not sampled.mask.all() for sampled in records)


def _head(reader: RunReader) -> Iterator[str]:
    yield f"# Trains with TRL {TRL} under the settings of a run of rlplay: {plain(reader.started.title)}."
    yield "#"
    yield "# Prompts and rewards come from rlplay, as in the run. To do without rlplay, replace them by your own."
    yield "# TRL draws its own random numbers, so the same seed gives other prompts and answers than in rlplay."
    yield "# Start it on one device: each further device would add as many completions to every step."
    yield '# A comment "# rlplay: …" marks what has no counterpart in TRL.'
    yield f"# Written by rlplay {__version__} from {plain(reader.path.name)}."


def _imports(scenario: Scenario, stages: list[PlayedStage]) -> Iterator[str]:
    used = {found[0] for stage in stages if (found := trainer_of(stage.settings))}
    names = sorted(name for kind in used - EXPERIMENTAL.keys() for name in (kind, kind.replace("Trainer", "Config")))
    yield "from pathlib import Path"
    yield ""
    yield "from datasets import Dataset"
    if "CPOTrainer" in used:
        yield "from transformers import AutoTokenizer"
    if names:
        yield f"from trl import {', '.join(names)}"
    for kind in sorted(used & EXPERIMENTAL.keys()):
        yield f"from {EXPERIMENTAL[kind]} import {kind.replace('Trainer', 'Config')}, {kind}"
    if any(stage.settings.overlong_buffer for stage in stages):
        yield "from trl.rewards import get_soft_overlong_punishment"
    yield ""
    if scenario.model == "pocket":
        yield "from rlplay.paths import POCKET_PATH"
    own_task = bool(scenario.task) and names_function(scenario.task or "")
    yield f"from rlplay.tasks import for_trl{', load_task' if scenario.task and not own_task else ''}"
    own = {
        "instructed": bool(scenario.system_prompt),
        "load_own": not scenario.task,
        "narrowed": scenario.prompts is not None,
    }
    if any(own.values()):
        yield f"from rlplay.tasks.own import {', '.join(name for name, needed in own.items() if needed)}"
    loaders = {"load_function": scenario.tools or scenario.environment_factory, "load_reward": scenario.reward}
    if any(loaders.values()):
        yield f"from rlplay.tasks.own_rewards import {', '.join(name for name, used in loaders.items() if used)}"
    if own_task:
        yield "from rlplay.tasks.own_task import make_task"


def _constants(reader: RunReader, scenario: Scenario, stages: list[PlayedStage]) -> Iterator[str]:
    model = "str(POCKET_PATH)" if scenario.model == "pocket" else literal(absolute(scenario.model))
    yield f"MODEL = {model}{'  # a folder as transformers reads it' if scenario.model == 'pocket' else ''}"
    yield f"SEED = {scenario.seed}"
    yield 'OUT = Path(__file__).resolve().with_suffix(".trained")  # where the model goes'
    if any(stage.recorded is not None for stage in stages):
        yield f"RUN = {literal(str(reader.path.absolute()))}  # its pairs are learned from"
    yield ""
    task = _task(scenario)
    yield f"task = {task}" if scenario.prompts is None else f"task = narrowed({task}, {literal(scenario.prompts)})"
    if scenario.system_prompt:
        yield f"task = instructed(task, {literal(scenario.system_prompt)})"
    if scenario.reward:
        yield "rewards = {"
        for entry in scenario.reward:
            yield f"    {literal(entry.rpartition(':')[2])}: load_reward({literal(absolute_entry(entry))}),"
        yield "}"
    elif any(stage.settings.loss_type == "policy_gradient" for stage in stages):
        yield "rewards = task.rewards"


def _task(scenario: Scenario) -> str:
    """The task as an expression of the script."""
    if not scenario.task:
        return _own_dataset(scenario)
    if names_function(scenario.task):
        return f"make_task({literal(absolute_entry(scenario.task))})"
    return f"load_task({literal(scenario.task)})"


def _own_dataset(scenario: Scenario) -> str:
    """The dataset as an expression of the script, in the words of the run."""
    words = [literal(absolute(scenario.dataset or "")), "{}"]
    parts: dict[str, Any] = {"config": scenario.dataset_config, "split": scenario.dataset_train_split}
    parts |= {"columns": scenario.columns or None}
    words += [f"{name}={literal(value)}" for name, value in parts.items() if value is not None]
    return f"load_own({', '.join(words)})"

"""The whole script: its head, imports and constants, then for each stage its rows, trainer and model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rlplay.algorithms.trl_verl import EXPERIMENTAL, trainer_of
from rlplay.export.atomic_output import ExportError, atomic_output
from rlplay.export.trl.data import data_imports, data_lines, reward_names
from rlplay.export.trl.fields import absolute, literal, note, plain
from rlplay.export.trl.limits import unsupported_setting, unsupported_task
from rlplay.export.trl.recorded_stages import PlayedStage, stages_of
from rlplay.export.trl.section import RunFacts, section_lines
from rlplay.scenario.reproduction import scenario_of
from rlplay.scenario.schema import Scenario
from rlplay.scenario.stage_settings import stage_scenarios
from rlplay.trace.runfile import RunReader
from rlplay.trace.text import visible
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
    if source := reader.started.source:
        raise ExportError(f"{reader.path.name}: {visible(source)} trained this run; export its tokens or curves")
    scenario = scenario_of(reader.started)
    for seen in (scenario, *stage_scenarios(scenario)):
        if reason := unsupported_task(seen):
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
    model, facts = "MODEL", _run_facts(reader, scenario)
    for number, stage in enumerate(stages, start=1):
        facts.rewards = reward_names(reader, stage)
        if number == 1 or stage.scenario != stages[number - 2].scenario:
            lines += ["", *data_lines(stage.scenario, any(each.rewarded for each in stages))]
        place = "OUT" if len(stages) == 1 else f'OUT / "stage-{number}"'
        lines += ["", *section_lines(stage, facts, model, place)]
        if stage.settings.loss_type == "reward":
            facts.reward_model = f"str({place})"
        else:
            model = f"str({place})"
    for name in missing:
        lines += ["", note(f"the run ended before stage {name}; continue the run and export it again")]
    return _joined(lines)


def _joined(lines: list[str]) -> str:
    """The script of these lines. Raises ExportError if a line has a break, at which a comment would end."""
    if broken := [line for line in lines if len(line.splitlines()) > 1]:
        raise ExportError(f"a text of the run has a line break that a script cannot hold: {visible(broken[0])[:80]}")
    return "\n".join(lines) + "\n"


def _run_facts(reader: RunReader, scenario: Scenario) -> RunFacts:
    evaluated = bool(scenario.eval_every) and reader.latest("eval_reward") is not None
    return RunFacts(scenario, reader.started.device == "cpu", evaluated)


def _has_environment(reader: RunReader) -> bool:
    """Whether somebody else's words are in the answers of the run."""
    records = (reader.load(number).sampled for number in reader.detailed()[:1])
    return any(sampled is not None and not sampled.mask.all() for sampled in records)


def _head(reader: RunReader) -> Iterator[str]:
    # In its first two lines Python looks for the file's encoding, so they have no text of the run.
    yield f"# Trains with TRL {TRL} under the settings of a run of rlplay."
    yield "#"
    yield f"# The run: {plain(reader.started.title)}."
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
    if scenario.use_peft:
        yield "from peft import LoraConfig"
    if names:
        yield f"from trl import {', '.join(names)}"
    for kind in sorted(used & EXPERIMENTAL.keys()):
        yield f"from {EXPERIMENTAL[kind]} import {kind.replace('Trainer', 'Config')}, {kind}"
    if any(stage.settings.overlong_buffer for stage in stages):
        yield "from trl.rewards import get_soft_overlong_punishment"
    yield ""
    if scenario.model == "pocket":
        yield "from rlplay.paths import POCKET_PATH"
    yield from data_imports([stage.scenario for stage in stages])


def _constants(reader: RunReader, scenario: Scenario, stages: list[PlayedStage]) -> Iterator[str]:
    model = "str(POCKET_PATH)" if scenario.model == "pocket" else literal(absolute(scenario.model))
    yield f"MODEL = {model}{'  # a folder as transformers reads it' if scenario.model == 'pocket' else ''}"
    yield f"SEED = {scenario.seed}"
    yield 'OUT = Path(__file__).resolve().with_suffix(".trained")  # where the model goes'
    if any(stage.recorded is not None for stage in stages):
        yield f"RUN = {literal(str(reader.path.absolute()))}  # its pairs are learned from"

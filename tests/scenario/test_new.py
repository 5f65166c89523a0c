"""New scenario files: the example is a scenario, and so is it with its comments taken away."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from rlplay.scenario.loader import load, source
from rlplay.scenario.new_file import example, from_run, write
from rlplay.scenario.schema import Scenario
from rlplay.scenario.script import parse
from rlplay.scenario.stage_settings import stage_settings
from rlplay.tasks import task_names
from rlplay.trace.runfile import RunReader, RunWriter
from tests.recorded import synthetic_started, synthetic_update


@pytest.mark.parametrize("name", ["mine", "it's: #1", "123", "東京"])
def test_the_example_is_a_scenario(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.yaml"
    write(path, example(path))
    scenario = load(path)
    assert scenario.title.lower() == name
    assert scenario.task in task_names()
    assert len(parse(scenario.script)) == 7


def test_what_its_comments_offer_exists(tmp_path: Path) -> None:
    text = example(tmp_path / "mine.yaml")
    assert all(name in text for name in task_names())
    offered = re.findall(r"^# (\w+):", text, re.M)
    assert {"summary", "dataset", "reward", "model", "eval_prompts", "stages"} <= set(offered)
    assert set(offered) - {"Play it"} <= set(Scenario.__struct_fields__) | {"Play", "Pipelines"}
    stages = re.sub(r"^# (stages:|  - )", r"\1", text, flags=re.M)
    stages = re.sub(r"^max_updates: .*\n", "", stages, flags=re.M).partition("\nscript:")[0]
    path = tmp_path / "staged.yaml"
    path.write_text(stages)
    assert [stage.name for stage in load(path).stages] == ["imitate", "reinforce"]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("mine")
    with pytest.raises(ValueError, match="exists already"):
        write(path, "other")
    assert path.read_text() == "mine"
    with pytest.raises(ValueError, match="bundled scenario"):
        write(tmp_path / "flattery.yaml", "other")
    with pytest.raises(ValueError, match="there is no folder"):
        write(tmp_path / "none" / "mine.yaml", "other")


@pytest.mark.parametrize("name", ["flattery", "rlhf"])
def test_a_run_brings_its_scenario_along(tmp_path: Path, name: str) -> None:
    run = tmp_path / "run.rlplay"
    writer = RunWriter.create(run, synthetic_started(scenario_text=source(name) + f"name: {name}\nseed: 5\n"))
    for number in (1, 2, 3):
        for record in synthetic_update(number):
            writer.append(record)
    writer.close()
    path = tmp_path / "again.yaml"
    write(path, from_run(run, path))
    again, first = load(path), load(name)
    same = {"script": [], "name": "", "title": "", "origin": "", "seed": 0, "settings": {}, "stages": []}
    assert msgspec.structs.replace(again, **same) == msgspec.structs.replace(first, **same)
    assert stage_settings(again) == stage_settings(first)
    assert again.seed == 5
    assert again.script == [{"update": 3}]
    with RunReader(run) as reader:
        assert len(reader.events()) > 10

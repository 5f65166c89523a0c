"""How a model's weights are kept and which are trained: options, scenario keys, and what is refused."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rlplay.algorithms.apply import resolve
from rlplay.cli.options import option_words
from rlplay.scenario.command_line import with_changes
from rlplay.scenario.loader import ScenarioError, load, read
from rlplay.scenario.reproduction import Reproduction, scenario_of
from tests.cli.command_line import called
from tests.recorded import synthetic_started

LORA: dict[str, Any] = {"use_peft": True, "lora_r": 4, "lora_alpha": 8, "lora_target_modules": ("q_proj", "v_proj")}


def test_options_reach_the_scenario_and_its_command() -> None:
    scenario = with_changes(load("learn-to-think"), dtype="bfloat16", **LORA)
    assert (scenario.dtype, scenario.use_peft, scenario.lora_r) == ("bfloat16", True, 4)
    command = shlex.split(Reproduction(scenario).command(resolve(scenario.settings)))
    words = "--dtype bfloat16 --use_peft --lora_r 4 --lora_alpha 8 --lora_target_modules q_proj"
    assert words in " ".join(command)
    assert option_words({"dtype": "bfloat16", **LORA}) == command[2:]
    plain = Reproduction(load("learn-to-think")).command(resolve(load("learn-to-think").settings))
    assert "lora" not in plain


def test_a_scenario_may_say_so_itself(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    text = "title: T\nquestion: Q\ntask: arithmetic\ndtype: bfloat16\nuse_peft: true\nlora_target_modules: [q_proj]\n"
    path.write_text(text)
    assert load(path).lora_target_modules == ["q_proj"]
    path.write_text(text + "lora_r: 0\n")
    with pytest.raises(ScenarioError, match=r":7: lora_r takes a whole number, 1 or more; got 0$"):
        read(path)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--dtype", "float64"], "dtype is one of auto, float32, bfloat16; got 'float64'"),
        (["--lora_target_modules", "q_proj"], "lora_target_modules needs use_peft"),
        (["--lora_r", "0"], "--lora_r"),
        (["cliff", "--use_peft"], "its policy takes no dtype and no use_peft"),
        (["cliff", "--dtype", "bfloat16"], "its policy takes no dtype and no use_peft"),
    ],
)
def test_what_does_not_fit_is_refused(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, complaint = called(capsys, "run", *words)
    assert status == 2
    assert line in complaint


def test_a_run_is_played_again_in_the_dtype_that_it_got() -> None:
    own = with_changes(load("learn-to-think"), model="some/model", tf32=True)
    recorded = synthetic_started(scenario_text=msgspec.yaml.encode(own).decode(), dtype="bfloat16")
    assert (own.dtype, scenario_of(recorded).dtype) == ("auto", "bfloat16")
    command = Reproduction(scenario_of(recorded)).command(resolve(own.settings))
    assert command.startswith("rlplay learn-to-think --model some/model --dtype bfloat16 --tf32")


@pytest.mark.parametrize("name", ["learn-to-think", "cliff"])
def test_the_bundled_model_and_worlds_need_no_dtype_to_be_played_again(name: str) -> None:
    text = msgspec.yaml.encode(msgspec.structs.replace(load(name), dtype="float32")).decode()
    scenario = scenario_of(synthetic_started(scenario_text=text))
    assert Reproduction(scenario).command(resolve(scenario.settings)) == f"rlplay {name}"

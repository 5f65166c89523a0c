"""Whatever starts the processes of a run, they train as one does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rlplay.processes import is_one_alone
from rlplay.trace.records import AnyRecord, Finished, Notice
from rlplay.trace.runfile import RunReader

_TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "rlplay"]
_ACCELERATE = ["-m", "accelerate.commands.launch", "--num_processes", "2"]
_TWO = {
    "rlplay": ["-m", "rlplay"],
    "torchrun": _TORCHRUN,
    "accelerate": [*_ACCELERATE, "--multi_gpu", "--main_process_port", "0", "-m", "rlplay"],
}
_ONE = [*_ACCELERATE, "--cpu", "-m", "rlplay"]


def _trained(words: list[str], folder: Path) -> tuple[int, list[AnyRecord]]:
    """An update of a bundled scenario: in how many processes, and its records."""
    run = folder / "run.rlplay"
    more = ["run", "first-reward", "--device", "cpu", "--updates", "1", "--out", str(run)]
    more += ["--processes", "2"] * (words == _TWO["rlplay"])
    home = {"RLPLAY_HOME": str(folder), "HF_HOME": str(folder)}  # a configuration of accelerate's would count
    done = subprocess.run(
        [sys.executable, *words, *more], env=os.environ | home, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("3 of 3 expectations hold") == 1, "only the first process talks"
    with RunReader(run) as reader:
        return reader.started.processes, [record for _, record in reader.follow(0)]


def _remarks(records: list[AnyRecord]) -> list[str]:
    return [each.text for each in records if isinstance(each, Notice)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[AnyRecord]:
    """What one process records, which accelerate starts where several were asked for."""
    count, records = _trained(_ONE, tmp_path_factory.mktemp("alone"))
    assert count == 1
    assert any(text.startswith("accelerate launch was asked for several") for text in _remarks(records))
    return records


@pytest.mark.slow
@pytest.mark.parametrize("launcher", _TWO)
def test_a_launcher_trains_a_scenario(launcher: str, alone: list[AnyRecord], tmp_path: Path) -> None:
    count, records = _trained(_TWO[launcher], tmp_path)
    assert count == 2
    assert any(text.startswith("2 processes train this run") for text in _remarks(records))
    one, other = ([each for each in found if isinstance(each, Finished)] for found in (alone, records))
    assert [each.update for each in one] == [each.update for each in other] == [1]
    for name, value in one[0].metrics.items():
        if "time" not in name and "second" not in name:
            np.testing.assert_allclose(other[0].metrics[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("environment", "alone"),
    [
        ({}, False),
        ({"ACCELERATE_USE_CPU": "True"}, False),
        ({"ACCELERATE_USE_CPU": "True", "MASTER_ADDR": "127.0.0.1"}, True),
        ({"ACCELERATE_USE_CPU": "False", "MASTER_ADDR": "127.0.0.1", "WORLD_SIZE": "2"}, False),
    ],
)
def test_one_process_of_several_that_were_asked_for(environment: dict[str, str], alone: bool) -> None:
    assert is_one_alone(environment) is alone

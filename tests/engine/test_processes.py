"""Two processes train as one does, and end together."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from rlplay.engine import ranks
from rlplay.engine.driver import Driver
from rlplay.engine.fit import check_settings
from rlplay.processes import LOST, launch
from rlplay.trace.records import AnyRecord, Credited, Evaluated, Finished, Sampled, Scored, Stepped
from rlplay.trace.runfile import RunReader
from tests.engine.conftest import REWARD
from tests.engine.processes_script import CASES
from tests.engine.test_micro_batches import same
from tests.engine.test_update import only

_RECORDED = {"trpo": 1e-3}
"""Where records may differ by more than rounding: conjugate gradients enlarge it."""

_WEIGHTS = {"trpo": 1e-5}
"""The same of weights, whose log-probabilities are float32."""

_SCRIPT = [sys.executable, "-m", "tests.engine.processes_script"]


@pytest.fixture(scope="module")
def folders(micro_models: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """What one process and two left of every case."""
    alone, together = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    model = micro_models("llama")
    for folder in (alone, together):
        (folder / "rewards.py").write_text(REWARD)
    subprocess.run([*_SCRIPT, str(model), str(alone), *CASES], check=True)
    assert launch([*_SCRIPT, str(model), str(together), *CASES], 2) == (0, "")
    return alone, together


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_two_processes_give_the_update_of_one(folders: tuple[Path, Path], case: str) -> None:
    alone, together = folders
    one, first, second = (
        torch.load(folder / f"{case}-{rank}.pt") for folder, rank in ((alone, 0), (together, 0), (together, 1))
    )
    assert one.keys() == first.keys() == second.keys()
    for name, weights in one.items():
        torch.testing.assert_close(first[name], weights, rtol=0, atol=_WEIGHTS.get(case, 1e-6))
        assert torch.equal(first[name], second[name])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_run_file_holds_the_whole_batch(folders: tuple[Path, Path], case: str) -> None:
    runs = []
    for folder in folders:
        with RunReader(folder / f"{case}.rlplay") as reader:
            runs.append([record for _, record in reader.follow(0)])
            assert reader.started.processes == len(runs)
    for one, two in zip(*(only(Scored, records) for records in runs), strict=True):
        np.testing.assert_array_equal(one.rewards, two.rewards)
    for kind in (Sampled, Credited, Stepped, Finished, Evaluated):
        ones, twos = (only(kind, records) for records in runs)
        assert len(ones) == len(twos)
        for one, two in zip(ones, twos, strict=True):
            same(one, two, _RECORDED.get(case, 1e-5))


_ENDS = """
import atexit, pathlib, os
def threads():
    return {each.read_text().strip() for each in pathlib.Path("/proc/self/task").glob("*/comm")}
atexit.register(lambda: os._exit(7 if "pt_gloo_runloop" in threads() else 0))
from rlplay.engine import ranks
ranks.join(os.environ, 'cpu')
import torch.distributed.nn.functional
assert ranks.anywhere(True) == [True] and "pt_gloo_runloop" in threads()
"""
_BEGIN = "import os, signal, sys\nfrom rlplay.engine import ranks\nranks.join(os.environ, 'cpu')\n"
_KILLED = """
if not ranks.is_first():
    os.kill(os.getpid(), signal.SIGKILL)
try:
    ranks.anywhere(True)
except ranks.LostProcess:
    sys.exit(75)
"""
_FAILS = """
def compute():
    if not ranks.is_first():
        raise ValueError("no luck")
def moments():
    yield from range(3)
    compute()
try:
    ranks.each(compute)
except ValueError as error:
    assert str(error) == "no luck"
seen = []
try:
    for moment in ranks.in_step(moments(), 0):
        seen.append(moment)
except ValueError as error:
    sys.exit(7 if seen == [0, 1, 2] else 8)
"""


def test_a_killed_process_ends_the_others() -> None:
    status, problem = launch([sys.executable, "-c", _BEGIN + _KILLED], 2)
    assert status == LOST
    assert problem.startswith("process 1 of 2 was killed (SIGKILL")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the names of threads")
def test_the_threads_of_the_group_end_before_python() -> None:
    assert launch([sys.executable, "-c", _ENDS], 2) == (0, "")


def test_an_error_in_one_process_is_raised_in_all() -> None:
    assert launch([sys.executable, "-c", _BEGIN + _FAILS], 2) == (7, "")


@pytest.mark.parametrize(
    ("device", "problem"),
    [("auto", "2 processes need 2 GPUs, and there are 1"), ("cuda:0", "use --device cuda, not cuda:0")],
)
def test_each_process_takes_a_gpu_of_its_own(device: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = 1 if device == "auto" else 2
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    with pytest.raises(ValueError, match=problem):
        ranks.join({"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}, device)


def test_more_processes_than_prompts_are_refused(
    start: Callable[..., tuple[Driver, list[AnyRecord]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, _ = start()
    monkeypatch.setattr(ranks, "count", lambda: 4)
    with pytest.raises(ValueError, match=r"^num_prompts=3 are too few for 4 processes; start at most 3"):
        check_settings(driver._state.settings, driver._state.lm, None)

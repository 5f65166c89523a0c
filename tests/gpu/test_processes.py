"""Two processes, each on a device of its own, train as one on the CPU does, and end together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from rlplay.processes import LOST, launch
from rlplay.trace.records import Credited, Evaluated, Finished, Sampled, Stepped
from rlplay.trace.runfile import RunReader
from tests.engine.conftest import REWARD
from tests.engine.processes_script import CASES
from tests.engine.test_micro_batches import same
from tests.engine.test_update import only
from tests.gpu.play import micro_model, run

pytestmark = pytest.mark.stand_in

_RECORDED = {"trpo": 1e-3}
"""Where records may differ by more than rounding: conjugate gradients enlarge it."""

_WEIGHTS = {"trpo": 1e-5}

_EXCHANGE = """
from tests.gpu.processes_script import join
join()
import torch
from rlplay.engine import ranks
own = torch.device("cuda", torch.distributed.get_rank())
assert torch.zeros(1).cuda().device == own
def rows(some):
    return [some.to(own) * 2.0]
(found,) = ranks.by_rows(3, rows)
assert found.device == own and found.tolist() == [0.0, 2.0, 4.0]
used, unused = (torch.zeros(2, device=own, requires_grad=True) for _ in range(2))
here = torch.zeros(2, 1, device=own, requires_grad=True)
half = torch.ones(1, device=own, requires_grad=True, dtype=torch.bfloat16)
half.grad = half.detach().clone()
used.grad = torch.full_like(used, 1.0 + own.index)
if own.index:
    here.grad = torch.ones_like(here)
ranks.add_gradients([used, unused, here, half])
assert (used.grad.tolist(), unused.grad, here.grad.tolist()) == ([3.0, 3.0], None, [[1.0], [1.0]])
assert half.grad.tolist() == [2.0]
assert ranks._gpus.sums == 2, 'one of each dtype'
"""


def _launched(folder: Path, dies: str, names: list[str]) -> tuple[int, str]:
    (folder / "rewards.py").write_text(REWARD)
    script = [sys.executable, "-m", "tests.gpu.processes_script", str(micro_model()), str(folder), dies]
    return launch([*script, *names], 2)


def test_tensors_come_to_the_own_device() -> None:
    assert launch([sys.executable, "-c", _EXCHANGE], 2) == (0, "")


def test_two_devices_give_the_same_update(tmp_path: Path) -> None:
    assert _launched(tmp_path, "", ["grpo"]) == (0, "")
    alone = run("cuda", algorithm="grpo", learning_rate=1e-4).go(1)
    alone.driver.close()
    with RunReader(tmp_path / "grpo.rlplay") as reader:
        sampled = only(Sampled, [record for _, record in reader.follow(0)])
    np.testing.assert_array_equal(only(Sampled, alone.records)[-1].token_ids, sampled[0].token_ids)
    first, second = (torch.load(tmp_path / f"grpo-{rank}.pt") for rank in range(2))
    assert all(torch.equal(first[key], second[key]) for key in first)


@pytest.mark.slow
def test_two_devices_give_the_updates_of_one_cpu(tmp_path: Path) -> None:
    alone, together = tmp_path / "one", tmp_path / "two"
    for folder in (alone, together):
        folder.mkdir()
        (folder / "rewards.py").write_text(REWARD)
    script = [sys.executable, "-m", "tests.engine.processes_script", str(micro_model()), str(alone)]
    subprocess.run([*script, *CASES], check=True)
    assert _launched(together, "", [*CASES]) == (0, "")
    for name in CASES:
        _weights_are_those(alone, together, name)
        _records_are_those(alone, together, name)


def _weights_are_those(alone: Path, together: Path, name: str) -> None:
    one, first, second = (
        torch.load(folder / f"{name}-{rank}.pt") for folder, rank in ((alone, 0), (together, 0), (together, 1))
    )
    assert one.keys() == first.keys() == second.keys()
    for key, weights in one.items():
        torch.testing.assert_close(first[key], weights, rtol=0, atol=_WEIGHTS.get(name, 1e-6))
        assert torch.equal(first[key], second[key])


def _records_are_those(alone: Path, together: Path, name: str) -> None:
    runs = []
    for folder, device in ((alone, "cpu"), (together, "cuda:0")):
        with RunReader(folder / f"{name}.rlplay") as reader:
            runs.append([record for _, record in reader.follow(0)])
            assert reader.started.device == device
    for kind in (Sampled, Credited, Stepped, Finished, Evaluated):
        for one, two in zip(*(only(kind, records) for records in runs), strict=True):
            same(one, two, _RECORDED.get(name, 1e-5))


@pytest.mark.slow
@pytest.mark.parametrize("dies", ["step", "sum"])
def test_a_killed_process_ends_the_other(dies: str, tmp_path: Path) -> None:
    status, problem = _launched(tmp_path, dies, ["grpo"])
    assert status == LOST
    assert problem.startswith("process 1 of 2 was killed (SIGKILL")
    assert (tmp_path / "lost").read_text() == "another of the 2 processes has ended"

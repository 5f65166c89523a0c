"""The dtype that a run gets on a GPU, and goes on with elsewhere; TF32 and deterministic kernels where it asks."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
import torch
from accelerate import PartialState

from rlplay.engine.arithmetic import compute_as
from rlplay.engine.driver import Driver
from rlplay.scenario.reproduction import scenario_of
from rlplay.scenario.schema import Scenario
from rlplay.trace.records import AnyRecord, Finished, Notice, Started
from tests.gpu.play import GPU, Run, run


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    compute_as(Scenario(name="", title="", question=""), torch.device("cpu"))


def _dtypes(driver: Driver) -> set[torch.dtype]:
    return {p.dtype for p in driver._state.lm.policy.parameters()}


def _auto(**scenario: object) -> Run:
    return run(GPU, scenario={"dtype": "auto", **scenario})


def test_a_model_is_in_bfloat16_by_itself_and_stays_so_on_a_cpu() -> None:
    played = _auto().go()
    played.driver.close()
    (started,) = played.of(Started)
    assert (started.dtype, _dtypes(played.driver)) == ("bfloat16", {torch.bfloat16})
    assert [said for said in played.said() if said.startswith("dtype auto chose bfloat16")]
    PartialState._reset_state()
    records: list[AnyRecord] = []
    job = msgspec.structs.replace(played.job, scenario=scenario_of(started), device="cpu", resume=True)
    again = Driver(job, records.append)
    again.load(lambda what, fraction: None)
    again.advance("update", 1, lambda: False)
    again.close()
    assert _dtypes(again) == {torch.bfloat16}
    assert [record.update for record in records if isinstance(record, Finished)] == [2]
    assert not [record for record in records if isinstance(record, Notice) and "dtype" in record.text]


def test_the_bundled_model_stays_in_float32() -> None:
    played = _auto(model="pocket")
    played.driver.close()
    assert (played.of(Started)[0].dtype, _dtypes(played.driver)) == ("float32", {torch.float32})


def test_a_run_in_tf32_with_deterministic_kernels_trains() -> None:
    played = run(GPU, scenario={"tf32": True, "full_determinism": True}).go()
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.backends.cuda.matmul.allow_tf32
    played.driver.close()
    assert len(played.of(Finished)) == 1

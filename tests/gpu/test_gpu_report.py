"""What `rlplay doctor --gpu` finds; on the stand-in its times say nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from accelerate import PartialState

from rlplay.cli.gpu_report import graph, numbers, played, speed
from rlplay.cli.gpu_report.checks import FAILS, OK, Line
from rlplay.engine import fixed_cache
from rlplay.engine.arithmetic import compute_as
from rlplay.scenario.schema import Scenario

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
Found = Callable[[Callable[[torch.device, Path], Iterator[Line]]], list[Line]]


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Found]:
    """The lines of a check of small updates, which are compared with those of the CPU."""
    monkeypatch.setattr(fixed_cache, "_failed", False)
    for name, value in {"ANSWERS": 3, "LENGTH": 9}.items():
        monkeypatch.setattr(played, name, value)
    PartialState._reset_state()
    list(numbers.reference(CPU, tmp_path))
    PartialState._reset_state()
    yield lambda check: list(check(GPU, tmp_path))
    compute_as(Scenario(name="", title="", question=""), CPU)


def test_a_graph_is_captured_at_load_and_for_two_shapes(found: Found) -> None:
    load, shapes = found(graph.capture)
    assert (load.status, shapes.status) == (OK, OK)
    assert "with a CUDA graph" in load.text


def test_numbers_are_those_of_the_cpu(found: Found) -> None:
    assert [line.status for line in found(numbers.update)] == [OK] * 3


def test_other_ways_of_computing_are_finite(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "_WIDE", 64)
    assert [line.status for line in (*found(numbers.tf32), *found(numbers.bfloat16))] == [OK] * 2
    (line,) = found(numbers.determinism)
    assert line.text.startswith("two runs of 3 updates are equal bit for bit with it")


@pytest.mark.stand_in
def test_a_failed_capture_ends_no_run(found: Found) -> None:
    (line,) = found(graph.failed_capture)
    assert line.status == OK
    assert "could not capture the steps of sampling" in line.text


@pytest.mark.stand_in
def test_a_failed_capture_that_does_not_come_is_noticed(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    assert found(graph.failed_capture) == [Line(FAILS, "failed capture", "no capture was tried in two updates")]


def test_times_of_an_update_and_of_sampling_are_there(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_WARM_UP": 1, "_MEASURED": 1, "_ROUNDS": 1, "_TOKENS": 6}.items():
        monkeypatch.setattr(speed, name, value)
    update, _, memory = found(speed.update)
    assert (update.status, memory.status) == (OK, OK)
    (sampling,) = found(speed.sampling)
    assert "with the graph" in sampling.text

"""What fails on a GPU costs speed, not the run: captures and memory, at each point of an update."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest
import torch

from rlplay.engine.snapshots import _on_host
from rlplay.trace.records import Changed, Finished, Notice
from tests.gpu import cuda
from tests.gpu.cuda import failures
from tests.gpu.play import GPU, Run, run, same

pytestmark = pytest.mark.stand_in

ENDED = torch.AcceleratorError("CUDA error: operation failed due to a previous error during capture")
UPDATES = 2
SHORT = [0, pytest.param(7, marks=pytest.mark.slow), 60]
"""Allocations of a phase before memory runs out."""


@contextmanager
def captures_fail(memory: bool) -> Iterator[None]:
    """Let captures fail, at their end or because memory is short within them."""
    failures.at_end, failures.memory_in_capture = (None, 7) if memory else (ENDED, -1)
    try:
        yield
    finally:
        failures.at_end, failures.memory_in_capture = None, -1
        cuda.call("fail_allocation", -1)


@cache
def expected() -> Run:
    played = run("cpu").go(UPDATES)
    played.driver.close()
    return played


def as_on_cpu(played: Run, right: Run | None = None) -> None:
    """Go on to the end, and find it right; the second update begins with weights that differ by rounding."""
    played.go(UPDATES - played.driver.status().update)
    played.driver.close()
    same(played, right or expected(), logprobs=1e-4)
    assert [record.update for record in played.of(Finished)] == [1, 2]
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


@pytest.mark.parametrize("memory", [False, True])
def test_a_capture_that_fails_when_the_model_is_loaded(memory: bool) -> None:
    with captures_fail(memory):
        played = run(GPU)
    assert not played.driver._state.lm.fixed
    as_on_cpu(played)
    assert failures.captures == 1
    assert ("memory is short" in " ".join(played.said())) == memory


@pytest.mark.parametrize("memory", [False, True])
def test_a_capture_that_fails_in_a_run(memory: bool) -> None:
    played = run(GPU)
    assert (played.driver._state.lm.fixed, failures.captures) == (True, 1)
    with captures_fail(memory):
        played.go(1)
    assert (played.driver._state.lm.fixed, played.driver._state.lm.fixed_steps) == (False, {})
    as_on_cpu(played)
    assert failures.captures == 2, "it is not tried again"
    (said,) = [text for text in played.said() if "could not capture" in text]
    assert ("memory is short" in said) == memory
    assert not played.of(Changed)


@pytest.mark.parametrize("after", SHORT)
@pytest.mark.parametrize("phase", ["sample", "credit", "update", "after"])
def test_memory_that_runs_out_in_a_phase(phase: str, after: int) -> None:
    """Scoring allocates nothing on the device, where a reward function reads texts."""
    played = run(GPU).go(1)
    while played.driver.status().phase != phase:
        played.go(1, "phase")
    assert played.driver._state.lm.fixed_steps
    cuda.call("fail_allocation", after)
    as_on_cpu(played)
    assert not cuda.call("will_fail")
    said = [record.text for record in played.of(Notice) if record.level == "warning"]
    assert [text.partition(":")[0] for text in said] == [f"out of memory in update 2 ({phase})"]
    assert not played.driver._state.lm.fixed


def test_memory_that_stays_short_makes_parts_smaller() -> None:
    sizes = {"num_prompts": 8, "num_generations": 8}  # so many that a pass needs more than a snapshot does
    played = run(GPU, **sizes).go(1)
    played.driver._state.lm.save_memory()  # else the caches go first, which suffices
    while played.driver.status().phase != "update":
        played.go(1, "phase")
    torch.cuda.reset_peak_memory_stats()
    used = torch.cuda.memory_allocated()
    played.go(1, "phase")
    needed = torch.cuda.max_memory_allocated() - used
    played.driver.rewind(1)
    cuda.call("set_limit", 0, used + needed // 2)
    right = run("cpu", **sizes).go(UPDATES)
    right.driver.close()
    as_on_cpu(played, right)
    tried = [record.value for record in played.of(Changed) if record.name == "per_device_train_batch_size"]
    assert tried
    assert tried == [32, 16, 8, 4][: len(tried)]


def test_a_snapshot_needs_no_memory_that_is_not_there() -> None:
    weights = {"a": torch.rand(50, 4, device=GPU).T, "b": torch.arange(9, device=GPU)}
    expected = {name: value.cpu() for name, value in weights.items()}
    cuda.call("set_limit", 0, torch.cuda.memory_allocated())
    found = _on_host(weights)
    assert all(torch.equal(found[name], value) and found[name].is_contiguous() for name, value in expected.items())

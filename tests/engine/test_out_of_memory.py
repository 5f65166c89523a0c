"""Memory that runs out in an update: the update begins again in smaller parts, or the user is told what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.engine.compat import NEW, OLD
from rlplay.engine.driver import Driver
from rlplay.engine.engine_process import _explain
from rlplay.engine.out_of_memory import smaller_parts
from rlplay.trace.records import AnyRecord, Changed, Finished, Notice, Stepped
from tests.engine.test_update import only
from tests.engine.trees import before_each

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
ERRORS = [torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), MemoryError(),
          RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory")]  # fmt: skip


def short_of_memory(rows: int, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let passes of more than so many completions fail where gradients are wanted; returns how large they were."""
    tried: list[int] = []

    def fail(count: int) -> None:
        if torch.is_grad_enabled():
            tried.append(count)
            if count > rows:
                raise error

    before_each(monkeypatch, fail)
    return tried


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_the_update_begins_again_in_smaller_parts(
    start: Start, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    plain, expected = start(run="plain.rlplay", num_minibatches=1)
    plain.advance("update", 2, lambda: False)
    plain.close()
    driver, records = start(num_minibatches=1)
    driver.advance("update", 1, lambda: False)
    tried = short_of_memory(3, error, monkeypatch)
    driver.advance("update", 1, lambda: False)
    driver.close()
    assert max(tried[2:]) == 3
    changes = [(r.name, r.value, r.update, r.phase) for r in only(Changed, records)]
    assert changes == [("per_device_train_batch_size", size, 2, "sample") for size in (6, 3)]
    said = [r.text for r in only(Notice, records) if r.level == "warning"]
    assert len(said) == 2
    assert said[1].startswith("out of memory in update 2 (update): it begins again from the end of update 1, with "
                              "per_device_train_batch_size=3")  # fmt: skip
    for one, other in zip(only(Stepped, expected), only(Stepped, records), strict=True):
        np.testing.assert_allclose(one.dloss_dlogp, other.dloss_dlogp, atol=1e-6)
    assert [r.update for r in only(Finished, records)] == [1, 2]


@pytest.mark.parametrize("cached", [True, False])
def test_the_caches_of_sampling_go_first(start: Start, monkeypatch: pytest.MonkeyPatch, cached: bool) -> None:
    """Also where memory runs out while answers are sampled, which smaller parts do not help."""
    driver, records = start()
    lm = driver._state.lm
    lm.fixed = cached  # as on a GPU
    driver.advance("update", 1, lambda: False)
    assert bool(lm.fixed_steps) == cached
    steps = iter([ERRORS[0]])

    def fail(_model: Any, _given: Any, named: dict[str, Any]) -> None:
        if any(named.get(name) is not None for name in (NEW, OLD)):
            for error in steps:
                raise error

    lm.policy.register_forward_pre_hook(fail, with_kwargs=True)
    if not cached:
        with pytest.raises(torch.OutOfMemoryError):
            driver.advance("update", 1, lambda: False)
        return
    driver.advance("update", 1, lambda: False)
    driver.close()
    assert (lm.fixed, lm.fixed_steps) == (False, {})
    (said,) = [r.text for r in only(Notice, records) if r.level == "warning"]
    assert said.startswith("out of memory in update 2 (sample): it begins again from the end of update 1, and sampling")
    assert not only(Changed, records)
    assert [r.update for r in only(Finished, records)] == [1, 2]


def test_a_resumed_run_keeps_the_smaller_parts(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, _ = start()
    short_of_memory(3, MemoryError(), monkeypatch)
    driver.advance("update", 2, lambda: False)
    driver.close()
    resumed, _ = start(resume=True)
    resumed.advance("phase", 1, lambda: False)
    assert resumed._state.lm.rows_at_once == 3
    resumed.close()


def test_what_does_not_fit_even_alone_is_explained(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, records = start()
    driver.advance("update", 1, lambda: False)
    short_of_memory(0, ERRORS[0], monkeypatch)
    with pytest.raises(torch.OutOfMemoryError) as raised:
        driver.advance("update", 1, lambda: False)
    assert driver.status().update == 1
    assert "set gradient_checkpointing=on, then continue" in _explain(raised.value, driver.status())
    driver.close()
    assert only(Changed, records)[-1].value == 1


def test_parts_are_halved_down_to_one_and_only_where_that_helps(start: Start) -> None:
    driver, _ = start(num_minibatches=2)
    settings = driver._state.settings
    driver.close()
    assert smaller_parts(settings, "update") == 3
    assert smaller_parts(settings, "sample") is None

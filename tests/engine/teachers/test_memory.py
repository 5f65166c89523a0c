"""A question takes at most half of the host's free memory, and says so before it computes anything."""

from __future__ import annotations

from types import SimpleNamespace

import psutil
import pytest

from rlplay.engine.teachers import teach as teaching
from rlplay.engine.teachers.memory import needed
from tests.engine.teachers.asking import Start, targets_of, taught
from tests.numbers import update_of


@pytest.mark.parametrize(("steps", "by", "states"), [(1, 2, 0), (3, 2, 1), (3, 1, 2)])
def test_half_of_the_free_memory_stays_free(
    start: Start, monkeypatch: pytest.MonkeyPatch, steps: int, by: int, states: int
) -> None:
    driver, records = start(num_iterations=steps)
    driver.advance("update", 2, lambda: False)
    target = targets_of(update_of(records, 2))[1]
    wanted = needed(driver._state, steps, by != 2, states)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=2 * wanted))
    assert taught(driver, target, 2, by).steps == steps
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=2 * wanted - 1))
    monkeypatch.setattr(teaching, "update_taken", None)  # nothing is computed any more
    with pytest.raises(ValueError, match=r"it would take .* of memory, more than half of the .* free") as refused:
        taught(driver, target, 2, by)
    assert ("fewer optimizer steps than 3" in str(refused.value)) is (steps > 1)
    assert "--use_peft" in str(refused.value)


def test_each_optimizer_step_and_each_second_state_counts(start: Start) -> None:
    driver, _ = start()
    state = driver._state
    policy = 4 * sum(p.numel() for p in state.lm.policy.parameters())
    trained = 4 * sum(p.numel() for p in state.parameters.values())
    assert needed(state, 8, False, 0) - needed(state, 4, False, 0) == 16 * trained
    assert needed(state, 4, False, 1) - needed(state, 4, False, 0) == 3 * trained + policy

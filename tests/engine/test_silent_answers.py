"""Answers that cannot change the weights cost no backward pass, and nothing else differs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rlplay.algorithms.aggregation import AGGREGATIONS
from rlplay.engine import policy_gradient
from rlplay.engine.driver import Driver
from rlplay.trace.records import AnyRecord, Credited, Finished, Sampled, Stepped
from tests.engine.conftest import FROM_REWARDS, one_of_each_kind
from tests.engine.teachers.asking import in_float64
from tests.engine.test_micro_batches import gradients_kept, same
from tests.engine.test_update import only
from tests.engine.trees import before_each

pytestmark = pytest.mark.usefixtures("trusts_all")

Start = Callable[..., tuple[Driver, list[AnyRecord]]]


def played(start: Start, name: str, **given: Any) -> tuple[list[Tensor], list[AnyRecord]]:
    """The gradient [P] of every optimizer step of two updates in float64, and their records."""
    driver, records = start(run=f"{name}.rlplay", reward="some_groups", max_grad_norm=0.0, **given)
    in_float64(driver)
    kept = gradients_kept(driver)
    driver.advance("update", 2, lambda: False)
    driver.close()
    return [torch.cat([gradient.flatten() for gradient in step]) for step in kept], records


def none(_batch: object, rows: Tensor, *_rest: object) -> Tensor:
    """In place of `without_gradient`: every completion gets its backward pass."""
    return torch.zeros_like(rows, dtype=torch.bool)


def cases() -> list[dict[str, Any]]:
    """Every preset, every aggregation, and what gives answers of equal reward a gradient all the same."""
    return [
        *({"algorithm": name} for name in FROM_REWARDS if name not in ("vineppo", "trpo")),
        *({"algorithm": "grpo", "aggregation": name} for name in AGGREGATIONS),
        {"algorithm": "grpo", "beta": 0.1},
        {"algorithm": "grpo", "entropy_coef": 0.01},
        {"algorithm": "dapo", "per_device_train_batch_size": 3, "mask_truncated_completions": True},
    ]


@pytest.mark.parametrize("given", one_of_each_kind(cases()), ids=lambda given: "-".join(map(str, given.values())))
def test_an_update_is_what_it_is_with_a_backward_pass_for_all(
    start: Start, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    given = {"num_iterations": 2, "num_minibatches": 2, "dynamic_sampling": False} | given
    fewer, records = played(start, "fewer", **given)
    monkeypatch.setattr(policy_gradient, "without_gradient", none)
    all_of_them, others = played(start, "all", **given)
    for step, (found, expected) in enumerate(zip(fewer, all_of_them, strict=True)):
        # From the second step on Adam has enlarged the rounding of log-probabilities recorded in float32.
        assert float((found - expected).norm()) <= (1e-4 if step else 1e-6) * float(expected.norm())
    for kind in (Sampled, Credited, Stepped, Finished):
        for first, second in zip(only(kind, records), only(kind, others), strict=True):
            same(first, second, 1e-4)


@pytest.mark.parametrize("algorithm", ["grpo", "rloo", "gspo", "cispo", "sapo", "vespo"])
def test_only_answers_that_pull_are_read_for_a_gradient(
    start: Start, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, records = start(reward="some_groups", algorithm=algorithm, dynamic_sampling=False, num_iterations=1,
                            num_minibatches=1, num_prompts=4, beta=0.0)  # fmt: skip
    driver.advance("phase", 3, lambda: False)
    rows: list[int] = []

    before_each(monkeypatch, lambda count: rows.append(count) if torch.is_grad_enabled() else None)
    driver.advance("update", 1, lambda: False)
    driver.close()
    (credited,), (sampled,) = only(Credited, records), only(Sampled, records)
    pulling = {row for row in range(16) if credited.advantages[sampled.offsets[row] : sampled.offsets[row + 1]].any()}
    assert 0 < len(pulling) <= 8
    assert sum(rows) == len(pulling)


def test_an_own_surrogate_may_pull_on_answers_that_all_earned_the_same(start: Start, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def likelier(xp, logprobs):\n    return -logprobs\n")
    driver, records = start(reward="same", surrogate=f"{tmp_path / 'own.py'}:likelier", beta=0.0, num_iterations=1)
    driver.advance("update", 1, lambda: False)
    driver.close()
    (step,), (credited,) = only(Stepped, records), only(Credited, records)
    assert not credited.advantages.any()
    np.testing.assert_allclose(step.dloss_dlogp, -step.weights)
    assert step.metrics["grad_norm"] > 1e-3


def test_without_any_signal_adam_moves_on_as_before(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def weights(name: str, chosen: Callable[..., Tensor]) -> list[Tensor]:
        driver, _ = start(run=f"{name}.rlplay", algorithm="grpo", beta=0.0, weight_decay=0.1, num_iterations=1)
        driver.advance("update", 1, lambda: False)
        monkeypatch.setattr(policy_gradient, "without_gradient", chosen)
        rewards = driver._state.task.rewards
        rewards.update({key: lambda completion_ids, **_: [0.5] * len(completion_ids) for key in rewards})
        before = [p.detach().clone() for p in driver._state.lm.policy.parameters()]
        driver.advance("update", 1, lambda: False)
        driver.close()
        after = [p.detach().clone() for p in driver._state.lm.policy.parameters()]
        assert any(not torch.equal(one, other) for one, other in zip(before, after, strict=True))
        return after

    fewer = weights("fewer", policy_gradient.without_gradient)
    for found, expected in zip(fewer, weights("all", none), strict=True):
        assert torch.equal(found, expected)

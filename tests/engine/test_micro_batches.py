"""`per_device_train_batch_size`: a step in parts has the gradient and the records of the step as a whole."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from torch import Tensor

from rlplay.algorithms.aggregation import AGGREGATIONS
from rlplay.algorithms.catalogue import PRESETS
from rlplay.engine.driver import Driver
from rlplay.engine.model import Kind
from rlplay.trace.records import AnyRecord, Credited, Finished, Sampled, Stepped
from tests.engine.conftest import FROM_ANSWERS, FROM_REWARDS, one_of_each_kind
from tests.engine.teachers.asking import in_float64
from tests.engine.test_update import of_tokens, only
from tests.engine.trees import before_each

Start = Callable[..., tuple[Driver, list[AnyRecord]]]

_READ_BY_THE_LOSS = ("surrogate", "importance_sampling_level", "aggregation", "baseline", "kl_placement", "kl_anchor")


def losses() -> list[dict[str, Any]]:
    """Every loss of the registry once: presets that differ in it, all aggregations, and what no preset turns on."""
    different = {tuple(PRESETS[name].axes.get(axis) for axis in _READ_BY_THE_LOSS): name for name in FROM_REWARDS}
    return [
        *({"algorithm": name} for name in (*different.values(), *FROM_ANSWERS)),
        *({"aggregation": name} for name in AGGREGATIONS),
        {"kl_estimator": "full", "beta": 0.1},
        {"algorithm": "ppo", "entropy_coef": 0.01, "top_entropy_quantile": 0.5},
        {"algorithm": "sdpo", "success_reward_threshold": 0.4},
        {"algorithm": "gkd", "teacher_context": "group", "success_reward_threshold": 0.4},
        {"off_policy_mask_threshold": 0.0, "mask_truncated_completions": True},
    ]


def gradients_kept(driver: Driver) -> list[list[Tensor]]:
    """The gradients of each optimizer step from here on, as the optimizer finds them."""
    kept: list[list[Tensor]] = []

    def keep(optimizer: torch.optim.Optimizer, *_rest: Any) -> None:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        kept.append([p.grad.double().clone() for p in parameters if p.grad is not None])

    driver._state.optimizer.register_step_pre_hook(keep)
    return kept


def played(start: Start, at_once: int, **given: Any) -> tuple[Tensor, list[AnyRecord]]:
    """The gradient [P] of an update's first step in float64, and the update's records."""
    driver, records = start(run=f"{at_once}.rlplay", per_device_train_batch_size=at_once, max_grad_norm=0.0, **given)
    in_float64(driver)
    driver.advance("phase", 3, lambda: False)
    kept = gradients_kept(driver)
    driver.advance("update", 1, lambda: False)
    driver.close()
    return torch.cat([gradient.flatten() for gradient in kept[0]]), records


@pytest.mark.usefixtures("opinionated")
@pytest.mark.parametrize("given", one_of_each_kind(losses()), ids=lambda given: "-".join(map(str, given.values())))
def test_a_step_in_parts_is_the_step(start: Start, given: dict[str, Any]) -> None:
    given = {"num_iterations": 1, "temperature": 0.7} | given
    (whole, records), (parts, others) = (played(start, at_once, **given) for at_once in (0, 1))
    assert float((whole - parts).norm()) <= 1e-6 * float(whole.norm())
    for kind in (Sampled, Credited, Stepped, Finished):
        for one, other in zip(only(kind, records), only(kind, others), strict=True):
            same(one, other, 1e-5 if isinstance(one, Stepped) else 1e-4)  # Adam enlarges rounding where gradients are 0


def same(first: AnyRecord, second: AnyRecord, tolerance: float) -> None:
    """Two records say the same, but for rounding and what the clock decides."""
    one, other = msgspec.structs.asdict(first), msgspec.structs.asdict(second)
    for name in one.keys() - {"timings", "seconds", "metrics"}:
        if isinstance(one[name], np.ndarray) and one[name].dtype.kind == "f":
            np.testing.assert_allclose(one[name], other[name], atol=tolerance, rtol=tolerance, err_msg=name)
        elif isinstance(one[name], np.ndarray):
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)
        else:
            assert one[name] == other[name], name
    if "metrics" in one:
        assert one["metrics"] == pytest.approx(other["metrics"], rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("at_once", [1, 3, 5, 100])
@pytest.mark.parametrize("algorithm", ["grpo", "gspo", "dapo"])
def test_the_gradient_is_that_of_the_recorded_pull_in_float64(start: Start, algorithm: str, at_once: int) -> None:
    driver, records = start(per_device_train_batch_size=at_once, algorithm=algorithm, kl_placement="loss", beta=0.1,
                            num_iterations=2, num_minibatches=1, max_grad_norm=0.0, learning_rate=1e-2)  # fmt: skip
    driver._state.lm.policy.double()
    driver.advance("step", 1, lambda: False)
    policy, kept = copy.deepcopy(driver._state.lm.policy), gradients_kept(driver)
    driver.advance("step", 1, lambda: False)
    driver.close()
    (sampled,), (_, step) = only(Sampled, records), only(Stepped, records)
    assert np.abs(step.importance_ratio - 1).max() > 0.01
    policy.zero_grad()
    of_tokens(policy, sampled).backward(torch.from_numpy(step.dloss_dlogp).double())
    groups = [[p.grad for p in policy.parameters() if p.ndim > 1], [p.grad for p in policy.parameters() if p.ndim <= 1]]
    for expected, found in zip([g for group in groups for g in group], kept[0], strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("algorithm", ["grpo", "dpo", "reward-model"])
@pytest.mark.parametrize("kind", ["tree", "shared"])
def test_no_pass_takes_more_completions(
    start: Start, algorithm: str, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, _ = start(algorithm=algorithm, per_device_train_batch_size=2)
    driver._state.lm.passes = kind
    driver.advance("phase", 1, lambda: False)  # which decodes all completions together
    widest: list[int] = []

    def watch(_module: Any, _given: Any, named: dict[str, Any]) -> None:
        if named["input_ids"].shape[1] > 1 and "logits_to_keep" not in named:
            widest.append(len(named["input_ids"]))

    before_each(monkeypatch, widest.append)
    for model in (driver._state.lm.policy, driver._state.lm.reference):
        model.register_forward_pre_hook(watch, with_kwargs=True)
    driver.advance("update", 1, lambda: False)
    driver.close()
    assert widest
    assert max(widest) == 2


def test_it_can_be_changed_while_a_run_trains(start: Start) -> None:
    driver, _ = start(algorithm="grpo")
    driver.advance("update", 1, lambda: False)
    driver.set({"per_device_train_batch_size": 2})
    driver.advance("phase", 1, lambda: False)
    assert driver._state.lm.rows_at_once == 2
    driver.close()

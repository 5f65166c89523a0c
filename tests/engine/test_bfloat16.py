"""Weights in bfloat16: float32 log-probabilities, steps that reach float32 masters, a check that says its limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from rlplay.algorithms.catalogue import PRESETS
from rlplay.engine import master_weights
from rlplay.engine.agreement import precision
from rlplay.engine.driver import Driver
from rlplay.engine.master_weights import MasterAdamW
from rlplay.engine.model import load_model
from rlplay.engine.weights import Weights
from rlplay.trace.records import AnyRecord, Finished, Notice, Sampled, Started, Stepped
from rlplay.trace.runfile import RunReader
from tests.engine.conftest import FROM_ANSWERS, FROM_REWARDS, one_of_each_kind
from tests.engine.test_update import only

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
HALF: dict[str, Any] = {"dtype": "bfloat16"}


def test_steps_are_adam_in_float32_by_the_paper() -> None:
    generator = torch.Generator().manual_seed(0)
    weight = nn.Parameter(torch.randn(50, generator=generator).bfloat16())
    optimizer = MasterAdamW([{"params": [weight]}], lr=1e-3)
    master, m, v = weight.detach().double().numpy().copy(), np.zeros(50), np.zeros(50)
    for t in range(1, 30):
        weight.grad = torch.randn(50, generator=generator).bfloat16()
        g = weight.grad.double().numpy()
        optimizer.param_groups[0]["weight_decay"] = 0.1
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        master = master - 1e-3 * 0.1 * master
        master = master - 1e-3 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        optimizer.step()
    np.testing.assert_allclose(optimizer.state[weight]["master"], master, rtol=1e-5)
    assert torch.equal(weight.detach(), torch.from_numpy(master).float().bfloat16())


def test_steps_smaller_than_a_bfloat16_add_up() -> None:
    plain, held = (nn.Parameter(torch.ones(1, dtype=torch.bfloat16)) for _ in range(2))
    for weight, optimizer in ((plain, torch.optim.AdamW([plain], lr=1e-4, weight_decay=0.0)),
                              (held, MasterAdamW([{"params": [held]}], lr=1e-4))):  # fmt: skip
        for _ in range(200):
            weight.grad = torch.ones(1, dtype=torch.bfloat16)
            optimizer.step()
    assert plain.item() == 1.0
    assert held.item() == pytest.approx(0.98, abs=0.004)


@pytest.mark.parametrize("at_once", [1, 40, 10_000])
def test_weights_that_move_together_move_as_each_alone(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(master_weights, "_AT_ONCE", at_once)
    generator, shapes = torch.Generator().manual_seed(0), [(5, 7), (3,), (33,), (4, 9), (1,)]
    values = [torch.randn(shape, generator=generator).bfloat16() for shape in shapes]
    together, alone = ([value.clone().requires_grad_() for value in values] for _ in range(2))
    optimizers = [MasterAdamW([{"params": together}], lr=0.1), *(MasterAdamW([{"params": [w]}], 0.1) for w in alone)]
    for step in range(3):
        for weight, same in zip(together, alone, strict=True):
            weight.grad = torch.randn(weight.shape, generator=generator).bfloat16()
            same.grad = weight.grad.clone()
        together[1].grad = alone[1].grad = None if step == 1 else together[1].grad
        for optimizer in optimizers:
            optimizer.step()
    assert all(torch.equal(weight, same) for weight, same in zip(together, alone, strict=True))
    assert not any(torch.equal(weight, value) for weight, value in zip(together, values, strict=True))


def test_a_run_trains_records_and_goes_back(start: Start, tmp_path: Path) -> None:
    given = {"learning_rate": 1e-3, "num_iterations": 2, "beta": 0.1}
    driver, records = start(scenario=HALF, **given)
    policy = driver._state.lm.policy
    assert {p.dtype for p in policy.parameters()} == {torch.bfloat16}
    assert driver._state.lm.reference.dtype == torch.bfloat16
    driver.advance("update", 3, lambda: False)
    finished, sampled, step = only(Finished, records), only(Sampled, records), only(Stepped, records)[0]
    assert only(Started, records)[0].dtype == "bfloat16"
    # In float32 a token's probability is not one of bfloat16's: its log-probability has more than eight bits.
    logprobs = torch.from_numpy(sampled[0].old_logprobs)
    assert float((logprobs.bfloat16().float() != logprobs).float().mean()) > 0.8
    assert np.abs(step.importance_ratio - 1).max() < 0.1
    driver.rewind(1)
    del records[:]
    driver.advance("update", 2, lambda: False)
    driver.close()
    for one, other in zip(finished[1:], only(Finished, records), strict=True):
        np.testing.assert_array_equal(one.logprobs, other.logprobs)
    with closing(RunReader(tmp_path / "run.rlplay")) as reader:
        tensors = load_file(reader.snapshots()[-1].path)
    masters = {name: t for name, t in tensors.items() if name.startswith("master/policy.")}
    assert masters
    for name, master in masters.items():
        assert master.dtype == torch.float32
        assert torch.equal(master.bfloat16(), tensors[name.removeprefix("master/")])


def test_it_says_what_its_check_cannot_see(start: Start) -> None:
    driver, records = start(scenario=HALF)
    driver.advance("update", 1, lambda: False)
    driver.close()
    (said,) = [r for r in only(Notice, records) if "bfloat16" in r.text]
    assert said.level == "info"
    assert "nats is not noticed there" in said.text
    assert not [r for r in only(Notice, records) if r.level == "warning"]


def test_log_probabilities_are_near_those_of_float32(micro_model: Path) -> None:
    full, half = (load_model(str(micro_model), torch.device("cpu"), weights=Weights(dtype=each)).policy
                  for each in ("float32", "bfloat16"))  # fmt: skip
    ids = torch.arange(40).view(2, 20)
    with torch.no_grad():
        one, other = (model(input_ids=ids).logits.float().log_softmax(-1) for model in (full, half))
    assert 0 < float((one - other).abs().max()) < 0.2
    lm = load_model(str(micro_model), torch.device("cpu"), weights=Weights(dtype="bfloat16"))
    assert precision(lm).rounding > precision(load_model(str(micro_model), torch.device("cpu"))).rounding


def test_adapters_beside_a_bfloat16_base_are_float32(start: Start) -> None:
    pytest.importorskip("peft")
    driver, records = start(scenario=HALF | {"use_peft": True, "lora_target_modules": ["q_proj"]})
    driver.advance("update", 1, lambda: False)
    driver.close()
    assert {p.dtype for p in driver._state.parameters.values()} == {torch.float32}
    assert math.isfinite(only(Finished, records)[0].metrics["loss"])


@pytest.mark.parametrize("name", one_of_each_kind([*FROM_REWARDS, *FROM_ANSWERS]))
@pytest.mark.usefixtures("opinionated")
def test_every_algorithm_trains_in_it(start: Start, name: str) -> None:
    """As it is the default on a GPU."""
    axes = PRESETS[name].axes
    steps = axes.get("reward_stream", "outcome") != "outcome"
    own = {} if name in FROM_REWARDS else {"reward": []}
    driver, records = start(scenario=HALF | own, reward="halves" if steps else "uneven", **axes)
    driver.advance("update", 1, lambda: False)
    driver.close()
    (finished,) = only(Finished, records)
    assert all(math.isfinite(value) for value in finished.metrics.values())
    assert not [notice for notice in only(Notice, records) if notice.level != "info"]

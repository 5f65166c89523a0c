"""`gradient_checkpointing`: less is kept, the gradient is the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rlplay.engine.checkpointing import checkpointed, layers_of
from rlplay.engine.driver import Driver
from rlplay.engine.model import load_model
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.records import AnyRecord, Finished, Notice, Sampled, Stepped
from tests.engine import architectures
from tests.engine.teachers.asking import in_float64
from tests.engine.test_micro_batches import gradients_kept, same
from tests.engine.test_update import only

Start = Callable[..., tuple[Driver, list[AnyRecord]]]

WITH_LAYERS = [name for name in architectures.SIZES if name not in ("bert", "rwkv")]
_FLOAT32 = ("qwen3-moe", "gpt-oss", "granite-hybrid", "zamba2")
"""Those whose layers compute in float32 whatever their weights are."""
TAUGHT = {"algorithm": "sdpo", "distillation_mode": "full_logits", "success_reward_threshold": -1.0}
"""Whole distributions of a teacher that reads another answer."""

TRIED = ("llama", "gpt2", "opt", "gemma2", "lfm2", "mamba", "gpt-oss")


def played(start: Start, on: bool, exact: bool = True, **given: Any) -> tuple[Tensor, list[AnyRecord]]:
    """The gradient of an update's first step, and the update's records; by models in float64 if `exact`."""
    driver, records = start(run=f"{on}.rlplay", gradient_checkpointing=on, max_grad_norm=0.0, **given)
    if exact:
        in_float64(driver)
    driver.advance("phase", 3, lambda: False)
    kept = gradients_kept(driver)
    driver.advance("update", 1, lambda: False)
    driver.close()
    assert not [r.text for r in records if isinstance(r, Notice) and r.level != "info"]
    return torch.cat([gradient.flatten() for gradient in kept[0]]), records


@pytest.mark.usefixtures("opinionated")
@pytest.mark.parametrize("given", [{"algorithm": name} for name in ("ppo", "dpo", "kto", "sft", "reward-model")]
                         + [{"per_device_train_batch_size": 2}, TAUGHT])  # fmt: skip
def test_losses_have_the_same_gradient(start: Start, given: dict[str, Any]) -> None:
    (plain, records), (again, others) = (played(start, on, **given) for on in (False, True))
    assert float((plain - again).norm()) <= 1e-6 * float(plain.norm())
    for kind in (Sampled, Finished):
        for one, other in zip(only(kind, records), only(kind, others), strict=True):
            same(one, other, 1e-4)


@pytest.mark.parametrize(
    "architecture", [pytest.param(name, marks=[pytest.mark.slow] * (name not in TRIED)) for name in WITH_LAYERS]
)
def test_architectures_have_the_same_gradient(start: Start, architecture: str) -> None:
    exact = architecture not in _FLOAT32
    (plain, records), (again, others) = (played(start, on, exact, architecture=architecture) for on in (False, True))
    assert float((plain - again).norm()) <= (1e-6 if exact else 1e-4) * float(plain.norm())
    for one, other in zip(only(Stepped, records), only(Stepped, others), strict=True):
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-4)


def test_it_keeps_less_and_leaves_the_model_as_it_was(micro_model: Path) -> None:
    model = load_model(str(micro_model), torch.device("cpu")).policy
    ids = torch.arange(60).view(2, 30)
    sizes = {}
    for on in (False, True):
        kept = itertools.count()

        def keep(tensor: Tensor, kept: Any = kept) -> Tensor:
            next(kept)
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            if on:
                with checkpointed(model):
                    model(input_ids=ids, use_cache=False)
            else:
                model(input_ids=ids, use_cache=False)
        sizes[on] = next(kept)
    assert sizes[True] < sizes[False] / 2
    assert not [layer for layer in layers_of(model) if "forward" in vars(layer)]
    assert not model.training


def test_a_model_without_such_layers_is_refused(start: Start, tmp_path: Path) -> None:
    world = Scenario(name="w", title="", question="", model="table", world={"map": ["SG"]},
                     settings={"gradient_checkpointing": True})  # fmt: skip
    driver = Driver(Job(world, str(tmp_path / "w.rlplay"), device="cpu", threads=1), lambda record: None)
    with pytest.raises(
        ValueError, match=r"^gradient_checkpointing needs layers .*; WorldPolicy has none, so leave it off$"
    ):
        driver.load(lambda what, fraction: None)


def test_trpo_is_refused(start: Start) -> None:
    driver, _ = start(algorithm="trpo")
    with pytest.raises(ValueError, match="surrogate=trpo needs gradient_checkpointing=off"):
        driver.set({"gradient_checkpointing": True})
    driver.close()

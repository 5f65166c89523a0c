"""Memory and disk as estimated from a configuration, and what the user is told where they do not suffice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from transformers import AutoConfig

from rlplay.algorithms.settings import Settings
from rlplay.engine import estimate
from rlplay.engine.driver import Driver
from rlplay.engine.estimate import needs, shortages
from rlplay.engine.weights import Weights
from rlplay.trace.records import AnyRecord, Notice
from tests.engine.test_update import only

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
SETTINGS = Settings(num_prompts=2, num_generations=4, max_completion_length=32)
LORA = Weights(use_peft=True, lora_target_modules=("q_proj",))


@pytest.mark.parametrize("weights", [Weights(), Weights(dtype="bfloat16"), LORA], ids=["plain", "bf16", "lora"])
def test_what_is_held_for_the_whole_run_is_counted_exactly(
    start: Start, micro_model: Path, tmp_path: Path, weights: Weights
) -> None:
    asked = {"dtype": weights.dtype, "use_peft": weights.use_peft}
    asked |= {"lora_target_modules": list(weights.lora_target_modules)} if weights.use_peft else {}
    driver, _ = start(scenario=asked)
    driver.advance("update", 1, lambda: False)
    driver.close()
    state, found = driver._state, needs(AutoConfig.from_pretrained(micro_model), weights, SETTINGS)

    def size(tensors: Any) -> int:
        return sum(t.numel() * t.element_size() for t in tensors)

    policy = [p for p in state.lm.policy.parameters() if p.requires_grad]
    adam = [t for p in policy for t in state.optimizer.state[p].values() if t.ndim]
    reference = state.lm.reference.adapters.values() if weights.use_peft else state.lm.reference.parameters()
    assert found.weights == size(state.lm.policy.parameters())
    assert found.reference == size(reference)
    assert found.gradients == size(policy)
    assert found.optimizer == size(adam)
    (kept,) = tmp_path.rglob("*.safetensors")
    assert found.snapshot == pytest.approx(kept.stat().st_size, rel=0.15)


def test_a_step_needs_less_in_parts_and_with_checkpointing(micro_model: Path) -> None:
    config = AutoConfig.from_pretrained(micro_model)
    steps = [needs(config, Weights(), msgspec.structs.replace(SETTINGS, **changes)).step
             for changes in ({}, {"gradient_checkpointing": True}, {"per_device_train_batch_size": 1})]  # fmt: skip
    assert steps[0] > steps[1] > steps[2]
    assert steps[2] * 8 == steps[0]


def test_what_is_short_is_said_with_what_to_change(micro_model: Path) -> None:
    found = needs(AutoConfig.from_pretrained(micro_model), Weights(), SETTINGS)
    assert not list(shortages(found, Weights(), SETTINGS, found.memory, 2 * found.snapshot))
    memory, disk = shortages(found, Weights(), SETTINGS, found.memory - 1, 2 * found.snapshot - 1)
    for part in ("--use_peft", "--dtype bfloat16", "per_device_train_batch_size=1", "gradient_checkpointing=on"):
        assert part in memory
    assert "RLPLAY_HOME" in disk
    (memory,) = shortages(found, LORA, SETTINGS, 0, 10**12)
    assert "--use_peft" not in memory


def test_a_run_says_it_before_it_loads_and_in_its_log(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "free_memory", lambda device: 1000)
    driver, records = start(scenario={"dtype": "bfloat16"})  # no model that another test has loaded
    driver.close()
    assert [r for r in only(Notice, records) if "of memory are needed" in r.text]
    assert estimate.free_memory(torch.device("cpu")) == 1000


def test_a_launcher_is_refused_but_by_run(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(
        ValueError, match=r"^WORLD_SIZE is 2, but only 'rlplay run' trains in several processes; start this without"
    ):
        start()

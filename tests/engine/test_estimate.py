"""Memory and disk as estimated from a configuration, and what the user is told where they do not suffice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, GPT2Config, LlamaConfig, PretrainedConfig

from rlplay.algorithms.settings import Settings
from rlplay.engine import estimate
from rlplay.engine.driver import Driver
from rlplay.engine.estimate import Needs, needs, shortages
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


@pytest.mark.parametrize("asked", [{"sampler_lag": 2}, {"weight_sync_steps": 0}, {"sampler_dtype": "int8"}])
@pytest.mark.parametrize("weights", [Weights(), LORA], ids=["plain", "lora"])
def test_a_sampler_apart_is_counted_with_its_past_weights(
    start: Start, micro_model: Path, tmp_path: Path, weights: Weights, asked: dict[str, Any]
) -> None:
    settings, config = msgspec.structs.replace(SETTINGS, **asked), AutoConfig.from_pretrained(micro_model)
    lora = {"use_peft": True, "lora_target_modules": list(weights.lora_target_modules)} if weights.use_peft else {}
    driver, _ = start(**asked, scenario=lora)
    driver.advance("update", 4, lambda: False)
    driver.close()
    sampler, found = driver._state.sampler, needs(config, weights, settings)
    past = sum(t.nbytes for each in sampler.weights.values() for t in each.values())
    policy = driver._state.lm.policy.named_parameters()
    own = {name: p.nbytes for name, p in sampler.using.policy.named_parameters()}  # type: ignore[union-attr]
    shared = lora and "sampler_dtype" not in asked
    assert found.sampler == past + sum(own[name] for name, p in policy if not shared or p.requires_grad)
    kept = tmp_path / "run.snapshots" / "000004.safetensors"
    assert found.snapshot == pytest.approx(kept.stat().st_size, rel=0.15)


def test_a_step_needs_less_in_parts_and_with_checkpointing(micro_model: Path) -> None:
    config = AutoConfig.from_pretrained(micro_model)
    steps = [needs(config, Weights(), msgspec.structs.replace(SETTINGS, **changes)).step
             for changes in ({}, {"gradient_checkpointing": True}, {"per_device_train_batch_size": 1})]  # fmt: skip
    assert steps[0] > steps[1] > steps[2]
    assert steps[2] * 8 == steps[0]


def _step(vocab_size: int = 100, layers: int = 4, dtype: str = "float32", **changes: Any) -> int:
    config = LlamaConfig(vocab_size=vocab_size, hidden_size=64, intermediate_size=128, num_hidden_layers=layers)
    return needs(config, Weights(dtype=dtype), msgspec.structs.replace(SETTINGS, **changes)).step


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(vocab_size=100, hidden_size=64, intermediate_size=128, num_hidden_layers=4, num_attention_heads=4),
        GPT2Config(vocab_size=100, n_embd=64, n_layer=4, n_head=4, attn_pdrop=0.0, resid_pdrop=0.0, embd_pdrop=0.0),
    ],
    ids=["llama", "gpt2"],
)
def test_a_pass_keeps_about_what_is_measured(config: PretrainedConfig) -> None:
    model = AutoModelForCausalLM.from_config(config)
    weights, kept = {p.data_ptr() for p in model.parameters()}, dict[int, Tensor]()

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        logits = model(input_ids=torch.arange(8 * 32).reshape(8, 32) % 100, use_cache=False).logits
        logits.log_softmax(-1).sum()
    measured = sum(t.untyped_storage().nbytes() for place, t in kept.items() if place not in weights)
    assert needs(config, Weights(), SETTINGS).step == pytest.approx(measured, rel=0.15)


def test_checkpointing_keeps_the_input_of_every_layer_and_one_whole_layer() -> None:
    inputs, (one, four) = 8 * 32 * 64 * 4, (_step(layers=n, gradient_checkpointing=True) for n in (1, 4))
    assert one - _step(layers=1) == inputs
    assert four - one == 3 * inputs


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4 + 3 * 4), ("bfloat16", 2 + 3 * 4)])
def test_the_loss_holds_three_copies_of_the_logits_in_float32(dtype: str, size: int) -> None:
    small, large = (_step(vocab_size=n, dtype=dtype) for n in (100, 300))
    assert large - small == 8 * 32 * 200 * size


@pytest.mark.parametrize(
    ("changes", "rows"),
    [({}, 8), ({"num_minibatches": 3}, 3), ({"loss_type": "sigmoid"}, 4), ({"per_device_train_batch_size": 5}, 5)],
)
def test_a_step_passes_over_a_minibatch_or_as_much_of_it_as_fits(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], rows: int
) -> None:
    one = _step(per_device_train_batch_size=1)
    assert _step(**changes) == rows * one
    monkeypatch.setattr(estimate, "LOGITS_AT_ONCE", 2 * 32 * 100)
    assert _step(**changes) == 2 * one


def test_what_is_short_is_said_with_what_to_change(micro_model: Path) -> None:
    found = needs(AutoConfig.from_pretrained(micro_model), Weights(), SETTINGS)
    held = (found.weights, found.reference, found.gradients, found.optimizer, found.step)
    assert not list(shortages(found, Weights(), SETTINGS, sum(held), 2 * found.snapshot))
    memory, disk = shortages(found, Weights(), SETTINGS, sum(held) - 1, 2 * found.snapshot - 1)
    for part in ("--use_peft", "--dtype bfloat16", "per_device_train_batch_size=1", "gradient_checkpointing=on"):
        assert part in memory
    assert "RLPLAY_HOME" in disk
    assert "--use_peft" in disk
    lora = list(shortages(found, LORA, SETTINGS, 0, 0))
    assert not any("--use_peft" in line for line in lora)
    alone = msgspec.structs.replace(SETTINGS, per_device_train_batch_size=1, gradient_checkpointing=True)
    (memory,) = shortages(found, Weights(), alone, 0, 10**12)
    assert "--set" not in memory


@pytest.mark.parametrize(("gib", "words"), [(0.0126, "0.013"), (9.64, "9.6"), (99.7, "100"), (640.2, "640")])
def test_a_size_has_at_least_two_digits(gib: float, words: str) -> None:
    found = Needs(int(gib * 2**30), 0, 0, 0, 0, 0)
    (line,) = shortages(found, Weights(), SETTINGS, 0, 0)
    assert line.startswith(f"about {words} GiB of memory")


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

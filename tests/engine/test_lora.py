"""LoRA: adapters alone are trained, kept and exported; the reference is the base without them."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from rlplay.engine.driver import Driver
from rlplay.engine.export_model import export_model
from rlplay.engine.lora import FrozenAdapters
from rlplay.engine.model import load_model, load_pretrained
from rlplay.engine.weights import Weights
from rlplay.scenario.schema import Stage
from rlplay.trace.records import AnyRecord, Credited, Finished, Sampled, Stepped
from rlplay.trace.runfile import RunReader
from rlplay.trace.text import harmless
from tests.engine.test_micro_batches import gradients_kept
from tests.engine.test_update import of_tokens, only

pytest.importorskip("peft")

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
LORA: dict[str, Any] = {"use_peft": True, "lora_r": 4, "lora_alpha": 8, "lora_target_modules": ["q_proj", "v_proj"]}
MOVING = {"num_iterations": 2, "learning_rate": 3e-2, "beta": 0.1}


def test_only_adapters_learn_and_the_reference_is_the_base(start: Start, micro_model: Path) -> None:
    driver, records = start(scenario=LORA, **MOVING)
    lm, base = driver._state.lm, load_model(str(micro_model), torch.device("cpu")).policy
    assert all("lora_" in name for name in driver._state.parameters if not name.startswith("value."))
    driver.advance("update", 2, lambda: False)
    driver.close()
    sampled, credited, finished = only(Sampled, records)[-1], only(Credited, records)[-1], only(Finished, records)[-1]
    with torch.no_grad():
        np.testing.assert_allclose(credited.ref_logprobs, of_tokens(base, sampled), atol=1e-5)
        np.testing.assert_allclose(finished.logprobs, of_tokens(lm.policy, sampled), atol=1e-5)
    assert np.abs(finished.logprobs - credited.ref_logprobs).max() > 0.05
    held = dict(lm.policy.named_parameters())
    for name, weight in base.named_parameters():
        place = (
            name.replace("_proj.weight", "_proj.base_layer.weight") if "q_proj" in name or "v_proj" in name else name
        )
        assert torch.equal(held[f"base_model.model.{place}"], weight)


@pytest.mark.parametrize("settings", [{}, {"gradient_checkpointing": True}, {"per_device_train_batch_size": 2}])
def test_the_gradient_is_that_of_merged_weights(start: Start, settings: dict[str, Any]) -> None:
    driver, records = start(scenario=LORA, max_grad_norm=0.0, **MOVING, **settings)
    driver._state.lm.policy.double()
    driver.advance("step", 1, lambda: False)
    policy, kept = copy.deepcopy(driver._state.lm.policy), gradients_kept(driver)
    driver.advance("step", 1, lambda: False)
    driver.close()
    (sampled,), (_, step) = only(Sampled, records), only(Stepped, records)
    merged = copy.deepcopy(policy).merge_and_unload().requires_grad_(True)
    of_tokens(merged, sampled).backward(torch.from_numpy(step.dloss_dlogp).double())
    weights = dict(policy.named_parameters())
    names = [name for name, p in weights.items() if p.requires_grad]
    for name, found in zip(names, kept[0], strict=True):
        layer = name.removeprefix("base_model.model.").partition(".lora_")[0]
        whole = merged.get_parameter(f"{layer}.weight").grad  # of W + 2·B·A, so that dA = 2·Bᵀ·dW and dB = 2·dW·Aᵀ
        a, b = (weights[f"base_model.model.{layer}.lora_{each}.default.weight"] for each in "AB")
        expected = 2 * (b.T @ whole if "lora_A" in name else whole @ a.T)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_snapshots_hold_adapters_alone_and_going_back_restores_them(start: Start, tmp_path: Path) -> None:
    driver, records = start(scenario=LORA, **MOVING)
    driver.advance("update", 3, lambda: False)
    first = [r.logprobs for r in only(Finished, records)]
    for update in (1, 0):
        driver.rewind(update)
        del records[:]
        driver.advance("update", 1, lambda: False)
        np.testing.assert_array_equal(only(Finished, records)[-1].logprobs, first[update])
    driver.close()
    with closing(RunReader(tmp_path / "run.rlplay")) as reader:
        names = load_file(reader.snapshots()[-1].path)
    assert [name for name in names if "policy." in name]
    assert all("lora_" in name for name in names if "policy." in name)
    resumed, _ = start(scenario=LORA, resume=True, **MOVING)
    for name, weight in driver._state.parameters.items():
        assert torch.equal(resumed._state.parameters[name], weight)
    resumed.close()


@pytest.mark.parametrize("layers", [LORA["lora_target_modules"], ["embed_tokens"]])
def test_a_stage_is_compared_with_the_adapters_that_it_began_with(start: Start, layers: list[str]) -> None:
    stages = [{"name": "one", "updates": 1, "settings": {}}, {"name": "two", "updates": 2, "settings": {}}]
    given = {**LORA, "lora_target_modules": layers, "stages": [Stage(**each) for each in stages], "max_updates": 3}
    driver, records = start(scenario=given, **MOVING)
    driver.advance("update", 1, lambda: False)
    begun = copy.deepcopy(driver._state.lm.policy)
    driver.advance("update", 2, lambda: False)
    driver.close()
    sampled, credited = only(Sampled, records)[-1], only(Credited, records)[-1]
    with torch.no_grad():
        np.testing.assert_allclose(credited.ref_logprobs, of_tokens(begun, sampled), atol=1e-5)
    assert np.abs(credited.ref_logprobs - sampled.old_logprobs).max() > 0.01


@pytest.mark.parametrize("layers", [LORA["lora_target_modules"], ["embed_tokens"]])
def test_adapters_are_exported_and_load_as_a_model(start: Start, tmp_path: Path, layers: list[str]) -> None:
    driver, _ = start(scenario=LORA | {"lora_target_modules": layers}, **MOVING)
    driver.advance("update", 2, lambda: False)
    driver.close()
    trained = driver._state.lm.policy
    export_model(tmp_path / "run.rlplay", tmp_path / "adapters")
    assert (tmp_path / "adapters" / "adapter_config.json").is_file()
    assert not (tmp_path / "adapters" / "model.safetensors").exists()
    loaded, _ = load_pretrained(str(tmp_path / "adapters"))
    ids = torch.arange(20).view(2, 10)
    with torch.no_grad():
        torch.testing.assert_close(loaded(input_ids=ids).logits, trained(input_ids=ids).logits)
    again, _ = start(run="again.rlplay", scenario={"model": str(tmp_path / "adapters")}, **MOVING)
    again.advance("update", 1, lambda: False)
    again.close()
    with torch.no_grad():
        frozen = again._state.lm.reference(input_ids=ids).logits
        torch.testing.assert_close(frozen, loaded(input_ids=ids).logits)
        assert float((again._state.lm.policy(input_ids=ids).logits - frozen).abs().max()) > 0.01
    assert not again._state.lm.reference.off


LOADED = {"peft_type": "LORA", "base_model_name_or_path": "pocket-that-is-not-there"}


@pytest.mark.parametrize(("config", "weights", "problem"), [
    ("{", True, "its adapters cannot be used: Expecting property name"),
    ("[]", True, "its adapters cannot be used: list indices"),
    ("{}", True, "its adapters cannot be used: no 'peft_type'"),
    (LOADED | {"peft_type": "x\x1b[31m" * 50}, True, "peft_type is 'x"),
    (LOADED | {"base_model_name_or_path": "."}, True, "names no model; merge the adapters into their base first"),
    (LOADED | {"base_model_name_or_path": 7}, True, "names no model"),
    (LOADED | {"r": 400_000}, True, "r is from 1 to 4096"),
    (LOADED | {"rank_pattern": {"q_proj": 10**6}}, True, "r is from 1 to 4096"),
    (LOADED | {"rank_pattern": {f"layer{n}": 8 for n in range(20_000)}}, True, "take up to 10000 names"),
    (LOADED | {"layer_replication": [[0, 2]] * 3000}, True, "layer_replication is not supported"),
    (LOADED | {"target_modules": "(a*)*b"}, True, "names of modules, without patterns"),
    (LOADED | {"alpha_pattern": {"(a*)*b": 8}}, True, "names of modules, without patterns"),
    (LOADED, False, "these adapters have no adapter_model.safetensors; pickled weights are not read"),
])  # fmt: skip
def test_adapters_of_somebody_elses_are_refused_in_one_line(
    config: Any, weights: bool, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "adapter_config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    (tmp_path / ("adapter_model.safetensors" if weights else "adapter_model.bin")).write_bytes(b"")
    with pytest.raises(ValueError, match="model") as raised:
        load_pretrained(str(tmp_path))
    assert problem in str(raised.value)
    assert len(str(raised.value)) < 400
    assert harmless(str(raised.value))


def test_damaged_adapters_are_refused_in_one_line(start: Start, tmp_path: Path) -> None:
    driver, _ = start(scenario=LORA, **MOVING)
    driver.advance("update", 1, lambda: False)
    driver.close()
    export_model(tmp_path / "run.rlplay", tmp_path / "adapters")
    (tmp_path / "adapters" / "adapter_model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ValueError, match="its adapters cannot be used"):
        load_pretrained(str(tmp_path / "adapters"))


@pytest.mark.usefixtures("opinionated")
@pytest.mark.parametrize("algorithm", ["dpo", "kto", "trpo", "ppo"])
def test_other_algorithms_train_adapters_too(start: Start, algorithm: str) -> None:
    driver, _ = start(scenario=LORA, algorithm=algorithm)
    before = {name: weight.clone() for name, weight in driver._state.parameters.items()}
    driver.advance("update", 1, lambda: False)
    driver.close()
    moved = [name for name, weight in driver._state.parameters.items() if not torch.equal(weight, before[name])]
    assert [name for name in moved if "lora_B" in name]


def test_what_does_not_fit_is_refused_in_a_line(
    start: Start, micro_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=r"^loss_type=reward trains a whole copy of the model, so it takes no LoRA"):
        start(scenario=LORA, algorithm="reward-model")
    with pytest.raises(ValueError, match=r"^LoRA: .*nowhere.*; set lora_target_modules, e.g. all-linear$"):
        load_pretrained(str(micro_model), weights=Weights(use_peft=True, lora_target_modules=("nowhere",)))
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ValueError, match=r"^LoRA needs peft, which is not installed: pip install 'rlplay\[peft\]'$"):
        load_pretrained(str(micro_model), weights=Weights(use_peft=True))


@pytest.mark.parametrize("layers", [["embed_tokens"], ["embed_tokens", "q_proj"], ["all-linear"]])
def test_fresh_adapters_change_nothing_and_trained_ones_are_kept(micro_model: Path, layers: list[str]) -> None:
    adapters = Weights(use_peft=True, lora_r=4, lora_alpha=8, lora_target_modules=tuple(layers))
    policy, _ = load_pretrained(str(micro_model), weights=adapters)
    assert FrozenAdapters(policy).off
    last = [p for name, p in policy.named_parameters() if "lora_B" in name or "lora_embedding_A" in name]
    assert len(last) == sum("lora_" in name for name, _ in policy.named_parameters()) / 2
    for parameter in last:
        with torch.no_grad():
            parameter.fill_(0.5)
        assert not FrozenAdapters(policy).off
        ids = torch.arange(8)[None]
        with torch.no_grad():
            torch.testing.assert_close(FrozenAdapters(policy)(input_ids=ids).logits, policy(input_ids=ids).logits)
            parameter.zero_()
    assert FrozenAdapters(policy).off

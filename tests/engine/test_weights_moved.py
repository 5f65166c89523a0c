"""What an update moved in the weights: norms, ranks and places against float64, for every kind of training."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.engine import weights_moved
from rlplay.engine.driver import Driver
from rlplay.engine.model_parts import is_tied, places
from rlplay.engine.weights_moved import effective_rank, operations, singular_values
from rlplay.scenario.schema import Stage
from rlplay.trace.codec import RECORDS
from rlplay.trace.moved_weights import MovedWeight
from rlplay.trace.questions import Weigh, Weighed
from rlplay.trace.records import AnyRecord, Credited, Stepped
from tests.engine import architectures
from tests.engine.conftest import ARCHITECTURES
from tests.engine.test_probe import ask, never
from tests.worlds.value_run import SMALL, Run

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
Weights = dict[str, torch.Tensor]


def trained(driver: Driver) -> Weights:
    """A copy of all that is trained, in float64."""
    return {name: p.detach().double().clone() for name, p in driver._state.parameters.items()}


def by_name(answer: Weighed) -> dict[str, MovedWeight]:
    return {weight.name: weight for weight in answer.weights}


def rank_of(change: torch.Tensor) -> float:
    """Roy and Vetterli's, by NumPy."""
    values = np.linalg.svd(change.numpy(), compute_uv=False)
    shares = values[values > 0] / values.sum()
    return math.exp(-(shares * np.log(shares)).sum())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_norms_and_ranks_are_those_of_float64(start: Start, architecture: str) -> None:
    driver, _ = start(architecture=architecture)
    driver.advance("update", 1, never)
    old = trained(driver)
    driver.advance("update", 1, never)
    new = trained(driver)
    answer = ask(driver, Weigh(2))
    assert (answer.update, answer.since, answer.model, answer.layers, answer.done) == (2, 1, "policy", 2, True)
    assert (answer.adapters, answer.frozen, answer.squares, answer.moves) == (0, 0, {}, [])
    found = by_name(answer)
    assert {f"policy.{name}" for name in found if not name.startswith("value.")} == {
        name for name in old if name.startswith("policy.")
    }
    for name, weight in found.items():
        own = name if name.startswith("value.") else f"policy.{name}"
        change = new[own] - old[own]
        assert weight.size == pytest.approx(float(old[own].norm()), rel=1e-6)
        assert weight.moved == pytest.approx(float(change.norm()), rel=1e-6)
        assert (weight.shape, weight.numbers) == (list(change.shape), change.numel())
        assert weight.changed == int((change != 0).sum())
        if change.ndim == 2 and weight.moved:
            assert weight.rank == pytest.approx(rank_of(change), rel=1e-4)
            assert sum(weight.spectrum) <= 1 + 1e-9
            assert weight.spectrum == sorted(weight.spectrum, reverse=True)
        else:
            assert weight.rank is None
    assert sum(weight.changed for weight in found.values()) > 1000


def test_one_direction_has_rank_one_and_equal_ones_as_many_as_there_are() -> None:
    column, row = torch.randn(7, 1), torch.randn(1, 5)
    assert effective_rank(singular_values(column @ row)) == pytest.approx(1, abs=1e-4)
    assert effective_rank(singular_values(torch.eye(6)[:, :4])) == pytest.approx(4)
    assert effective_rank(singular_values(torch.diag(torch.tensor([3.0, 1.0])))) == pytest.approx(
        math.exp(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    )


@pytest.mark.parametrize("shape", [(7, 3), (3, 7)])
def test_the_smaller_product_is_taken(shape: tuple[int, int]) -> None:
    matrix = torch.randn(*shape)
    np.testing.assert_allclose(singular_values(matrix), np.linalg.svd(matrix.numpy(), compute_uv=False), rtol=1e-5)
    assert operations(*shape) == 2 * 7 * 3**2 + 10 * 3**3


def test_earlier_updates_and_those_whose_weights_are_gone(start: Start) -> None:
    driver, _ = start()
    driver.advance("update", 1, never)
    old = trained(driver)
    driver.advance("update", 2, never)
    new = trained(driver)
    first = by_name(ask(driver, Weigh(1)))
    start_of_run = {f"policy.{n}": p.double() for n, p in driver._state.lm.reference.named_parameters()}
    name = "model.layers.1.mlp.down_proj.weight"
    expected = float((old[f"policy.{name}"] - start_of_run[f"policy.{name}"]).norm())
    assert first[name].moved == pytest.approx(expected, rel=1e-5)
    driver._store._drop(2)
    both = ask(driver, Weigh(3))
    assert (both.since, both.update) == (1, 3)
    expected = float((new[f"policy.{name}"] - old[f"policy.{name}"]).norm())
    assert by_name(both)[name].moved == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="weights of update 2 were not kept; those of 1, 3 are"):
        ask(driver, Weigh(2))
    with pytest.raises(ValueError, match="weights of update 0 were not kept"):
        ask(driver, Weigh(0))


def test_between_two_steps_the_models_own_weights_are_not_those_of_an_update(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlplay.engine.snapshots.SnapshotStore.begin", lambda *_, **__: None)
    driver, _ = start(num_iterations=2)
    driver.advance("update", 1, never)
    assert ask(driver, Weigh(1)).since == 0, "without a snapshot the policy itself answers"
    driver.advance("step", 1, never)
    with pytest.raises(ValueError, match=r"update 1 were not kept$"):
        ask(driver, Weigh(1))


def test_the_run_does_not_notice(start: Start) -> None:
    def played(asks: bool) -> list[bytes]:
        driver, records = start(f"{asks}.rlplay", learning_rate=2e-2)
        driver.advance("update", 2, never)
        if asks:
            ask(driver, Weigh(2))
        driver.advance("update", 1, never)
        return [RECORDS.encode(record) for record in records if isinstance(record, Credited | Stepped)]

    assert played(asks=True) == played(asks=False)


def test_ranks_of_the_largest_changes_come_first_and_what_is_too_costly_is_left_out(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, _ = start()
    driver.advance("update", 1, never)
    every = [weight for weight in ask(driver, Weigh(1)).weights if len(weight.shape) == 2 and weight.moved]
    monkeypatch.setattr(weights_moved, "OPERATIONS", 2e6)
    some = [weight for weight in ask(driver, Weigh(1)).weights if len(weight.shape) == 2 and weight.moved]
    known = [weight for weight in some if weight.rank is not None]
    assert 0 < len(known) < len(every)
    assert max(some, key=lambda weight: weight.moved / weight.size).rank is not None


def test_something_else_that_is_asked_comes_first(start: Start) -> None:
    driver, _ = start()
    driver.advance("update", 1, never)
    (answer,) = driver.probe(Weigh(1), lambda: True)
    assert isinstance(answer, Weighed)
    assert "asked something else" in answer.refused
    assert (answer.weights, answer.done) == ([], False)


@pytest.mark.parametrize("modules", [["q_proj", "down_proj"], ["embed_tokens"]])
def test_adapters_are_weighed_as_what_they_add(start: Start, modules: list[str]) -> None:
    pytest.importorskip("peft")
    lora: dict[str, Any] = {"use_peft": True, "lora_r": 4, "lora_alpha": 12, "lora_target_modules": modules}
    driver, _ = start(scenario=lora, learning_rate=3e-2)
    driver.advance("update", 1, never)
    old = added(driver)
    driver.advance("update", 1, never)
    answer, new = ask(driver, Weigh(2)), added(driver)
    assert (answer.adapters, answer.frozen > 10_000) == (4, True)
    found = by_name(answer)
    assert {name for name in found if not name.startswith("value.")} == set(new)
    for name, (base, delta) in new.items():
        before = old[name][1]
        weight = found[name]
        assert weight.moved == pytest.approx(float((delta - before).norm()), rel=1e-4)
        assert weight.size == pytest.approx(float((base + before).norm()), rel=1e-5)
        assert weight.rank == pytest.approx(rank_of(delta - before), rel=1e-3)
        assert weight.rank <= 8
        assert weight.numbers == 4 * sum(weight.shape)


def test_adapters_cost_what_their_small_product_costs(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("peft")
    lora: dict[str, Any] = {"use_peft": True, "lora_r": 4, "lora_target_modules": ["q_proj"]}
    driver, _ = start(scenario=lora)
    driver.advance("update", 1, never)
    for allowed, count in ((operations(8, 8) - 1, 0), (operations(8, 8), 1)):
        monkeypatch.setattr(weights_moved, "OPERATIONS", allowed)
        ranks = [weight.rank for weight in ask(driver, Weigh(1)).weights if weight.part != "value"]
        assert len(ranks) - ranks.count(None) == count


def added(driver: Driver) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Each frozen matrix, and what its adapters add by peft itself, in float64."""
    found = {}
    for path, module in driver._state.lm.policy.named_modules():
        if hasattr(module, "get_delta_weight") and hasattr(module, "base_layer"):
            name = f"{path.removeprefix('base_model.model.')}.weight"
            delta = module.get_delta_weight("default").detach().double()
            found[name] = module.base_layer.weight.detach().double(), delta.clone()
    return found


def test_masters_of_bfloat16_move_where_the_model_may_not(start: Start) -> None:
    driver, _ = start(scenario={"dtype": "bfloat16"}, learning_rate=1e-4)
    driver.advance("update", 1, never)
    masters = [{name: driver._state.optimizer.state[p]["master"].double().clone()
                for name, p in driver._state.parameters.items() if name.startswith("policy.")}]  # fmt: skip
    driver.advance("update", 1, never)
    found = by_name(ask(driver, Weigh(2)))
    for name, master in masters[0].items():
        parameter = driver._state.parameters[name]
        moved = float((driver._state.optimizer.state[parameter]["master"].double() - master).norm())
        assert found[name.removeprefix("policy.")].moved == pytest.approx(moved, rel=1e-5)
    weights = [weight for weight in found.values() if weight.part != "value"]
    assert 0 < sum(weight.changed for weight in weights) < sum(weight.numbers for weight in weights) / 2


def test_a_table_says_which_squares_moved(tmp_path: Path) -> None:
    run = Run(tmp_path, SMALL, settings={"algorithm": "reinforce", "learning_rate": 0.5})
    old = run.policy.head.weight.detach().clone()
    change = run.go(1).policy.head.weight.detach() - old
    answer = ask(run.driver, Weigh(1))
    assert answer.moves == ["↑", "→", "↓", "←"]
    pieces = [run.driver._state.lm.piece(token) for token in range(change.shape[1])]
    expected = {piece: column.tolist() for piece, column in zip(pieces, change.T, strict=True) if column.any()}
    assert answer.squares == expected
    assert "a1" in expected
    assert "b2" not in expected, "an episode ends there"
    assert [weight.part for weight in answer.weights][:1] == ["head"]


def test_a_stage_that_trains_the_reward_model_shows_the_reward_model(start: Start) -> None:
    stages = [Stage("reward model", 2, {"algorithm": "reward-model"}), Stage("ppo", 2, {"algorithm": "ppo"})]
    driver, _ = start(scenario={"stages": stages}, num_generations=2)
    driver.advance("update", 1, never)
    with pytest.raises(ValueError, match="reward model begins in update 1"):
        ask(driver, Weigh(1))
    model = driver._state.reward_model
    assert model is not None
    name = "backbone.model.layers.0.mlp.up_proj.weight"
    parameter = dict(model.named_parameters())[name]
    old = parameter.detach().double().clone()
    driver.advance("update", 1, never)
    answer = ask(driver, Weigh(2))
    assert answer.model == "reward model"
    weight = by_name(answer)[name]
    assert weight.moved == pytest.approx(float((parameter.detach().double() - old).norm()), rel=1e-5)
    assert (weight.layer, weight.part, weight.label) == (1, "mlp", "up")


@pytest.mark.parametrize("architecture", architectures.SIZES)
def test_every_architecture_has_its_layers_and_parts(architecture: str) -> None:
    model = architectures.make(architecture, 60, pad_token_id=0, eos_token_id=1, bos_token_id=2)
    found, layers = places(model)
    assert set(found) == {name for name, _ in model.named_parameters()}
    assert layers == (4 if architecture == "zamba2" else 2)
    assert {place.layer for place in found.values()} >= {0, 1, layers}
    tokens = [place for place in found.values() if (place.part, place.label) == ("embedding", "tokens")]
    assert [place.layer for place in tokens] == [0]
    assert all(place.part != "norm" or parameter.ndim == 1 for place, parameter in
               zip(found.values(), model.parameters(), strict=True))  # fmt: skip
    assert is_tied(model) == (not any(place.part == "head" and place.label == "lm_head" for place in found.values())
                              and architecture not in ("rwkv",))  # fmt: skip


@pytest.mark.parametrize(
    ("architecture", "name", "place"),
    [
        ("llama", "model.layers.1.self_attn.k_proj.weight", (2, "attention", "k")),
        ("llama", "model.layers.0.mlp.gate_proj.weight", (1, "mlp", "gate")),
        ("llama", "model.norm.weight", (3, "norm", "norm")),
        ("gpt2", "transformer.wpe.weight", (0, "embedding", "positions")),
        ("gpt2", "transformer.h.0.attn.c_attn.bias", (1, "attention", "qkv")),
        ("gpt2", "transformer.h.0.attn.c_proj.weight", (1, "attention", "o")),
        ("gpt2", "transformer.h.1.mlp.c_proj.weight", (2, "mlp", "down")),
        ("gpt-neox", "embed_out.weight", (3, "head", "embed_out")),
        ("opt", "model.decoder.layers.0.self_attn_layer_norm.weight", (1, "norm", "self_attn_layer_norm")),
        ("opt", "model.decoder.final_layer_norm.weight", (3, "norm", "final_layer_norm")),
        ("qwen3-moe", "model.layers.0.mlp.gate.weight", (1, "mlp", "router")),
    ],
)
def test_weights_are_called_what_they_do(architecture: str, name: str, place: tuple[int, str, str]) -> None:
    model = architectures.make(architecture, 60, pad_token_id=0, eos_token_id=1, bos_token_id=2)
    found, _ = places(model)
    at = found.get(name) or found["lm_head.weight"]
    assert (at.layer, at.part, at.label) == place or (name == "embed_out.weight" and at.part == "head")

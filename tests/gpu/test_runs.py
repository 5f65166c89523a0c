"""What a run can do beside learning: it goes back, resumes, changes its shape, has stages and leaves a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from rlplay.engine.export_model import export_model
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Stage
from rlplay.trace.records import Evaluated, Finished
from tests.engine.conftest import score_by_opinion
from tests.engine.test_lora import LORA
from tests.gpu.cuda import failures
from tests.gpu.play import EXACT, GPU, Run, both, resumed, run, same


def weights_equal(one: Run, other: Run) -> bool:
    mine, others = one.weights(), other.weights()
    return all(torch.equal(mine[name], value) for name, value in others.items())


@pytest.mark.parametrize("device", [GPU, pytest.param("cuda:1", marks=pytest.mark.stand_in)])
def test_an_update_after_an_undo_or_a_break_is_the_same(device: str) -> None:
    plain = run(device, scenario=EXACT).go(3)
    plain.driver.close()
    again = run(device, scenario=EXACT).go(2)
    again.driver.rewind(0)
    again.go(1)
    again.driver.close()
    again = resumed(again).go(1)
    again.driver.rewind(1)
    again.go(2)
    again.driver.close()
    assert {value.device for value in again.driver._state.parameters.values()} == {
        torch.device(device) if ":" in device else torch.device("cuda", 0)
    }
    assert weights_equal(plain, again)


@pytest.mark.parametrize(
    "given",
    [
        {"scenario": LORA},
        pytest.param({"gradient_checkpointing": True, "per_device_train_batch_size": 5}, marks=pytest.mark.slow),
        pytest.param({"observe": "light"}, marks=pytest.mark.slow),
        pytest.param({"kl_estimator": "full", "beta": 0.1}, marks=pytest.mark.slow),
        pytest.param({"entropy_coef": 0.1, "top_p": 0.9, "top_k": 20}, marks=pytest.mark.slow),
        {"num_iterations": 2, "num_minibatches": 2, "top_p": 0.9},
        {
            "sampler_lag": 1,
            "sampler_dtype": "int8",
            "repetition_penalty": 1.2,
            "min_p": 0.05,
            "logprobs_mode": "processed_logprobs",
        },
        {"sampler_lag": 1, "old_logprobs_of": "sampler", "scenario": LORA},
    ],
    ids=str,
)
def test_other_ways_of_an_update(given: dict[str, Any]) -> None:
    gpu, cpu = both(lambda each: each.go(3 if "sampler_lag" in given else 1), **given)
    assert gpu.driver._state.lm.fixed
    same(gpu, cpu)


def test_bfloat16_is_the_choice_of_a_gpu_that_has_it() -> None:
    played = run(GPU, scenario={"dtype": "auto"}).go(1)
    played.driver.close()
    assert {value.dtype for value in played.driver._state.lm.policy.parameters()} == {torch.bfloat16}
    assert all(np.isfinite(record.logprobs).all() for record in played.of(Finished))


@pytest.mark.stand_in
def test_two_shapes_take_turns_and_each_is_captured_once() -> None:
    """Held-out prompts are another batch than an update's."""
    gpu, cpu = both(lambda each: each.go(1), scenario={"eval_every": 1, "eval_prompts": 2, "eval_generations": 2})
    same(gpu, cpu)
    for one, other in zip(gpu.of(Evaluated), cpu.of(Evaluated), strict=True):
        assert one.metrics == pytest.approx(other.metrics, abs=1e-4)
    played = run(GPU, algorithm="remax", scenario={"eval_every": 1, "eval_prompts": 2, "eval_generations": 2}).go(1)
    captures = failures.captures
    played.go(2)
    played.driver.close()
    assert failures.captures == captures


def test_stages_hand_the_policy_on(monkeypatch: pytest.MonkeyPatch) -> None:
    score_by_opinion(monkeypatch)
    stages = [
        Stage("imitate", 1, {"algorithm": "sft", "learning_rate": 5e-3}),
        Stage("judge", 1, {"algorithm": "reward-model", "learning_rate": 5e-3}),
        Stage("maximise", 1, {"algorithm": "rlhf-ppo", "reward_weights": {"reward_model": 1}, "beta": 0.2}),
    ]
    gpu, cpu = both(
        lambda each: each.go(2).mark().go(1),
        reward="",
        scenario={"task": "questions", "stages": stages, "max_updates": 3},
    )
    same(gpu, cpu, logprobs=1e-4, step=1e-3)


def test_a_trained_model_is_exported(tmp_path: Path) -> None:
    played = run(GPU).go(1)
    played.driver.close()
    assert export_model(Path(played.job.run), tmp_path / "model") == 1
    loaded = dict(AutoModelForCausalLM.from_pretrained(tmp_path / "model").named_parameters())
    for name, value in played.driver._state.lm.policy.named_parameters():
        assert torch.equal(loaded[name], value.cpu()), name


@pytest.mark.parametrize(
    "name", ["cliff", "pick-two", "coins", *(pytest.param(name, marks=pytest.mark.slow) for name in [
        "ice-maze", "guess", "what-you-cannot-see", "calculator", "dpo", "you-choose", "rlhf",
    ])],
)  # fmt: skip
def test_a_lesson(name: str) -> None:
    """Worlds with a table or a small network, tools, pairs: an update, and once more after an undo."""
    lesson = msgspec.structs.asdict(load(name)) | {"eval_prompts": 2, "eval_generations": 2, "dtype": "float32"}

    def play(each: Run) -> None:
        if name == "you-choose":
            each.driver.set({"labeller": "gold"})
            each.go(1).mark()  # the reward model begins with an update
        each.go(1)
        each.driver.rewind(each.driver.status().update - 1)
        each.go(1)

    gpu, cpu = both(play, scenario=lesson)
    same(gpu, cpu, logprobs=1e-4, learns=name != "coins")  # which has one move


def test_another_rate_of_exploration_is_sampled_with() -> None:
    def play(each: Run) -> None:
        each.driver.set({"exploration_rate": 0.95})
        each.go(1)
        each.driver.set({"exploration_rate": 0.0})
        each.go(1)

    gpu, cpu = both(play, scenario=msgspec.structs.asdict(load("cliff")) | {"eval_every": 0, "dtype": "float32"})
    same(gpu, cpu, logprobs=1e-4)

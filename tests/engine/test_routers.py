"""The loss that keeps the experts of a mixture busy alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from rlplay.engine.driver import Driver
from rlplay.engine.routers import load_balance
from rlplay.engine.state import Halt
from rlplay.trace.records import AnyRecord, Finished, Sampled
from tests.engine import architectures

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
SMALL: dict[str, Any] = {"num_prompts": 2, "num_generations": 4, "max_completion_length": 6}


def _reference(model: Any, prompts: list[list[int]], answers: list[list[int]]) -> float:
    """Fedus et al. 2021, in float64, of the routers' logits of each sequence alone."""
    experts, chosen = model.config.num_experts, model.config.num_experts_per_tok
    counts, probabilities, places = torch.zeros(experts).double(), torch.zeros(experts).double(), 0
    for prompt, answer in zip(prompts, answers, strict=True):
        with torch.no_grad():
            out = model(input_ids=torch.tensor([prompt + answer]), output_router_logits=True)
        for logits in out.router_logits:
            of_tokens = logits.double().softmax(-1)
            counts += torch.bincount(of_tokens.topk(chosen).indices.flatten(), minlength=experts)
            probabilities += of_tokens.sum(0)
            places += len(of_tokens)
    return float(experts * (counts / places * probabilities / places).sum())


def test_the_loss_is_that_of_every_sequence_alone(start: Start) -> None:
    driver, records = start(architecture="qwen3-moe", **SMALL)
    driver.advance("update", 1, lambda: False)
    state, (sampled,) = driver._state, [each for each in records if isinstance(each, Sampled) and each.done]
    batch = state.batch
    assert batch is not None
    prompts = [batch.prompts.row(int(group)) for group in batch.group]
    answers = [row[:n].tolist() for row, n in zip(batch.ids, batch.lengths.tolist(), strict=True)]
    assert len({len(prompt) for prompt in prompts}) > 1 or len({len(answer) for answer in answers}) > 1
    assert len(sampled.group) == len(answers)
    own = load_balance(state.lm, batch, torch.arange(len(answers))).detach()
    assert float(own) == pytest.approx(_reference(state.lm.policy, prompts, answers), rel=1e-5)
    driver.close()


@pytest.mark.parametrize("algorithm", ["grpo", "dpo", "sft"])
def test_it_adds_to_the_loss_and_spreads_the_load(start: Start, algorithm: str, tmp_path: Path) -> None:
    losses, pairs = {}, tmp_path / "pairs.jsonl"
    rows = [{"prompt": f"{i} + 1 =", "chosen": f" {i + 1}", "rejected": f" {i} or so"} for i in range(8)]
    pairs.write_text("\n".join(map(json.dumps, rows)))
    given = {} if algorithm == "grpo" else {"scenario": {"task": None, "dataset": str(pairs)}}
    for coefficient in (0.0, 10.0):
        driver, records = start(
            f"{coefficient}.rlplay", architecture="qwen3-moe", algorithm=algorithm, router_aux_loss_coef=coefficient,
            learning_rate=3e-3,
            **(SMALL if algorithm == "grpo" else {"num_prompts": 8, "max_completion_length": 6}), **given,
        )  # fmt: skip
        driver.advance("update", 4, lambda: False)
        batch, state = driver._state.batch, driver._state
        assert batch is not None
        losses[coefficient] = float(load_balance(state.lm, batch, torch.arange(len(batch.ids))).detach())
        first, *_ = (each.metrics for each in records if isinstance(each, Finished))
        assert ("aux_loss" in first) == bool(coefficient)
        if coefficient:
            assert abs(first["loss"]) > 1  # the balance alone is at least the experts that a token is sent to
        driver.close()
    assert losses[10.0] < losses[0.0]


def test_parts_of_a_minibatch_add_up_to_their_mean(start: Start) -> None:
    driver, records = start(
        architecture="qwen3-moe", router_aux_loss_coef=0.1, per_device_train_batch_size=2, **SMALL
    )  # fmt: skip
    driver.advance("update", 1, lambda: False)
    (first,) = (each.metrics["aux_loss"] for each in records if isinstance(each, Finished))
    chosen = architectures.SIZES["qwen3-moe"][1]["num_experts_per_tok"]
    assert first >= 0.9 * chosen
    driver.close()


def test_a_model_without_routers_is_refused_in_a_line(start: Start) -> None:
    driver, _ = start(architecture="llama", router_aux_loss_coef=0.1, **SMALL)
    with pytest.raises(Halt, match=r"needs a mixture of experts .* LlamaForCausalLM does not; set it to 0"):
        driver.advance("update", 1, lambda: False)
    driver.close()

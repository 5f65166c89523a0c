"""Forgetting, held against a pass over the rendered chat in float64."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rlplay.engine.driver import Driver
from rlplay.engine.forgetting import mean_nll
from rlplay.engine.model import load_model
from rlplay.scenario.schema import Job, Scenario
from rlplay.tasks.stories import remembered
from rlplay.trace.records import AnyRecord, Evaluated


def test_it_is_the_mean_over_tokens_of_the_negative_log_probability() -> None:
    lm = load_model("pocket", torch.device("cpu"))
    examples = remembered()[:5]
    found = mean_nll(lm, examples)
    model = lm.policy.double()
    total, count = 0.0, 0
    for example in examples:
        start = lm.prompt_ids(example)
        said = lm.tokenizer(example.chosen, add_special_tokens=False)["input_ids"] + [lm.tokenizer.eos_token_id]
        with torch.no_grad():
            logits = model(torch.tensor([start + said])).logits[0]
        for place, token in enumerate(said, start=len(start) - 1):
            row = logits[place]
            total += (row.max() + (row - row.max()).exp().sum().log() - row[token]).item()
            count += 1
    assert found == pytest.approx(total / count, rel=1e-5)
    assert 0.1 < found < 1.5, "the base model was pretrained on such stories"


def test_the_stories_are_always_the_same_and_all_different() -> None:
    assert remembered() == remembered()
    assert len({example.chosen for example in remembered()}) > 25


def test_a_model_that_trains_hard_on_something_else_forgets(tmp_path: Path) -> None:
    scenario = Scenario(
        name="sums", title="", question="", task="arithmetic", eval_every=3, eval_prompts=2, max_updates=3,
        settings={"algorithm": "grpo", "num_prompts": 4, "num_generations": 4, "max_completion_length": 8,
                  "learning_rate": 1e-2},
    )  # fmt: skip
    records: list[AnyRecord] = []
    driver = Driver(Job(scenario, str(tmp_path / "run.rlplay"), device="cpu", threads=1), records.append)
    driver.load(lambda what, fraction: None)
    driver.advance("update", 3, lambda: False)
    driver.close()
    before, after = (record.metrics["eval_nll"] for record in records if isinstance(record, Evaluated))
    assert after > before + 0.05

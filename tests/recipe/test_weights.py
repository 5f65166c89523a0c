"""The shipped weights: small, loadable by transformers alone, and as good and as bad as the lessons need."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from recipe.measure import first_token_chances, task_figures
from rlplay.paths import POCKET_PATH
from rlplay.tasks import load_task


@pytest.fixture(scope="module")
def model() -> Any:
    return AutoModelForCausalLM.from_pretrained(POCKET_PATH)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(POCKET_PATH)


def test_the_folder_is_small_and_complete() -> None:
    names = {path.name for path in POCKET_PATH.iterdir()}
    assert {
        "README.md",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
    } == names
    assert sum(path.stat().st_size for path in POCKET_PATH.iterdir()) < 10_000_000


def test_config_agrees_with_the_tokenizer(model: Any, tokenizer: Any) -> None:
    assert model.config.vocab_size == len(tokenizer)
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id
    assert model.generation_config.pad_token_id == tokenizer.pad_token_id
    assert model.dtype == torch.float32


@pytest.mark.parametrize(
    ("name", "figure", "between"),
    [
        ("arithmetic", "correct", (0.17, 0.55)),
        ("word_problems", "correct", (0.14, 0.40)),
        ("questions", "helpful", (0.26, 0.58)),
    ],
)
def test_base_success_leaves_room_to_learn(
    model: Any, tokenizer: Any, name: str, figure: str, between: tuple[float, float]
) -> None:
    torch.manual_seed(0)
    figures = task_figures(model, tokenizer, load_task(name), count=128)
    for part in ("train", "held out"):
        assert between[0] < figures[f"{figure}, {part}"] < between[1]


def test_first_token_of_the_worked_example(model: Any, tokenizer: Any) -> None:
    chances = first_token_chances(model, tokenizer, "What is 2+2?", ["4", "5", "2"])
    assert chances["4"] == pytest.approx(0.3, abs=0.08)
    assert chances["5"] == pytest.approx(0.2, abs=0.08)
    assert chances["2"] == pytest.approx(0.2, abs=0.08)

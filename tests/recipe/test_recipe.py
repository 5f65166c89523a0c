"""A recipe of a few steps: the loss falls, and what it saves is an ordinary model folder with its card."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from transformers import AutoModelForCausalLM

from recipe import __main__ as command
from recipe.pretraining import Document, SupervisedPlan, learning_rate, masked_loss, pack
from recipe.training import Recipe, new_model, new_tokenizer, train


def test_loss_falls_and_the_model_loads(tmp_path: Path) -> None:
    tokenizer = new_tokenizer(seed=0)
    model = new_model(tokenizer, seed=0)
    recipe = Recipe(tokens=20 * 4 * 128, rows=4)
    steps = list(train(model, tokenizer, recipe, tmp_path))
    assert [step.step for step in steps] == list(range(20))
    assert steps[-1].loss < 0.8 * steps[0].loss
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert torch.equal(loaded.lm_head.weight, model.lm_head.weight)


def test_command_writes_the_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_SAMPLES", 4)
    done = CliRunner().invoke(command.main, ["--out", str(tmp_path), "--tokens", "3000"])
    assert done.exit_code == 0, done.output
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "--tokens 3000 --seed 0" in card
    assert "| word_problems | correct, held out |" in card
    assert {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_packing_keeps_every_document_whole() -> None:
    documents = [Document(token_ids=[n] * n, mask=[1] * n) for n in (5, 9, 3, 7, 2, 10, 1)]
    rows = list(pack(iter(documents), row_length=10))
    assert all(len(row.token_ids) == len(row.mask) == len(row.positions) == 10 for row in rows)
    assert sum(sum(row.mask) for row in rows) == sum(len(document.mask) for document in documents)
    for row in rows:
        for k in range(1, sum(row.mask)):
            continues = row.token_ids[k] == row.token_ids[k - 1]
            assert row.positions[k] == (row.positions[k - 1] + 1 if continues else 0)


def test_too_long_a_document_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a document of 11 tokens does not fit a row of 10"):
        list(pack([Document(token_ids=[1] * 11, mask=[1] * 11)], row_length=10))


def test_packed_documents_do_not_see_each_other() -> None:
    model = new_model(new_tokenizer(seed=0), seed=0).eval()
    first, second = [5, 6, 7, 8], [9, 10, 11]
    positions = torch.tensor([[0, 1, 2, 3, 0, 1, 2]])
    packed = model(input_ids=torch.tensor([first + second]), position_ids=positions, use_cache=False)
    alone = model(input_ids=torch.tensor([second]))
    torch.testing.assert_close(packed.logits[:, 4:], alone.logits)


def test_masked_loss_counts_learnt_tokens_only() -> None:
    logits = torch.zeros(1, 4, 10)
    logits[0, 1, 3] = 5.0
    token_ids = torch.tensor([[1, 2, 3, 4]])
    expected = -logits[0, 1].log_softmax(-1)[3]
    torch.testing.assert_close(masked_loss(logits, token_ids, torch.tensor([[1, 0, 1, 0]])), expected)


def test_learning_rate_rises_then_falls_to_nothing() -> None:
    plan = SupervisedPlan(steps=100, learning_rate=1.0, warm_up=0.1)
    rates = [learning_rate(step, plan) for step in range(100)]
    assert rates[:10] == pytest.approx([0.1 * k for k in range(1, 11)])
    assert max(rates) == 1.0
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] < 0.001

"""The answers in the inputs of losses that rlplay does not know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

import torch
from transformers import Trainer, TrainingArguments
from trl.experimental.cpo import CPOConfig, CPOTrainer

from rlplay.foreign.recording import Recording
from rlplay.record.trl import RlplayCallback
from rlplay.record.trl.seen import in_loss, mean_reward
from rlplay.trace.records import AnyRecord, Finished, Notice, Sampled, Scored
from tests.record import tiny
from tests.record.trainers import PAIRS, SHORT, maker
from tests.record.watched import Run, remarks

ROWS = torch.tensor([[0, 0, 5, 6, 7], [4, 5, 6, 7, 8]])
REAL = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
LABELS = torch.tensor([[-100, -100, -100, 6, 7], [-100, -100, 6, -100, 8]])


def shown(inputs: dict[str, Any]) -> list[tuple[list[int], list[int], list[int] | None, str]]:
    """Prompt, answer, mask and role of each answer."""
    return [
        (each.prompt_ids.tolist(), each.ids.tolist(), None if each.mask is None else each.mask.tolist(), each.role)
        for each in in_loss(inputs, {1})
        if each.prompt_ids is not None and each.ids is not None
    ]


def test_rows_with_labels() -> None:
    expected = [([5], [6, 7], [1, 1], ""), ([4, 5], [6, 7, 8], [1, 0, 1], "")]
    assert shown({"input_ids": ROWS, "attention_mask": REAL, "labels": LABELS}) == expected
    covered = (LABELS != -100).int()
    assert shown({"input_ids": ROWS, "attention_mask": REAL, "completion_mask": covered}) == expected


def test_rows_whose_last_tokens_are_kept() -> None:
    inputs = {"input_ids": ROWS, "attention_mask": REAL, "logits_to_keep": 2, "rewards": torch.tensor([0.5, 1.0])}
    assert shown(inputs) == [([5], [6, 7], [1, 1], ""), ([4, 5, 6], [7, 8], [1, 1], "")]
    assert [each.rewards for each in in_loss(inputs, {1})] == [{"reward": 0.5}, {"reward": 1.0}]


def test_sampled_answers_say_whether_they_were_cut() -> None:
    inputs = {
        "prompt_ids": torch.tensor([[0, 3], [3, 4]]), "prompt_mask": torch.tensor([[0, 1], [1, 1]]),
        "completion_ids": torch.tensor([[5, 1, 0], [5, 6, 7]]), "completion_mask": torch.tensor([[1, 1, 0], [1, 1, 1]]),
    }  # fmt: skip
    assert shown(inputs) == [([3], [5, 1], None, ""), ([3, 4], [5, 6, 7], None, "")]
    assert [each.cut for each in in_loss(inputs, {1})] == [False, True]


def test_pairs() -> None:
    inputs = {
        f"{role}_{name}": of
        for role in ("chosen", "rejected")
        for name, of in (("input_ids", ROWS), ("labels", LABELS))
    }
    found = in_loss(inputs, {1})
    assert [(each.role, each.group) for each in found] == [
        ("chosen", 0),
        ("chosen", 1),
        ("rejected", 0),
        ("rejected", 1),
    ]


@pytest.mark.parametrize(
    "inputs",
    [None, {}, {"input_ids": ROWS}, {"input_ids": ROWS, "labels": torch.tensor([0, 1])}, {"input_ids": [[1]]}, [1]],
)
def test_inputs_that_show_no_answers(inputs: Any) -> None:
    assert in_loss(inputs, {1}) == []


def test_the_mean_reward_is_weighted_and_needs_all() -> None:
    rewards = [{"a": 1.0, "b": 2.0}, {"a": 0.0, "b": 1.0}]
    inputs = {"input_ids": ROWS, "labels": LABELS}
    found = [each.__class__(each.group, rewards=of) for each, of in zip(in_loss(inputs, {1}), rewards, strict=True)]
    assert mean_reward(found, {"a": 2.0}) == 2.5
    assert mean_reward([*found, in_loss(inputs, {1})[0]], {}) is None
    assert mean_reward([], {}) is None


def _of(records: list[AnyRecord], kind: type) -> list[Any]:
    return [record for record in records if isinstance(record, kind)]


def test_pairs_of_several_micro_batches_stay_apart(tmp_path: Path) -> None:
    options = SHORT | {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 2}
    trainer = maker(CPOTrainer, CPOConfig, PAIRS, options)(tmp_path, [RlplayCallback(tmp_path / "rec")])
    trainer.train()
    records = Recording(tmp_path / "rec").fresh()
    for sampled, scored in zip(_of(records, Sampled), _of(records, Scored), strict=True):
        assert len(sampled.prompts) == 4
        for group in range(4):
            assert sorted(scored.roles[row] for row in np.flatnonzero(sampled.group == group)) == ["chosen", "rejected"]
        assert "".join(sampled.prompt_texts[: sampled.prompt_offsets[1]]) == sampled.prompts[0] + " "
        assert not sampled.ends_known


@pytest.mark.parametrize("tokenizer", [True, False])
def test_a_trainer_of_transformers(tokenizer: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    args = TrainingArguments(
        output_dir=str(tmp_path), use_cpu=True, report_to=[], max_steps=2, logging_steps=1, save_strategy="no",
        per_device_train_batch_size=2, disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(
        model=tiny.model(tmp_path / "model"), args=args, callbacks=[RlplayCallback()],
        train_dataset=[{"input_ids": [2, 3, 4], "labels": [-100, 3, 4]}] * 4,
        processing_class=tiny.tokenizer() if tokenizer else None,
    )  # fmt: skip
    trainer.train()
    said = remarks(capfd.readouterr().err)
    assert [line.partition(" ")[2].split()[0] for line in said] == ["Trainer"] + ["this"] * (not tokenizer)
    reading = Recording(tmp_path / "rlplay")
    assert reading.started().source == "transformers.trainer Trainer"
    records = reading.fresh()
    assert [record.texts for record in _of(records, Sampled)] == [["b", "c"] * 2] * 2 * tokenizer
    assert [record.metrics["loss"] for record in _of(records, Finished)] == [
        log["loss"] for log in trainer.state.log_history if "loss" in log
    ]


def test_only_whole_groups_are_kept(tmp_path: Path) -> None:
    Run("experimental.SDPOTrainer", tmp_path / "all").train()
    Run("experimental.CPOTrainer", tmp_path / "few", completions=3).train()
    records = Recording(tmp_path / "few" / "rec").fresh()
    assert [len(record.group) for record in _of(records, Sampled)] == [2, 2, 2]
    assert len(_of(records, Notice)) == 1
    rewards = [record.rewards.mean() for record in _of(Recording(tmp_path / "all" / "rec").fresh(), Scored)]
    logged = [r.metrics["reward"] for r in Recording(tmp_path / "all" / "rec").fresh() if isinstance(r, Finished)]
    assert rewards == pytest.approx(logged)

"""Whether the end of an answer is in the loss, as TRL's trainers mask it and as they do not."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

from datasets import Dataset

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from trl import SFTConfig, SFTTrainer

from rlplay.foreign.recording import Recording
from rlplay.record.trl import RlplayCallback
from tests.record import tiny
from tests.record.test_trl_broken import first_finding
from tests.record.test_trl_online import BATCH, prepared
from tests.record.trainers import GIVEN


@pytest.mark.parametrize("masked", [True, False])
def test_labels_of_given_answers(masked: bool, tmp_path: Path) -> None:
    args = SFTConfig(
        output_dir=str(tmp_path), report_to=[], use_cpu=True, bf16=False, save_strategy="no", disable_tqdm=True, seed=3,
        per_device_train_batch_size=8, max_steps=5, logging_steps=1, learning_rate=0.01,
    )  # fmt: skip
    trainer: Any = SFTTrainer(
        model=tiny.model(tmp_path / "model"), args=args, train_dataset=Dataset.from_list(GIVEN * 2),
        processing_class=tiny.talker(), callbacks=[RlplayCallback(tmp_path / "rec")],
    )  # fmt: skip
    whole = trainer.data_collator

    def collated(rows: Any) -> Any:
        batch = whole(rows)
        batch["labels"][batch["input_ids"] == tiny.END] = -100  # as where the pad token is the end token
        return batch

    if masked:
        trainer.data_collator = collated
    trainer.train()
    assert Recording(tmp_path / "rec").started().ends == {tiny.END: "<end>"}
    finding, _ = first_finding(tmp_path / "rec")
    assert (finding is not None and finding.name == "end untrained") == masked


@pytest.mark.parametrize("masked", [True, False])
def test_masks_of_sampled_answers(masked: bool, tmp_path: Path) -> None:
    trainer = prepared("grpo", BATCH | {"per_device_train_batch_size": 16, "max_completion_length": 12}, tmp_path)
    generate = trainer._generate_and_score_completions

    def without_ends(inputs: Any) -> Any:
        out = generate(inputs)
        out["completion_mask"] = out["completion_mask"] * (out["completion_ids"] != tiny.END)
        return out

    if masked:
        trainer._generate_and_score_completions = without_ends
    trainer.train()
    finding, _ = first_finding(tmp_path / "rec")
    assert (finding is not None and finding.name == "end untrained") == masked

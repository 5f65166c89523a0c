"""A run of TRL that listens for a screen, in a program of its own: its folder, then the number of its updates."""

from __future__ import annotations

import sys
from pathlib import Path

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from rlplay.record.trl import RlplayCallback
from tests.record import tiny


def main(folder: Path, updates: int) -> None:
    """Train a tiny random model."""
    arguments = GRPOConfig(
        output_dir=str(folder), per_device_train_batch_size=8, num_generations=4, max_completion_length=8,
        max_steps=updates, logging_steps=1, learning_rate=1e-3, lr_scheduler_type="constant", beta=0.1, report_to=[],
        use_cpu=True, bf16=False, save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    GRPOTrainer(
        model=tiny.model(folder / "model"), args=arguments, train_dataset=Dataset.from_list(tiny.PROMPTS),
        reward_funcs=[tiny.length], processing_class=tiny.tokenizer(), callbacks=[RlplayCallback(listen=True)],
    ).train()  # fmt: skip


main(Path(sys.argv[1]), int(sys.argv[2]))

"""Writes `train_data_stepN.jsonl` as NeMo-RL's GRPO does: a padded batch, a line per slice of one answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.foreign.grown import aged

PAD = 0
LENGTHS = {"prompt": 3, "answer": (4, 2, 5, 3)}


def batch(step: int, seed: int = 0) -> dict[str, Any]:
    """Four answers to two prompts; the third has two turns with an environment's two tokens between them."""
    made = np.random.default_rng([seed, step])
    begin, lengths = LENGTHS["prompt"], np.array(LENGTHS["answer"])
    shape = (4, begin + int(lengths.max()) + 2)
    ids, mask = np.full(shape, PAD), np.zeros(shape, dtype=int)
    prev, gap = -made.exponential(1, shape), made.normal(0, 0.02, shape)
    for row, length in enumerate(lengths):
        ids[row, :begin] = [11, 12, 13 + row // 2]
        ids[row, begin : begin + length] = made.integers(20, 90, length)
        mask[row, begin : begin + length] = 1
    mask[2, begin + 2 : begin + 4] = 0
    rewards = np.array([1.0, 0.0, 0.5, 0.25])
    return {
        "content": [[f"What is {row // 2}?", f"So {row}."] for row in range(4)],
        "rewards": rewards.tolist(),
        "input_lengths": (begin + lengths).tolist(),
        "token_ids": ids.tolist(),
        "token_loss_mask": mask.tolist(),
        "sample_loss_mask": [1.0, 1.0, 1.0, 0.0],
        "advantages": np.repeat((rewards - 0.4)[:, None], shape[1], axis=1).tolist(),
        "generation_logprobs": ((prev + gap) * mask).tolist(),
        "prev_logprobs": prev.tolist(),
    }


def write(folder: Path, step: int, columns: dict[str, Any], age: float = 60) -> None:
    """The columns, as the logger writes them: the size of the batch is that of the first one."""
    path = folder / f"train_data_step{step}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    size = len(next(iter(columns.values())))
    rows = [{name: values[i : i + 1] for name, values in columns.items()} | {"idx": i} for i in range(size)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    aged(path, age)

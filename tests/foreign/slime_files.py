"""Writes what slime and miles leave with --dump-details: samples of a rollout, and what the training pass computed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.foreign.grown import Row, aged

LENGTHS = (4, 2, 5, 3)
BEGIN = 3


def samples(rollout: int) -> list[Row]:
    """Four samples of two groups as `Sample.to_dict` has them; the third has two tokens of a tool's."""
    made = np.random.default_rng(rollout)

    def sample(place: int, length: int) -> Row:
        return {
            "group_index": 2 * rollout + place // 2, "index": 4 * rollout + place, "label": f"l{place // 2}",
            "prompt": [{"role": "user", "content": f"What is {place // 2}?"}], "response": f"So {place}.",
            "tokens": [11, 12, 13 + place // 2, *made.integers(20, 100_000, length).tolist()],
            "response_length": length, "reward": place / 4,
            "loss_mask": None if place == 1 else [int(place != 2 or t not in (2, 3)) for t in range(length)],
            "rollout_log_probs": (-made.exponential(1, length)).tolist(), "remove_sample": place == 3,
            "status": "truncated" if place == 1 else "completed", "metadata": {}, "weight_versions": ["1"],
            "spec_info": {"spec_accept_token_num": 0},
        }  # fmt: skip

    return [sample(place, length) for place, length in enumerate(LENGTHS)]


def trained(rollout: int) -> dict[str, list[Any]]:
    """The columns of the training pass, over the answers' tokens, in the order of the samples."""
    made, rows = np.random.default_rng([9, rollout]), samples(rollout)

    def tensors(scale: float) -> list[torch.Tensor]:
        return [torch.tensor(scale * made.exponential(1, n), dtype=torch.float32) for n in LENGTHS]

    return {
        "tokens": [torch.tensor(row["tokens"]) for row in rows], "response_lengths": list(LENGTHS),
        "total_lengths": [BEGIN + n for n in LENGTHS], "sample_indices": [row["index"] for row in rows],
        "rewards": [0.1] * 4, "loss_masks": [torch.ones(n, dtype=torch.int) for n in LENGTHS],
        "log_probs": tensors(-1), "ref_log_probs": tensors(-1), "advantages": tensors(0.1), "returns": tensors(0.1),
    }  # fmt: skip


def write_rollout(folder: Path, rollout: int, rows: Sequence[Row], age: float = 60) -> None:
    save(folder / "rollout_data" / f"{rollout}.pt", {"rollout_id": rollout, "samples": list(rows)}, age)


def write_rows(folder: Path, rollout: int, columns: dict[str, list[Any]], age: float = 60) -> None:
    """As slime does: one file, a row per sample, in another order than the ranks had them."""
    singular = {"sample_indices": "sample_index"}
    rows = [{singular.get(name, name): values[i] for name, values in columns.items()} for i in range(len(LENGTHS))]
    raw = [row["reward"] for row in samples(rollout)]
    held = {"format_version": 2, "rollout_id": rollout, "rank": 0, "samples": rows, "dp_shards": [], "raw_reward": raw}
    save(folder / "train_data" / f"{rollout}_0.pt", held, age)


def write_ranks(
    folder: Path, rollout: int, columns: dict[str, list[Any]], shares: Sequence[Sequence[int]], age: float = 60
) -> None:
    """As miles does: each rank the columns of its share."""
    raw = [row["reward"] for row in samples(rollout)]
    for rank, share in enumerate(shares):
        data = {name: [values[i] for i in share] for name, values in columns.items()}
        held = {
            "rollout_id": rollout,
            "rank": rank,
            "rollout_data": data | {"raw_reward": raw, "num_microbatches": [1]},
        }
        save(folder / "train_data" / f"{rollout}_{rank}.pt", held, age)


def save(path: Path, held: Any, age: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(held, path)
    aged(path, age)

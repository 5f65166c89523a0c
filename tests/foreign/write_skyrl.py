"""Writes tests/foreign/skyrl with SkyRL's own code: `python -m tests.foreign.write_skyrl FOLDER`.

FOLDER has skyrl 0.3.0 (`pip install --no-deps --target FOLDER skyrl==0.3.0 jaxtyping wadler-lindig`). Its two modules
that make and save a batch are loaded without the rest, which needs Ray and a newer Python.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import torch

WRITTEN = Path(__file__).parent / "skyrl"
PROMPTS = [[11, 12], [11, 12], [13, 14, 15], [13, 14, 15]]
RESPONSES = [[21, 22, 23], [24], [25, 26, 27, 28], [29, 30]]
MASKS = [[1, 1, 1], [1], [1, 0, 0, 1], [1, 1]]
NUMBERS = {"action_log_probs": -1, "rollout_logprobs": -1, "base_action_log_probs": -1, "advantages": 1, "values": 1}


def numbers(step: int) -> dict[str, list[np.ndarray]]:
    """What the batch of a step holds of each answer's tokens."""
    made = np.random.default_rng(step)
    return {
        name: [(sign * made.exponential(1, len(row))).astype(np.float32) for row in RESPONSES]
        for name, sign in NUMBERS.items()
    }


def _module(folder: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, folder / (name.replace(".", "/") + ".py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Write the batches of two steps."""
    folder = Path(sys.argv[1])
    sys.path.insert(0, str(folder))
    sys.modules["loguru"] = types.SimpleNamespace(logger=None)  # type: ignore[assignment]
    for package in ("skyrl", "skyrl.backends", "skyrl.backends.skyrl_train", "skyrl.train", "skyrl.train.dataset"):
        sys.modules[package] = types.ModuleType(package)
    batches = _module(folder, "skyrl.backends.skyrl_train.training_batch")
    sys.modules["skyrl.backends.skyrl_train"].training_batch = batches  # type: ignore[attr-defined]
    make = _module(folder, "skyrl.train.dataset.preprocess").convert_prompts_responses_to_batch_tensors
    tokenizer = types.SimpleNamespace(pad_token_id=0)
    WRITTEN.mkdir(exist_ok=True)
    for step in (1, 2):
        known = {name: [each.tolist() for each in rows] for name, rows in numbers(step).items()}
        zeros = [[0.0] * len(row) for row in RESPONSES]
        tensors: dict[str, Any] = {}
        for name, rows in known.items():
            found = make(tokenizer, PROMPTS, RESPONSES, zeros, MASKS, rows)
            tensors |= dict(zip(("sequences", "attention_mask", "response_mask"), found[:3], strict=True))
            tensors |= {"loss_mask": found[4], name: found[5]}
        if step == 2:
            tensors["action_log_probs"] = tensors["action_log_probs"].to(torch.bfloat16)
        batch = batches.TrainingInputBatch(tensors | {"rollout_expert_indices": None})
        batch.metadata = {"policy_prompt_boundaries": [(0, 2), (2, 4)], "response_length": 4}
        batches.pad_training_input_batch(batch, 2).save(WRITTEN / f"global_step_{step}_training_input.pkl")


if __name__ == "__main__":
    main()

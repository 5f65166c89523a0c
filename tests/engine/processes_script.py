"""Trains small runs in float64, alone or as one of several processes; see test_processes.py.

python -m tests.engine.processes_script MODEL_FOLDER FOLDER NAME…
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from rlplay.engine import ranks
from rlplay.engine.driver import Driver
from rlplay.processes import in_several
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.records import AnyRecord
from rlplay.trusted import follow
from tests.engine.conftest import score_by_opinion
from tests.engine.teachers.asking import in_float64

CASES: dict[str, dict[str, Any]] = {
    "grpo": {"algorithm": "grpo"},
    "minibatches": {"algorithm": "grpo", "num_minibatches": 2, "num_iterations": 2, "beta": 0.1},
    "dapo": {"algorithm": "dapo", "reward": "some_groups", "top_entropy_quantile": 0.5},
    "whitened": {"algorithm": "reinforce++", "per_device_train_batch_size": 2},
    "ppo": {"algorithm": "ppo", "num_minibatches": 2, "num_iterations": 2},
    "greedy": {"algorithm": "remax", "num_generations": 1, "num_prompts": 4},
    "exact": {"kl_estimator": "full", "beta": 0.1, "kl_placement": "loss"},
    "taught": {
        "algorithm": "sdpo",
        "distillation_mode": "topk_logits",
        "distillation_alpha": 0.5,
        "distillation_topk": 9,
        "success_reward_threshold": 0.5,
        "num_iterations": 2,
    },
    "trpo": {"algorithm": "trpo"},
    "vineppo": {"algorithm": "vineppo"},
    "sampler": {
        "algorithm": "dapo",
        "reward": "some_groups",
        "sampler_lag": 1,
        "sampler_dtype": "int8",
        "top_p": 0.9,
        "repetition_penalty": 1.2,
        "logprobs_mode": "processed_logprobs",
    },
    "dpo": {"algorithm": "dpo", "num_minibatches": 2},
    "kto": {"algorithm": "kto"},
    "reward-model": {"algorithm": "reward-model"},
}
SMALL = {"num_prompts": 3, "num_generations": 4, "max_completion_length": 10, "learning_rate": 1e-4}
UPDATES = 2


def trained(
    model: Path, folder: Path, name: str, device: str = "cpu", sink: Callable[[AnyRecord], object] = id
) -> None:
    """Train one case, with every record to `sink`; the run file and each process's weights lie in the folder."""
    given = dict(CASES[name])
    reward = given.pop("reward", "uneven")
    scenario = Scenario(
        name="micro", title="", question="", task="arithmetic", model=str(model),
        reward=[f"{folder / 'rewards.py'}:{reward}"], settings=SMALL | given, max_updates=UPDATES,
        eval_every=1, eval_prompts=3, eval_generations=1, dtype="float32",
    )  # fmt: skip
    driver = Driver(Job(scenario, str(folder / f"{name}.rlplay"), device, threads=1), sink)
    driver.load(lambda what, fraction: None)
    in_float64(driver)
    driver.advance("update", UPDATES, lambda: False)
    rank = os.environ.get("RANK", "0")
    weights = {key: value.detach().double().cpu() for key, value in driver._state.parameters.items()}
    torch.save(weights, folder / f"{name}-{rank}.pt")
    driver.close()


if __name__ == "__main__":
    if in_several():
        ranks.join(os.environ, "cpu")
    score_by_opinion(pytest.MonkeyPatch())
    follow([str(Path(sys.argv[2]) / "rewards.py")])
    for each in sys.argv[3:]:
        trained(Path(sys.argv[1]), Path(sys.argv[2]), each)

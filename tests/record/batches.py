"""Random updates of a trainer, and their recording by one process or by several that share them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rlplay.record import Recorder
from rlplay.record.format import part
from rlplay.trace.records import Array

SETTINGS = {"algorithm": "grpo", "epsilon": 0.2, "learning_rate": 1e-4, "num_minibatches": 1}
WORDS = ("a", " b", "é", "東", "[bold]", "\n", "")


@dataclass(frozen=True)
class Answer:
    """One answer with all that is recorded of it; arrays are over its tokens."""

    group: int
    tokens: dict[str, Array]
    texts: list[str]
    rewards: dict[str, float]
    truncated: int
    steps: list[dict[str, Array]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.texts)


def answers(seed: int, groups: int, size: int, steps: int) -> list[Answer]:
    """`size` answers to each of so many prompts; some have no token at all."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(groups * size):
        length = int(rng.integers(0, 5))
        old = -rng.exponential(size=length)
        tokens = {
            "token_ids": rng.integers(0, 99, length), "mask": rng.integers(0, 2, length), "old_logprobs": old,
            "entropy": rng.exponential(size=length), "ref_logprobs": -rng.exponential(size=length),
            "sampling_logprobs": old + 0.01, "advantages": np.full(length, rng.normal()),
        }  # fmt: skip
        rewards = {"correct": float(rng.integers(0, 2)), "short": float("nan") if rng.random() < 0.2 else rng.normal()}
        taken = [
            {"logprobs": old + 0.2 * rng.normal(size=length), "dloss_dlogp": rng.normal(size=length)}
            for _ in range(steps)
        ]
        texts = rng.choice(WORDS, length).tolist()
        made.append(Answer(number // size, tokens, texts, rewards, int(rng.integers(0, 2)), taken))
    return made


def _flat(found: list[Answer], name: str, step: int | None = None) -> Array:
    each = [a.tokens[name] if step is None else a.steps[step][name] for a in found]
    return np.concatenate(each) if each else np.zeros(0)


def write(recorder: Recorder, update: int, every: list[Answer], mine: range) -> None:
    """What the process that has the answers `mine` of `every` writes of an update, its end included."""
    found = [every[i] for i in mine]
    keys = sorted({answer.group for answer in found})
    total = np.array([np.nansum([*answer.rewards.values()]) for answer in every])
    groups = np.array([answer.group for answer in every])
    recorder.rollouts(
        update,
        prompts=[f"question {key}" for key in keys],
        columns=[{"answer": key} for key in keys],
        group=[keys.index(answer.group) for answer in found],
        group_ids=keys,
        group_mean=[total[groups == key].mean() for key in keys],
        group_std=[total[groups == key].std() for key in keys],
        prompt_ids=[key + i for key in keys for i in range(key % 3)],
        prompt_lengths=[key % 3 for key in keys],
        prompt_texts=["p" for key in keys for _ in range(key % 3)],
        lengths=[len(answer) for answer in found],
        texts=[text for answer in found for text in answer.texts],
        temperature=0.7,
        truncated=[answer.truncated for answer in found],
        rewards={name: [answer.rewards[name] for answer in found] for name in ("correct", "short")},
        reward_weights={"short": 0.5},
        **{name: _flat(found, name) for name in every[0].tokens},
    )
    for step in range(len(every[0].steps)):
        rows = range(len(found))
        recorder.step(
            update, step, len(every[0].steps), rows=rows, logprobs=_flat(found, "logprobs", step),
            dloss_dlogp=_flat(found, "dloss_dlogp", step), tokens=sum(map(len, found)), metrics={"loss": 0.25},
        )  # fmt: skip
    recorder.end(update, {"reward": float(np.mean(total))}, 1.5)


def begun(folder: Path, rank: int = 0, ranks: int = 1, **options: Any) -> Recorder:
    """A recorder of a process that has begun."""
    recorder = Recorder(folder, **{"completions": 1000, **options}, rank=rank, ranks=ranks)
    recorder.begin("Test 1.0 Trainer", SETTINGS, title="A run", run_id="run", seed=3)
    return recorder


def record(folder: Path, updates: list[list[Answer]], cuts: list[int]) -> None:
    """Record the updates by as many processes as there are pieces between `cuts` of the answers."""
    bounds = [0, *cuts, len(updates[0])]
    for rank, (first, last) in enumerate(pairwise(bounds)):
        with begun(folder, rank, len(bounds) - 1) as recorder:
            for number, every in enumerate(updates, 1):
                write(recorder, number, every, range(first, last))


def frames_of(folder: Path, rank: int = 0) -> bytes:
    """The bytes that a process wrote."""
    return part(folder, rank).read_bytes()

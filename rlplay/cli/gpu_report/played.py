"""A few updates of the bundled model, the same on every device, for the checks to look at."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlplay.engine.batch import Prompts
from rlplay.engine.loop import train
from rlplay.engine.model import LanguageModel
from rlplay.engine.prepare import prepare
from rlplay.engine.state import State
from rlplay.scenario.schema import Job, Scenario
from rlplay.tasks import load_task
from rlplay.trace.records import Finished, Sampled
from rlplay.trusted import follow

TASK = "word_problems"
PROMPTS, ANSWERS, LENGTH, BETA = 8, 8, 32, 0.04
LEARNING_RATE = 1e-5


def uneven(completion_ids: list[list[int]], **_columns: object) -> list[float]:
    """A reward that differs between answers, so that every group has a gradient."""
    return [sum(ids) % 7 / 7 for ids in completion_ids]


def scenario(folder: Path, **changes: Any) -> Scenario:
    """Eight prompts with eight answers each and a KL to the reference, by GRPO; its reward is a file in `folder`."""
    reward = folder / "uneven.py"
    reward.write_text(inspect.getsource(uneven), encoding="utf-8")
    follow([str(reward)])
    settings = {"algorithm": "grpo", "num_prompts": PROMPTS, "num_generations": ANSWERS, "beta": BETA,
                "max_completion_length": LENGTH, "learning_rate": LEARNING_RATE}  # fmt: skip
    return Scenario(
        name="gpu-report", title="GPU report", question="", task=TASK, reward=[f"{reward}:uneven"], eval_every=0,
        settings=settings, **changes,
    )  # fmt: skip


@dataclass
class Played:
    """A run so far: its state, what the log says, and of every update the answers, the numbers and the seconds."""

    state: State
    remarks: list[str]
    sampled: list[Sampled] = field(default_factory=list)
    finished: list[Finished] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def weights(self) -> dict[str, Tensor]:
        """The policy's, by name, in float32 on the CPU."""
        return {name: p.detach().float().cpu() for name, p in self.state.lm.policy.named_parameters()}


def play(
    device: torch.device, folder: Path, updates: int, before: Callable[[State], object] = id, **changes: Any
) -> Played:
    """Train so many updates of `scenario`; `before` gets the state that they begin with."""
    state, plan, _ = prepare(
        Job(scenario(folder, **changes), str(folder / "none.rlplay"), str(device)), lambda *_: None
    )
    played = Played(state, state.lm.remarks)
    before(state)
    began = time.perf_counter()
    for moment in train(state, plan):
        if isinstance(moment, Sampled):
            played.sampled.append(moment)
        elif isinstance(moment, Finished):
            wait(device)
            played.finished.append(moment)
            played.seconds.append(time.perf_counter() - began)
            if len(played.finished) == updates:
                break
            began = time.perf_counter()
    return played


def prompts(lm: LanguageModel, count: int) -> Prompts:
    """The first `count` prompts of the task."""
    return Prompts.of(lm, load_task(TASK).train[:count])


def seconds_of(way: Callable[[], object], device: torch.device) -> float:
    """How long it takes until the device has done it."""
    wait(device)
    began = time.perf_counter()
    way()
    wait(device)
    return time.perf_counter() - began


def wait(device: torch.device) -> None:
    """Until the device has done its work."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)

"""Small runs on the stand-in and on the CPU, and what they must have in common."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import torch
from accelerate import PartialState
from transformers import AutoTokenizer

from rlplay.engine.driver import Driver
from rlplay.paths import POCKET_PATH
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.records import AnyRecord, Notice, Sampled
from rlplay.trusted import follow
from tests.engine import architectures
from tests.engine.conftest import REWARD, SMALL

GPU = "cuda"
EXACT = {"full_determinism": True}
"""Of a scenario whose numbers are the same bit for bit each time, which a GPU's are not by themselves."""
Kind = TypeVar("Kind")


@cache
def folder() -> Path:
    """Where models and runs lie, for as long as this process is there."""
    made = tempfile.TemporaryDirectory(prefix="rlplay-gpu-")
    _kept.append(made)
    (Path(made.name) / "rewards.py").write_text(REWARD)
    return Path(made.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


@cache
def micro_model(architecture: str = "llama") -> Path:
    """A folder with two layers and random weights, which ends about every ninth answer at each token."""
    tokenizer = AutoTokenizer.from_pretrained(POCKET_PATH)
    ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("eos", "pad", "bos")}
    model = architectures.make(architecture, len(tokenizer), **ids)
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, *range(5, len(tokenizer), 9)]
    found = folder() / architecture
    model.save_pretrained(found)
    tokenizer.save_pretrained(found)
    return found


@dataclass
class Run:
    """A run that is loaded: `go` on with it, then look at its records and weights."""

    job: Job
    records: list[AnyRecord] = field(default_factory=list)
    driver: Driver = field(init=False)

    def __post_init__(self) -> None:
        self.driver = Driver(self.job, self.records.append)
        self.driver.load(lambda what, fraction: None)
        self.mark()

    def mark(self) -> Run:
        """Weights count as moved from here on; returns itself."""
        self.before = self.weights()
        return self

    def go(self, count: int = 1, until: Any = "update") -> Run:
        """Go on; returns itself."""
        self.driver.advance(until, count, lambda: False)
        return self

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The records of a kind."""
        return [record for record in self.records if isinstance(record, kind)]

    def said(self) -> list[str]:
        """The remarks and warnings."""
        return [record.text for record in self.of(Notice)]

    def weights(self) -> dict[str, torch.Tensor]:
        """A copy of what is trained, on the CPU."""
        return {name: value.detach().cpu().clone() for name, value in self.driver._state.parameters.items()}


def run(
    device: str,
    *,
    reward: str = "uneven",
    scenario: dict[str, Any] | None = None,
    **settings: Any,
) -> Run:
    """A run of the micro model on `device`; `scenario` are keys of a scenario, others are settings."""
    follow([str(folder() / "rewards.py")])
    plain: dict[str, Any] = {
        "name": "micro", "title": "Micro", "question": "", "task": "arithmetic", "model": str(micro_model()),
        "reward": [f"{folder() / 'rewards.py'}:{reward}"] if reward else [], "max_updates": 9,
        "dtype": "float32",  # as on a CPU
    }  # fmt: skip
    played = Scenario(**plain | {"settings": SMALL | settings} | (scenario or {}))
    path = folder() / f"{len(_kept)}-{device.replace(':', '')}.rlplay"
    _kept.append(tempfile.TemporaryDirectory(dir=folder()))
    PartialState._reset_state()  # a process of the engine's has one device, this one has all
    return Run(Job(played, str(path), device=device, threads=1))


def resumed(before: Run) -> Run:
    """The run of a closed driver's file, loaded anew, on the same device."""
    PartialState._reset_state()
    return Run(msgspec.structs.replace(before.job, resume=True))


def both(play: Callable[[Run], object], **given: Any) -> tuple[Run, Run]:
    """The same run on the stand-in and on the CPU, once `play` has gone on with each."""
    runs = run(GPU, **given), run("cpu", **given)
    for each in runs:
        play(each)
        each.driver.close()
    return runs


def same(gpu: Run, cpu: Run, logprobs: float = 1e-5, step: float = 1e-4, learns: bool = True) -> None:
    """Tokens are equal, log-probabilities and weights almost: `step` is relative to the longest way of a weight.

    One weight in a hundred may be further off: Adam makes a whole step also of a gradient that is all rounding.
    """
    sampled, expected = _last(gpu, Sampled), _last(cpu, Sampled)
    assert sampled.keys() == expected.keys()
    for update, other in expected.items():
        np.testing.assert_array_equal(sampled[update].token_ids, other.token_ids)
        np.testing.assert_allclose(sampled[update].old_logprobs, other.old_logprobs, rtol=0, atol=logprobs)
    after = _flat(cpu.weights())
    moved, off = after - _flat(cpu.before), (_flat(gpu.weights()) - after).abs()
    assert bool(moved.any()) == learns
    assert off.quantile(0.99) <= step * moved.abs().max()
    assert off.norm() <= 10 * step * moved.norm()


def _flat(weights: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([weights[name].double().flatten() for name in sorted(weights)])


def _last(played: Run, kind: type[Kind]) -> dict[int, Kind]:
    """The record of each update that counts: an update may have begun several times."""
    return {record.update: record for record in played.of(kind)}

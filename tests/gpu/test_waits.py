"""How often the host waits for a GPU in an update, and what it launches: at most so often, whoever changes it.

Where the host waits, the GPU runs out of work. On a model as small as the bundled one launches take the time, not
kernels. To see where a number comes from, `print(found)` and run the test with `-s`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import msgspec
import pytest

from rlplay.scenario.loader import load
from rlplay.trace.records import Sampled, Stepped
from tests.engine.conftest import score_by_opinion
from tests.gpu.counting import Found, counted
from tests.gpu.play import GPU, run

pytestmark = pytest.mark.stand_in

EIGHTH = 8
"""Positions of sampling from one wait to the next."""


class Most(NamedTuple):
    """Limits of a phase."""

    waits: int
    kernels: int


LIMITS = {
    "score": Most(waits=0, kernels=0),
    "credit": Most(waits=2, kernels=260),
    "update": Most(waits=2, kernels=760),
    "after": Most(waits=4, kernels=280),
}
"""Of an update by GRPO: 32 answers of the bundled model, one optimizer step, all that is looked at on the screen."""
BESIDE_POSITIONS = Most(waits=7, kernels=420)
"""Of sampling: reading the prompts, and copies at its beginning and end."""


EACH_STEP = Most(waits=3, kernels=850)
"""Of each optimizer step, where an update has several, or learns from pairs."""


@dataclass
class Update:
    """What each phase of an update does, and how many optimizer steps it takes."""

    phases: dict[str, Found] = field(default_factory=dict)
    steps: int = 0


@cache
def update(length: int, algorithm: str = "grpo", reward: str = "uneven") -> Update:
    """Of a second update; answers have at most `length` tokens."""
    sizes = {"num_prompts": 4, "num_generations": 8, "max_completion_length": length}
    played = run(GPU, scenario={"model": "pocket"}, reward=reward, algorithm=algorithm, **sizes).go(1)
    played.driver._look_again = float("inf")  # whether the screen looks in between is a matter of time
    found, before = Update(), len(played.of(Stepped))
    while played.driver.status().update == 1:
        with counted() as counts:
            phase = played.driver.status().phase
            played.go(1, "phase")
        found.phases[phase] = counts
        print(phase, counts)
    found.steps = len(played.of(Stepped)) - before
    played.driver.close()
    return found


@pytest.mark.parametrize("phase", LIMITS)
def test_a_phase_waits_and_launches_at_most(phase: str) -> None:
    found, most = update(24).phases[phase], LIMITS[phase]
    assert found.waits.total() <= most.waits, found
    assert found.kernels.total() <= most.kernels, found


@pytest.mark.parametrize(("algorithm", "steps"), [("ppo", 8), ("dpo", 1)])
def test_an_optimizer_step_waits_and_launches_at_most(
    algorithm: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    score_by_opinion(monkeypatch)
    made = update(8, algorithm, "" if algorithm == "dpo" else "uneven")
    found = made.phases["update"]
    assert made.steps == steps
    assert found.waits.total() <= EACH_STEP.waits * steps, found
    assert found.kernels.total() <= EACH_STEP.kernels * steps, found


@pytest.mark.parametrize("length", [8, 24])
def test_sampling_waits_at_every_eighth_position_at_most(length: int) -> None:
    found = update(length).phases["sample"]
    assert found.replays == length - 1
    assert found.waits.total() <= BESIDE_POSITIONS.waits + (length - 1) // EIGHTH, found
    assert found.kernels.total() <= BESIDE_POSITIONS.kernels, found


def test_a_position_is_one_graph() -> None:
    """Between two positions nothing is launched, but at every eighth what Python then reads: whether any goes on."""
    short, long = (update(length).phases["sample"].kernels for length in (8, 24))
    looks = 24 // EIGHTH - 8 // EIGHTH
    assert long.total() - short.total() <= 2 * looks, long - short


@pytest.mark.parametrize("name", ["guess", "calculator"])
def test_turns_of_an_environment_wait_at_most_thrice_a_position(name: str) -> None:
    """For who has ended, what they said, and who goes on, however many completions speak."""
    lesson = msgspec.structs.asdict(load(name)) | {"eval_every": 0, "dtype": "float32"}
    played = run(GPU, scenario=lesson)
    played.driver._look_again = float("inf")
    with counted() as found:
        played.go(1, "phase")
    (sampled,) = played.of(Sampled)
    assert len(sampled.group) > 3
    assert found.waits.total() <= BESIDE_POSITIONS.waits + 3 * sampled.position, found
    played.driver.close()

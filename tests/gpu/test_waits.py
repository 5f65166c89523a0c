"""How often the host waits for a GPU in an update, and what it launches: at most so often, whoever changes it.

Where the host waits, the GPU runs out of work. On a model as small as the bundled one launches take the time, not
kernels. To see where a number comes from, `print(found)` and run the test with `-s`.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pytest

from rlplay.trace.records import Stepped
from tests.gpu.counting import Found, counted
from tests.gpu.play import GPU, run

EIGHTH = 8
"""Positions of sampling from one wait to the next."""


class Most(NamedTuple):
    """Limits of a phase."""

    waits: int
    kernels: int


LIMITS = {
    "score": Most(waits=0, kernels=0),
    "credit": Most(waits=2, kernels=300),
    "update": Most(waits=2, kernels=900),
    "after": Most(waits=5, kernels=320),
}
"""Of an update by GRPO: 32 answers of the bundled model, one optimizer step, all that is looked at on the screen."""
BESIDE_POSITIONS = Most(waits=8, kernels=420)
"""Of sampling: reading the prompts, and copies at its beginning and end."""


@cache
def update(length: int) -> dict[str, Found]:
    """What each phase of a second update does; answers have at most `length` tokens."""
    played = run(GPU, scenario={"model": "pocket"}, num_prompts=4, num_generations=8, max_completion_length=length).go(
        1
    )
    played.driver._look_again = float("inf")  # whether the screen looks in between is a matter of time
    found, steps = {}, len(played.of(Stepped))
    for _ in range(5):
        phase = played.driver.status().phase
        with counted() as found[phase]:
            played.go(1, "phase")
        print(phase, found[phase])
    assert len(played.of(Stepped)) == steps + 1
    played.driver.close()
    return found


@pytest.mark.parametrize("phase", LIMITS)
def test_a_phase_waits_and_launches_at_most(phase: str) -> None:
    found, most = update(24)[phase], LIMITS[phase]
    assert found.waits.total() <= most.waits, found
    assert found.kernels.total() <= most.kernels, found


@pytest.mark.parametrize("length", [8, 24])
def test_sampling_waits_at_every_eighth_position_and_launches_graphs_alone(length: int) -> None:
    found = update(length)["sample"]
    assert found.replays == length - 1
    assert found.waits.total() <= BESIDE_POSITIONS.waits + (length - 1) // EIGHTH, found
    assert found.kernels.total() <= BESIDE_POSITIONS.kernels, found

"""A target's value is the sum of the log-probabilities that sampling has recorded."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from rlplay.engine.driver import Driver
from rlplay.engine.target_value import check_target, target_value
from rlplay.trace.records import AnyRecord, Sampled
from rlplay.trace.teachers import Target
from tests.worlds.value_run import SMALL, Run

Start = Callable[..., tuple[Driver, list[AnyRecord]]]


def target_of(sampled: Sampled, row: int, places: list[int]) -> Target:
    """The tokens `places` of completion `row`."""
    group = int(sampled.group[row])
    prompt = sampled.prompt_ids[sampled.prompt_offsets[group] : sampled.prompt_offsets[group + 1]]
    answer = sampled.token_ids[sampled.offsets[row] : sampled.offsets[row + 1]]
    return Target(prompt.tolist(), answer.tolist(), places)


def test_it_is_what_sampling_recorded(start: Start) -> None:
    driver, records = start(temperature=0.7)
    driver.advance("phase", 1, lambda: False)
    compare(driver, records)


def test_it_is_in_a_world_too(tmp_path: Path) -> None:
    run = Run(tmp_path, SMALL, settings={"algorithm": "grpo", "temperature": 0.7})
    run.driver.advance("phase", 1, lambda: False)
    compare(run.driver, run.records)


def compare(driver: Driver, records: list[AnyRecord]) -> None:
    sampled = next(each for each in records if isinstance(each, Sampled) and each.done)
    for row, (first, end) in enumerate(pairwise(sampled.offsets)):
        places = np.flatnonzero(sampled.mask[first:end]).tolist()
        own = sampled.old_logprobs[first:end].astype(np.float64)[places]
        for some, expected in ((places, own.sum()), (places[-1:], own[-1])):
            target = target_of(sampled, row, some)
            check_target(target, driver._state.lm)
            value = target_value(target, driver._state.lm, sampled.temperature)
            assert value.item() == pytest.approx(expected, abs=1e-4)
            assert value.requires_grad


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (Target([], [1], [0]), "prompt has no tokens"),
        (Target([1], [1], []), "places"),
        (Target([1], [1, 2], [1, 0]), "places"),
        (Target([1], [1, 2], [2]), "places"),
        (Target([1], [1 << 20], [0]), "vocabulary"),
        (Target([1], [1] * 4000, [3999]), "more than the"),
    ],
)
def test_what_the_model_cannot_tell_is_refused(start: Start, target: Target, why: str) -> None:
    driver, _ = start()
    with pytest.raises(ValueError, match=why):
        check_target(target, driver._state.lm)

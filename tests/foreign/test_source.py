"""Settings of another trainer as rlplay's: those that it does not know, and those not on record, left out."""

from __future__ import annotations

from typing import Any

import pytest

from rlplay.algorithms.catalogue import AXES
from rlplay.foreign.foreign_run import known_settings


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"algorithm": "nobody", "beta": 0.1}, {"beta": 0.1}),
        ({"beta": "a lot", "num_generations": 4}, {"num_generations": 4}),
        ({"epsilon": 7, "epsilon_high": 0.3}, {"epsilon_high": 0.3}),
        ({"warmup_ratio": 0.1, "bf16": True}, {}),
        ({"reward_weights": {"a": 1, "b": 0.5}}, {"reward_weights": {"a": 1.0, "b": 0.5}}),
        ({"importance_sampling_level": "nowhere", "aggregation": "token_mean"}, {"aggregation": "token_mean"}),
        ({"algorithm": None, "loss_type": 3}, {}),
        ({"algorithm": "mine.yaml"}, {}),
        ({"surrogate": "mine.py:surrogate"}, {}),
    ],
)
def test_only_what_is_known_and_on_record_is_a_setting(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    assert known_settings(wanted) == {"algorithm": "", **found}


def test_a_known_algorithm_brings_its_axes() -> None:
    known = known_settings({"algorithm": "rloo", "beta": 0.1})
    assert set(known) == {"algorithm", "beta", *AXES}
    assert known["algorithm"] == "rloo"
    assert known["importance_sampling_level"] == "sequence_sum"

"""Settings of another trainer as rlplay's: complete, and those that it does not know left out."""

from __future__ import annotations

from typing import Any

import pytest

from rlplay.algorithms.apply import resolve
from rlplay.foreign.source import known_settings


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"algorithm": "rloo", "beta": 0.1}, {"algorithm": "rloo", "importance_sampling_level": "sequence_sum"}),
        ({"algorithm": "nobody", "beta": 0.1}, {"algorithm": "grpo", "beta": 0.1}),
        ({"beta": "a lot", "num_generations": 4}, {"beta": 0.0, "num_generations": 4}),
        ({"epsilon": 7, "epsilon_high": 0.3}, {"epsilon": 0.2, "epsilon_high": 0.3}),
        ({"warmup_ratio": 0.1, "bf16": True}, {}),
        ({"reward_weights": {"a": 1, "b": 0.5}}, {"reward_weights": {"a": 1.0, "b": 0.5}}),
        ({"importance_sampling_level": "sequence", "aggregation": "token_mean"}, {"aggregation": "token_mean"}),
        ({"algorithm": None, "loss_type": 3}, {"algorithm": "grpo", "loss_type": "policy_gradient"}),
        ({"algorithm": "mine.yaml"}, {"algorithm": "grpo"}),
        ({"surrogate": "mine.py:surrogate"}, {"surrogate": "ppo"}),
    ],
)
def test_known_settings_are_complete_and_the_others_left_out(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    known = known_settings(wanted)
    assert set(known) == set(resolve({}).__struct_fields__)
    assert {name: known[name] for name in found} == found
    assert not set(known) & {"warmup_ratio", "bf16"}

"""In which numbers the weights of a scenario's model are kept."""

from __future__ import annotations

import msgspec

from rlplay.scenario.schema import Scenario

AUTO, FLOAT32, BFLOAT16 = "auto", "float32", "bfloat16"
DTYPES = AUTO, FLOAT32, BFLOAT16
"""What `dtype` takes; the default first."""


def always_float32(scenario: Scenario) -> bool:
    """Whether `auto` is float32 on every device: for the bundled model, and for a world's policy."""
    return scenario.model == "pocket" or scenario.world is not None


def as_recorded(scenario: Scenario, dtype: str) -> Scenario:
    """The scenario of a run whose weights were of this `dtype`, so that it goes on in it on any machine."""
    if always_float32(scenario):
        return msgspec.structs.replace(scenario, dtype=AUTO) if scenario.dtype == FLOAT32 else scenario
    known = scenario.dtype == AUTO and dtype in DTYPES
    return msgspec.structs.replace(scenario, dtype=dtype) if known else scenario

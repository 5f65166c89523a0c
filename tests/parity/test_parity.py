"""Every case of the table keeps its limits: 1e-5 in float32, 1e-7 in float64."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.trl_verl import loss_type, trainer
from tests.parity import ours, policy_cases, preference_cases
from tests.parity.case import LIMITS, SEEDS, Case
from tests.parity.table import CASES

WITHOUT_TRL = pytest.mark.skipif(
    importlib.util.find_spec("trl") is None, reason='TRL is not installed: pip install -e ".[parity]"'
)


PARAMETERS = [
    pytest.param(c, dtype, id=f"{c.name}-{dtype}", marks=[WITHOUT_TRL] if c.against.startswith("TRL") else [])
    for c in CASES
    for dtype in c.dtypes
]


@WITHOUT_TRL
def test_a_wrong_setting_is_found_out() -> None:
    found = policy_cases.compare(
        "grpo", {"algorithm": "grpo", "epsilon": 0.25}, {"loss_type": "grpo"}, torch.float64, 0
    )
    assert float((found["loss"][0] - found["loss"][1]).abs()) > 1e-3


@pytest.mark.parametrize(("case", "dtype"), PARAMETERS)
def test_the_difference_is_within_its_limit(case: Case, dtype: torch.dtype) -> None:
    for seed in SEEDS:
        for quantity, difference in case.differences(dtype, seed).items():
            assert difference <= LIMITS[dtype], f"{quantity}, seed {seed}: {difference:.2g}"


def test_the_names_that_rlplay_shows_are_those_compared_with() -> None:
    for _, kind, mine, theirs in policy_cases.ROWS:
        shown = loss_type(resolve(ours.SIZES | mine))
        if kind == "grpo":
            same = {"dapo", "bnpo"} if theirs["loss_type"] == "dapo" else {theirs["loss_type"]}
            assert shown in same
        else:
            assert shown is None
            assert trainer(resolve(ours.SIZES | mine)) == {"rloo": "RLOOTrainer", "gmpo": "GMPOTrainer"}[kind]
    for _, function, mine, theirs in preference_cases.ROWS:
        named = theirs.get("loss_type")
        wanted = {
            "dpo": f"DPOTrainer with loss_type={'+'.join(named) if isinstance(named, list) else named}",
            "cpo": f"CPOTrainer with loss_type={named}",
            "kto": f"KTOTrainer with loss_type={named or 'kto'}",
            "orpo": None,
        }[function]
        assert trainer(resolve(mine)) == wanted

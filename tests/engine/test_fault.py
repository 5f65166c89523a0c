"""Which tokens TRPO's search counts, and when numbers that are not finite are the fault of the user's surrogate."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
import torch

from rlplay.algorithms.settings import Settings
from rlplay.engine import optimize
from rlplay.engine.optimize import TrainedMinibatch, own_at_fault

TOKENS = torch.tensor([[0.5, 2.0, 3.0]])


def seen(loss: float = 1.0, **fields: Any) -> TrainedMinibatch:
    given = {"logprobs": TOKENS, "ratio": TOKENS, "dloss_dlogp": TOKENS * math.nan} | fields
    return TrainedMinibatch(torch.tensor([0]), metrics={"loss": loss}, **given)


def test_tokens_that_were_left_out_have_no_weight() -> None:
    found = optimize._kept(seen(weights=TOKENS, left_out=torch.tensor([[0, 1, 0]])))
    assert found.tolist() == [[0.5, 0.0, 3.0]]


def test_a_surrogate_of_the_users_is_at_fault_if_all_else_is_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimize, "is_own", lambda name: name == "mine")
    own = msgspec.structs.replace(Settings(), surrogate="mine")
    broken = TOKENS.clone()
    broken[0, 1] = math.inf
    assert own_at_fault(seen(), own)
    assert own_at_fault(seen(kl=TOKENS, dkl_dlogp=TOKENS), own)
    assert not own_at_fault(seen(), Settings())
    assert not own_at_fault(seen(), msgspec.structs.replace(own, loss_type="kto"))
    assert not own_at_fault(seen(loss=math.nan), own)
    for name in ("logprobs", "ratio", "kl", "dkl_dlogp"):
        assert not own_at_fault(seen(**{name: broken}), own), name

"""Policy gradients against TRL's trainers: each row one algorithm, as both sides spell it."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from tests.parity import ours
from tests.parity.case import Case, Pairs
from tests.parity.fixed import fixed

Given = dict[str, Any]

ROWS: list[tuple[str, str, Given, Given]] = [
    ("GRPO", "grpo", {"algorithm": "grpo"}, {"loss_type": "grpo"}),
    ("GRPO", "grpo", {"algorithm": "grpo", "kl_placement": "loss", "beta": 0.1}, {"loss_type": "grpo", "beta": 0.1}),
    ("GRPO", "grpo", {"algorithm": "grpo", "beta": 0.1, "use_bias_correction_kl": False},
     {"loss_type": "grpo", "beta": 0.1, "use_bias_correction_kl": False}),
    ("GRPO, batch scale", "grpo", {"algorithm": "grpo", "scale_rewards": "batch"},
     {"loss_type": "grpo", "scale_rewards": "batch"}),
    ("Dr. GRPO", "grpo", {"algorithm": "dr-grpo"}, {"loss_type": "dr_grpo", "scale_rewards": "none"}),
    ("DAPO", "grpo", {"algorithm": "grpo", "aggregation": "token_mean", "epsilon_high": 0.28},
     {"loss_type": "dapo", "epsilon_high": 0.28}),
]  # fmt: skip
"""Row of the table, TRL's trainer, rlplay's settings, fields of TRL's config."""


def compare(kind: str, mine: Given, theirs: Given, dtype: torch.dtype, seed: int) -> Pairs:
    """Advantages, loss, gradient and every metric that both sides log."""
    from tests.parity import trl_policy

    batch = fixed(dtype, seed)
    own, other = ours.run(batch, **mine), trl_policy.run(kind, batch, **theirs)
    other["advantages"] = other["advantages"][:, None] * batch.mask
    missing = own.keys() - other.keys()
    assert not missing, f"TRL gives no {missing}"
    return {name: (value, other[name]) for name, value in own.items()}


def cases() -> list[Case]:
    """All of them."""
    return [
        Case(row, "TRL 1.16.0", f"{row} {theirs}", partial(compare, kind, mine, theirs))
        for row, kind, mine, theirs in ROWS
    ]

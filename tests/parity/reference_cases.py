"""Every policy gradient against the formulas written a second time, token by token (`tests/engine/reference.py`)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from msgspec.structs import asdict
from torch import Tensor

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.catalogue import PRESETS
from tests.engine import reference
from tests.engine.conftest import FROM_REWARDS
from tests.parity import ours
from tests.parity.case import Case, Pairs
from tests.parity.fixed import GENERATIONS, fixed


def compare(mine: dict[str, Any], dtype: torch.dtype, seed: int) -> Pairs:
    """Advantages, loss, its derivative by each log-probability, and where a clip has taken the gradient away."""
    batch = fixed(dtype, seed)
    own, s = ours.run(batch, **mine), asdict(resolve(ours.SIZES | mine))
    lengths, group = batch.lengths.tolist(), batch.group.numpy()

    def rows(values: Tensor) -> reference.Rows:
        return [row[:n].double().numpy() for row, n in zip(values, lengths, strict=True)]

    now, old, ref, values = (rows(tensor) for tensor in (batch.logprobs, batch.old, batch.ref, batch.values))
    parts = {f"reward{i}": part.double().numpy() for i, part in enumerate(batch.rewards.T)}
    rewards = reference.combined(sum(parts.values()), parts, dict.fromkeys(parts, 1.0), group, s)
    steps, ends = rows(batch.stream * batch.ends), rows(batch.ends.to(dtype))
    outcomes = rewards if s["reward_stream"] == "outcome" else rewards - [row.sum() for row in steps]
    stream = reference.token_rewards(outcomes, steps, ends, old, ref, group, s)
    given = values if s["returns"] in ("gae", "vine") or s["baseline"] == "value" else None
    last = [sorted({*np.flatnonzero(row), len(row) - 1}) for row in ends]
    greedy = batch.greedy[::GENERATIONS].double().numpy()
    advantages = reference.advantages(stream, given, greedy, group, s, last)
    keep, held = reference.by_covariance(now, old, advantages, s, [0, 1, 0])
    loss, pulls, _, states = reference.loss_and_pull(now, old, ref, advantages, s, None, keep, None, held)
    other = {"advantages": advantages, "dloss_dlogp": pulls, "clip_state": states}
    flat = {name: torch.from_numpy(np.concatenate(value)) for name, value in other.items()}
    pairs = {name: (own[name][batch.mask], value) for name, value in flat.items()}
    return pairs | {"loss": (own["loss"], torch.tensor(loss, dtype=torch.double))}


def cases() -> list[Case]:
    """Every preset as it is; where its KL is not in the reward, also with one in the loss."""
    found = []
    for name in FROM_REWARDS:
        preset = PRESETS[name]
        given = [{"algorithm": name}]
        if preset.axes["kl_placement"] not in ("reward", "constraint"):
            given.append({"algorithm": name, "kl_placement": "loss", "beta": 0.1})
        found += [
            Case(preset.title, "float64 reference", f"reference {mine}", partial(compare, mine)) for mine in given
        ]
    for mine in ({"algorithm": "reinforce", "reward_stream": "process", "gamma": 0.9},
                 {"algorithm": "reinforce", "reward_stream": "shaping", "gamma": 0.9}):  # fmt: skip
        title = f"REINFORCE, {mine['reward_stream']} rewards"
        found.append(Case(title, "float64 reference", f"reference {mine}", partial(compare, mine)))
    return found

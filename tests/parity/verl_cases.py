"""rlplay's functions against what `record_verl.py` recorded of verl's, on the recorded inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlplay.engine.axes import kl, returns, scales
from rlplay.engine.credit import advantages
from rlplay.engine.objective import value_loss
from rlplay.scenario.presets import resolve
from tests.parity.case import Case, Pairs
from tests.parity.fixed import GENERATIONS
from tests.parity.record_verl import CLIP_VALUE, GAMMA, INPUTS, LAM, RECORDED


@cache
def recorded() -> dict[str, Any]:
    """The recorded arrays by name."""
    with np.load(RECORDED) as file:
        return dict(file)


def given(dtype: torch.dtype, seed: int) -> Any:
    """The recorded inputs of `seed`, in `dtype`."""
    tensors = {name: torch.from_numpy(recorded()[f"{seed}/{name}"]) for name in INPUTS}
    return SimpleNamespace(**{n: t.to(dtype) if t.is_floating_point() else t for n, t in tensors.items()})


def gae(b: Any) -> dict[str, Tensor]:
    """verl whitens inside; its mask has holes where an environment spoke."""
    raw = returns.gae(b.stream, b.values, b.holes, GAMMA, LAM)
    return {"gae/advantages": scales.whiten(raw, b.holes), "gae/returns": (raw + b.values) * b.holes}


def credited(name: str, b: Any, **settings: Any) -> dict[str, Tensor]:
    """Advantages of outcome rewards, as the settings combine the axes."""
    stream = torch.zeros_like(b.stream)
    stream[torch.arange(len(stream)), b.mask.sum(-1) - 1] = b.rewards.sum(-1)
    _, _, result = advantages(stream, None, b.group, b.mask, resolve({"num_generations": GENERATIONS} | settings))
    return {f"{name}/advantages": result}


def reinforce_plus_plus(b: Any) -> dict[str, Tensor]:
    """Discounted rewards to go, whitened over the tokens."""
    to_go = returns.to_go(b.stream, b.holes, GAMMA)
    return {
        "reinforce_plus_plus/returns": to_go,
        "reinforce_plus_plus/advantages": scales.whiten(to_go, b.holes),
    }


def estimator(name: str, theirs: str, b: Any) -> dict[str, Tensor]:
    """Value and gradient of a KL estimator."""
    now = b.logprobs.clone().requires_grad_()
    value = kl.estimate(name, now, b.ref)
    (gradient,) = torch.autograd.grad(value.sum(), now)
    return {f"{theirs}/kl": value.detach(), f"{theirs}/gradient": gradient}


def values(b: Any) -> dict[str, Tensor]:
    """The clipped value loss."""
    now = b.values_now.clone().requires_grad_()
    loss = value_loss(now, b.values, b.stream, b.holes, CLIP_VALUE, int(b.holes.sum()))
    (gradient,) = torch.autograd.grad(loss, now)
    return {"value/loss": loss.detach(), "value/gradient": gradient}


Own = Callable[[Any], dict[str, Tensor]]

ROWS: list[tuple[str, Own]] = [
    ("GAE, whitened", gae),
    ("REINFORCE++ advantages", reinforce_plus_plus),
    ("Dr. GRPO advantages", partial(credited, "dr_grpo", algorithm="dr-grpo")),
    ("Value loss, clipped", values),
    ("KL k1 (kl)", partial(estimator, "k1", "kl")),
    ("KL k2 (mse)", partial(estimator, "k2", "mse")),
    ("KL k3 (low_var_kl)", partial(estimator, "k3", "low_var_kl")),
]


def compare(own: Own, dtype: torch.dtype, seed: int) -> Pairs:
    """Every number that rlplay's side gives, and the recorded one of the same name."""
    prefix = f"{seed}/{dtype}/".replace("torch.", "")
    return {
        name: (value, torch.from_numpy(recorded()[prefix + name])) for name, value in own(given(dtype, seed)).items()
    }


def cases() -> list[Case]:
    """All of them."""
    against = f"verl {recorded()['version']}"
    return [Case(row, against, f"{row} verl", partial(compare, own)) for row, own in ROWS]

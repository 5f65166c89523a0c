"""Whether training moves the weights: a few thousand of them, looked at after each update.

No answer of a trainer says this. The log-probabilities of the next update are of other prompts, and a gradient that is
not 0 need not reach the weights: where they have 8 bits, as in bfloat16, a small step is rounded away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

SPLIT = ("FSDP", "DEEPSPEED", "MEGATRON_LM")
"""Accelerate's names of what keeps weights in shares, or moves copies of them in another precision."""
TENSORS, EACH = 64, 64
"""Tensors that are looked at, spread over the trained ones, and the numbers of each, spread over it."""


class WeightSample:
    """Numbers of a trainer's trained weights. It copies them, and changes nothing.

    Absent where a process does not hold whole weights, or others than the optimizer moves: with FSDP and DeepSpeed.
    """

    def __init__(self, trainer: Any) -> None:
        model = trainer.accelerator.unwrap_model(trainer.model)
        every = list(model.parameters())
        trained = [each for each in every if each.requires_grad and each.is_floating_point()]
        self._known = trainer.accelerator.distributed_type.name not in SPLIT and all(_whole(each) for each in trained)
        self._chosen = _spread(trained, TENSORS)
        self._shares = _shares(every, trained) if self._known else {}
        self._of: Tensor | None = None  # the tensor that each sampled number is of
        self._before = self._numbers()

    def close_update(self) -> dict[str, float]:
        """What the update that ends here moved, as metrics; empty if that cannot be known."""
        if not self._known:
            return {}
        now, before = self._numbers(), self._before
        self._before = now
        if not len(now):
            return dict(self._shares)
        changed, step = torch.stack([(now != before).double().mean(), self._step(now, before)]).tolist()  # one wait
        return self._shares | {"weights/changed": changed} | ({} if math.isnan(step) else {"weights/step": step})

    def _step(self, now: Tensor, before: Tensor) -> Tensor:
        """The median over the tensors of ‖change‖ / ‖weights‖, as norms' scales are a hundred times a matrix's numbers.

        Without those that are 0, as an adapter's B before the first step; NaN if all are.
        """
        moved, size = (now - before).square(), before.square()
        if self._of is None or self._of.device != now.device:
            lengths = torch.tensor([len(_some(each)) for each in self._chosen])
            self._of = torch.repeat_interleave(torch.arange(len(lengths)), lengths).to(now.device)
        none = torch.zeros(len(self._chosen), dtype=now.dtype, device=now.device)
        shares = none.index_add(0, self._of, moved) / none.index_add(0, self._of, size)
        return torch.nanmedian(torch.where(shares.isinf(), math.nan, shares)).sqrt()

    def _numbers(self) -> Tensor:
        """The sampled weights in float64, in the order of their tensors."""
        if not self._known or not self._chosen:
            return torch.zeros(0, dtype=torch.float64)
        home = self._chosen[0].device
        exact = torch.float32 if home.type == "mps" else torch.float64  # the most that Apple's GPUs have
        with torch.no_grad():
            found = torch.cat([_some(each).to(home, exact) for each in self._chosen])
        return found if exact is torch.float64 else found.cpu().double()


def _some(weight: Tensor) -> Tensor:
    """Some numbers of a tensor, at equal distances; a copy."""
    flat = weight.detach().reshape(-1)
    return flat[:: max(1, len(flat) // EACH)][:EACH].clone()


def _spread(weights: Sequence[nn.Parameter], most: int) -> list[nn.Parameter]:
    step = max(1.0, len(weights) / most)
    return [weights[int(place * step)] for place in range(min(most, len(weights)))]


def _shares(every: Sequence[nn.Parameter], trained: Sequence[nn.Parameter]) -> dict[str, float]:
    """How much of the model is trained, and how coarse the numbers of most of it are."""
    sizes: dict[torch.dtype, int] = {}
    for each in trained:
        sizes[each.dtype] = sizes.get(each.dtype, 0) + each.numel()
    shares = {
        "weights/trained": sum(sizes.values()) / max(1, sum(each.numel() for each in every)),
        "weights/matrices": float(sum(each.ndim > 1 for each in trained)),
    }
    if sizes:
        shares["weights/rounding"] = torch.finfo(max(sizes, key=lambda dtype: sizes[dtype])).eps
    return shares


def _whole(weight: Tensor) -> bool:
    """Whether this process holds all of a tensor, and not its share."""
    return type(weight.data) is Tensor and weight.numel() > 0

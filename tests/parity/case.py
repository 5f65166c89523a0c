"""What a comparison is, and how its difference is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

SEEDS = (0, 1, 2)
LIMITS = {torch.float32: 1e-5, torch.float64: 1e-7}
"""Largest difference allowed, by precision."""

Pairs = dict[str, tuple[Tensor, Tensor]]
"""By the name of a quantity: rlplay's and the other's, of one shape."""


@dataclass(frozen=True)
class Case:
    """One configuration of both sides; `row` is where the table counts it, `compare` gives the pairs for a seed.

    `dtypes` are the precisions that the other side has.
    """

    row: str
    against: str
    name: str
    compare: Callable[[torch.dtype, int], Pairs]
    dtypes: tuple[torch.dtype, ...] = tuple(LIMITS)

    def differences(self, dtype: torch.dtype, seed: int) -> dict[str, float]:
        """By quantity, the largest |ours − theirs| / max(1, |theirs|)."""
        with precision(dtype):
            return {name: _difference(*pair) for name, pair in self.compare(dtype, seed).items()}


def _difference(ours: Tensor, theirs: Tensor) -> float:
    assert ours.shape == theirs.shape, f"{tuple(ours.shape)} is not {tuple(theirs.shape)}"
    assert bool(ours.isfinite().all() & theirs.isfinite().all())
    return float(((ours - theirs).abs() / theirs.abs().clamp(min=1)).max())


@contextmanager
def precision(dtype: torch.dtype) -> Iterator[None]:
    """torch's default dtype for a while: constants made along the way, like a quotient of two counts, have it too."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)

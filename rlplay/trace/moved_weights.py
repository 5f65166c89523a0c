"""What the engine tells about a weight and about a layer, within its answers."""

from __future__ import annotations

from typing import Literal

import msgspec

ModelPart = Literal["embedding", "attention", "mlp", "norm", "head", "value", "other"]


class MovedWeight(msgspec.Struct, frozen=True):
    """What an update moved in one tensor W of the model; ‖·‖ is the Frobenius norm, Δ the weight's change.

    Of a matrix with LoRA adapters, W is the base with them, Δ the change of what they add.
    """

    name: str
    layer: int  # from 1; 0 before the layers, one more than there are after them
    part: ModelPart
    label: str  # short: q, down
    shape: list[int]
    numbers: int  # trained ones
    changed: int  # of these, as the model has them: weights in bfloat16 may not notice a small step
    size: float  # ‖W‖ before
    moved: float  # ‖Δ‖
    rank: float | None = None  # effective rank of Δ; None: no matrix, or not computed
    spectrum: list[float] = []  # the largest singular values of Δ, as shares of their sum


class LayerReading(msgspec.Struct, frozen=True):
    """A next-token distribution, read after one layer: candidates, and how likely the token is that was written."""

    top_ids: list[int]
    top: list[float]
    written: float
    rank: int  # of the written token, from 1

"""A step along the natural gradient, as long as a KL limit allows: conjugate gradient and a line search, on closures.

Both are generators, one item per iteration, so that whoever drives them can show how the search goes. TRPO puts them
together (Schulman et al. 2015, arXiv:1502.05477, appendix C).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

TOLERANCE = 1e-5
"""A residual, relative to the right-hand side, at which conjugate gradient has solved its equation."""

SHRINK = 0.8
"""What the line search leaves of a step that was too long."""


_AT_ONCE = 2**24
"""Entries of a vector that are held in float64 at a time."""


@dataclass(frozen=True)
class Direction:
    """Where conjugate gradient stands: `x` [P] solves (F + λ) x = g but for `residual`, ‖g − (F + λ) x‖ / ‖g‖."""

    iteration: int
    x: Tensor
    residual: float
    curvature: float  # xᵀFx, without the damping λ: a step along x of length s has a KL of about s²·xᵀFx / 2
    slope: float  # gᵀx: what that step gains is about s·gᵀx


@dataclass(frozen=True)
class Trial:
    """A step that was tried: the `fraction` of the whole one, its KL, what it gained, and whether it is taken."""

    iteration: int
    fraction: float
    kl: float
    gain: float
    accepted: bool


def conjugate_gradient(
    product: Callable[[Tensor], Tensor], gradient: Tensor, iterations: int, damping: float
) -> Iterator[Direction]:
    """Solve (F + λ) x = g for x [P] (Hestenes and Stiefel 1952): `product(v)` is F v, `gradient` g, `damping` λ.

    F must be positive semi-definite. Ends after `iterations`, or sooner if solved; at once if g is 0. Dot products are
    float64 whatever the vectors are: each step trusts that the ones before it are orthogonal to it.
    """
    x, residual, direction = gradient * 0, gradient, gradient
    start = square = _dot(gradient, gradient)
    for iteration in range(1, iterations + 1):
        if square <= start * TOLERANCE**2:
            return
        image = product(direction) + damping * direction
        damped_curvature = _dot(direction, image)
        if not damped_curvature > 0:  # rounding is all that is left; or not a number, which the caller shows
            return
        alpha = square / damped_curvature
        x = x + alpha * direction
        residual = residual - alpha * image
        before, square = square, _dot(residual, residual)
        direction = residual + square / before * direction
        slope = _dot(x, gradient)
        curvature = slope - _dot(x, residual) - damping * _dot(x, x)
        yield Direction(iteration, x, (square / start) ** 0.5, curvature, slope)


def _dot(a: Tensor, b: Tensor) -> float:
    """a·b of two [P] in float64, piece by piece, so that a large model's vectors are not copied whole."""
    if a.device.type == "mps":  # which has no float64
        a, b = a.cpu(), b.cpu()
    pieces = zip(torch.split(a, _AT_ONCE), torch.split(b, _AT_ONCE), strict=True)
    return math.fsum(float(x.double().dot(y.double())) for x, y in pieces)


def length_to(limit: float, curvature: float) -> float:
    """s with s²·xᵀFx / 2 = `limit`: how far along x the KL limit lies, to second order; 0 where nothing bends."""
    return (2 * limit / curvature) ** 0.5 if curvature > 0 else 0.0


def line_search(measure: Callable[[float], tuple[float, float]], limit: float, steps: int) -> Iterator[Trial]:
    """Try the whole step, then each time `SHRINK` of it, until one keeps the limit and gains something.

    `measure(fraction)` gives the KL and the gain of a step; at most `steps` are tried, and only the last may be
    accepted.
    """
    for iteration in range(1, steps + 1):
        fraction = SHRINK ** (iteration - 1)
        kl, gain = measure(fraction)
        accepted = kl <= limit and gain > 0
        yield Trial(iteration, fraction, kl, gain, accepted)
        if accepted:
            return

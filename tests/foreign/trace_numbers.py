"""The numbers of the traces in tests/foreign/traces."""

from __future__ import annotations

import numpy as np

REWARDS = (0.5, 0.0, 0.25, 0.125)
ADVANTAGES = (0.5, -0.5, 0.25, -0.25)
_LENGTHS = ((3, 2), (1, 1), (2, 4), (2, 2))


def answer(step: int, place: int) -> tuple[list[int], list[int]]:
    """The tokens of the two turns."""
    made = np.random.default_rng([step, place])
    first, second = (made.integers(20, 99, length).tolist() for length in _LENGTHS[place])
    return first, second


def _made(step: int, place: int, kind: int) -> np.ndarray:
    return np.random.default_rng([step, place, kind]).exponential(1, sum(_LENGTHS[place])).round(4)


def inference(step: int, place: int) -> list[float]:
    """The sampler's log-probabilities of the sampled tokens."""
    return (-_made(step, place, 1)).tolist()


def trainer(step: int, place: int) -> list[float]:
    """The policy's as the training pass computed them."""
    return (np.array(inference(step, place)) - _made(step, place, 2) / 50).round(5).tolist()


def entropies(step: int, place: int) -> list[float]:
    """The policy's entropies."""
    return _made(step, place, 3).tolist()

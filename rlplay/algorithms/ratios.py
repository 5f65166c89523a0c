"""The levels of the ratio between the new policy and the one that sampled. A row at the end for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlplay.algorithms.choice import Choice, Chosen
from rlplay.algorithms.surrogates import ppo_clip_state
from rlplay.trace.numbers import compact


def token(xp: Any, log_ratio: Any) -> Any:  # noqa: ARG001
    """The logarithm of each token's own ratio, [..., L]."""
    return log_ratio


def sequence(xp: Any, log_ratio: Any, mask: Any) -> Any:
    """The logarithm of the geometric mean over the completion, [..., 1] (GSPO, arXiv:2507.18071, equation 7)."""
    return xp.mean_over(log_ratio, mask)


def sequence_sum(xp: Any, log_ratio: Any, mask: Any) -> Any:
    """The logarithm of the whole completion's ratio, [..., 1] (RLOO, arXiv:2402.14740)."""
    return xp.sum_over(log_ratio, mask)


def geometric(xp: Any, log_ratio: Any, mask: Any, advantages: Any, epsilon: float, epsilon_high: float) -> Any:
    """The logarithm of the geometric mean of ratios, each clipped in the direction of its advantage, [..., 1].

    GMPO (arXiv:2507.20673, equation 4).
    """
    bounded = xp.where(advantages > 0, xp.clip(log_ratio, high=epsilon_high), xp.clip(log_ratio, low=-epsilon))
    return xp.mean_over(xp.let("d", bounded), mask)


def geometric_clip_state(xp: Any, log_ratio: Any, advantages: Any, epsilon: float, epsilon_high: float) -> Any:
    """Where a token's log-ratio has reached its bound within the mean, as `ppo_clip_state`."""
    return ppo_clip_state(xp, log_ratio + 1, advantages, epsilon, epsilon_high, None)


def _geometric_clipped(s: Chosen, state: int) -> tuple[str, str]:
    low, high = s.clip_range
    own = f"A > 0 and ℓ − ℓ_old > {compact(high)}" if state > 0 else f"A < 0 and ℓ − ℓ_old < −{compact(low)}"
    return (
        f"{'▲' if state > 0 else '▼'} bounded: {own}",
        "The answer's ratio takes the bound, a constant, in its place: moving it further gains nothing",
    )


@dataclass(frozen=True)
class Level(Choice):
    """A level. If it clips tokens itself, `gradient_zero` and `clipped` are as in `surrogates.Surrogate`.

    `band`: it clips each token's log-ratio at −ε and ε_high. `one_ratio`: all tokens of an answer have the same ratio,
    which counts once in statistics, as in TRL.
    """

    gradient_zero: Callable[..., Any] | None = None
    clipped: Callable[[Chosen, int], tuple[str, str]] | None = None
    band: bool = False
    one_ratio: bool = False


LEVELS: dict[str, Level] = {
    row.name: row
    for row in (
        Level("token", token, "each token.", trl="token"),
        Level(
            "sequence", sequence, "the answer, as the geometric mean of its tokens (GSPO).", "arXiv:2507.18071",
            trl="sequence", verl="gspo", one_ratio=True,
        ),
        Level(
            "sequence_sum", sequence_sum, "the answer, as their product (RLOO).", "arXiv:2402.14740", one_ratio=True,
        ),
        Level(
            "geometric", geometric, "as the geometric mean, each token clipped first (GMPO).", "arXiv:2507.20673",
            verl="geo_mean", gradient_zero=geometric_clip_state, clipped=_geometric_clipped, band=True,
        ),
    )
}  # fmt: skip

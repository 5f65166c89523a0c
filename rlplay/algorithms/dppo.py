"""The surrogates of DPPO (arXiv:2602.04879): what bounds a token is how far its probability has moved, not its ratio.

A rare token may become many times likelier, which changes the policy little; a likely one may not fall far. Both
bounds are of the two-way choice between the token and all others: TV is |p − p_old|, KL is that of p_old to p. The
thresholds are ε for A ≤ 0 and ε_high for A > 0, as in verl; prime-rl calls them dppo_mask_low and dppo_mask_high.
"""

from __future__ import annotations

from typing import Any

from rlplay.algorithms.choice import Chosen
from rlplay.trace.numbers import compact

_TINY = 1e-8
"""What verl adds to both probabilities of the other tokens, so that their logarithms are finite."""


def dppo_tv(
    xp: Any, ratio: Any, advantages: Any, logprobs: Any, old_logprobs: Any, epsilon: float, epsilon_high: float,
    delta: float | None,
) -> Any:  # fmt: skip
    """−w·A, and 0 where the probability has moved too far the way A pulls. With `delta` w is at most that."""
    far = _moved(xp, advantages, logprobs, old_logprobs) > xp.where(advantages > 0, epsilon_high, epsilon)
    return xp.where(far, 0.0, _weighted(xp, ratio, advantages, logprobs, delta))


def dppo_tv_state(
    xp: Any, advantages: Any, logprobs: Any, old_logprobs: Any, epsilon: float, epsilon_high: float
) -> Any:
    """Where `dppo_tv` has a gradient of exactly 0: +1 for A > 0, −1 for A < 0."""
    far = _moved(xp, advantages, logprobs, old_logprobs) > xp.where(advantages > 0, epsilon_high, epsilon)
    return _side(xp, far, advantages)


def dppo_kl(
    xp: Any, ratio: Any, advantages: Any, logprobs: Any, old_logprobs: Any, epsilon: float, epsilon_high: float,
    delta: float | None,
) -> Any:  # fmt: skip
    """−w·A, and 0 where the KL is too large and the probability has moved the way A pulls. `delta` as there."""
    far = _diverged(xp, advantages, logprobs, old_logprobs, epsilon, epsilon_high)
    return xp.where(far, 0.0, _weighted(xp, ratio, advantages, logprobs, delta))


def dppo_kl_state(
    xp: Any, advantages: Any, logprobs: Any, old_logprobs: Any, epsilon: float, epsilon_high: float
) -> Any:
    """Where `dppo_kl` has a gradient of exactly 0: +1 for A > 0, −1 for A < 0."""
    return _side(xp, _diverged(xp, advantages, logprobs, old_logprobs, epsilon, epsilon_high), advantages)


def tv_mask(
    xp: Any, ratio: Any, advantages: Any, logprobs: Any, old_logprobs: Any, epsilon: float, delta: float | None
) -> Any:
    """−w·A, and 0 where the probability has moved by more than ε either way, as prime-rl's `ipo`. `delta` as there."""
    moved = xp.let("d", xp.let("p", xp.exp(logprobs)) - xp.let("p_old", xp.exp(old_logprobs)))
    far = (moved > epsilon) | (moved < -epsilon)
    return xp.where(far, 0.0, _weighted(xp, ratio, advantages, logprobs, delta))


def tv_mask_state(xp: Any, advantages: Any, logprobs: Any, old_logprobs: Any, epsilon: float) -> Any:
    """Where `tv_mask` has a gradient of exactly 0: +1 above, −1 below."""
    moved = xp.exp(logprobs) - xp.exp(old_logprobs)
    counts = (advantages > 0) | (advantages < 0)
    return xp.where(counts & (moved > epsilon), 1.0, xp.where(counts & (moved < -epsilon), -1.0, 0.0))


def _weighted(xp: Any, ratio: Any, advantages: Any, logprobs: Any, delta: float | None) -> Any:
    """−w·A; under a bound of w as verl has it, whose gradient stays beyond the bound (its `clip_ratio_c`)."""
    if delta is None:
        return -ratio * advantages
    return -xp.stop_gradient(xp.clip(ratio, high=delta)) * advantages * logprobs


def _moved(xp: Any, advantages: Any, logprobs: Any, old_logprobs: Any) -> Any:
    """How far the probability has moved the way A pulls."""
    p, p_old = xp.let("p", xp.exp(logprobs)), xp.let("p_old", xp.exp(old_logprobs))
    return xp.let("d", xp.where(advantages > 0, p - p_old, p_old - p))


def _diverged(xp: Any, advantages: Any, logprobs: Any, old_logprobs: Any, epsilon: float, epsilon_high: float) -> Any:
    p, p_old = xp.let("p", xp.exp(logprobs)), xp.let("p_old", xp.exp(old_logprobs))
    others = (1 - p_old) * xp.log((1 - p_old + _TINY) / (1 - p + _TINY))
    divergence = xp.let("D", p_old * (old_logprobs - logprobs) + others)
    too_far = divergence > xp.where(advantages > 0, epsilon_high, epsilon)
    return too_far & (_moved(xp, advantages, logprobs, old_logprobs) > 0)


def _side(xp: Any, far: Any, advantages: Any) -> Any:
    return xp.where(far & (advantages > 0), 1.0, xp.where(far & (advantages < 0), -1.0, 0.0))


def tv_clipped(s: Chosen, state: int) -> tuple[str, str]:
    """As `clipped` of a row of `surrogates.py`."""
    low, high = (compact(side) for side in s.clip_range)
    if state > 0:
        return f"▲ clipped: A > 0 and p > p_old + {high}", _gains(f"has risen by more than {high}")
    return f"▼ clipped: A < 0 and p < p_old − {low}", _gains(f"has fallen by more than {low}")


def kl_clipped(s: Chosen, state: int) -> tuple[str, str]:
    """As `clipped` of a row of `surrogates.py`."""
    low, high = (compact(side) for side in s.clip_range)
    if state > 0:
        return f"▲ clipped: A > 0, p > p_old and D > {high}", _gains(f"has risen, to a KL of more than {high}")
    return f"▼ clipped: A < 0, p < p_old and D > {low}", _gains(f"has fallen, to a KL of more than {low}")


def mask_clipped(s: Chosen, state: int) -> tuple[str, str]:
    """As `clipped` of a row of `surrogates.py`."""
    bound = compact(s.clip_range[0])
    if state > 0:
        return f"▲ clipped: p > p_old + {bound}", _gains(f"has risen by more than {bound}")
    return f"▼ clipped: p < p_old − {bound}", _gains(f"has fallen by more than {bound}")


def _gains(how: str) -> str:
    return f"Its probability {how} since it was sampled. There S is 0, a constant: moving it further gains nothing"


def unclipped(s: Chosen, advantage: float, w: float) -> list[str]:
    """As `unclipped` of a row of `surrogates.py`: what PPO's bound on the ratio would have done."""
    low, high = s.clip_range
    if not (w > 1 + high if advantage > 0 else advantage < 0 and w < 1 - low):
        return []
    return [
        f"w is outside {compact(1 - low)} … {compact(1 + high)}, but the probability has moved less: it still pulls"
    ]

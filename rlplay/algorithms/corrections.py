"""Corrections for a sampler that is not quite the policy: a factor c of each token's surrogate, and what is left out.

Both are computed once per update of ℓ_old − ℓ_sampler, the logarithm of how much likelier the policy finds a token than
the sampler did. TRL's names for the factor, verl's for what is left out; rows at the end for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlplay.algorithms import ratios
from rlplay.algorithms.choice import Choice, call_choice
from rlplay.algorithms.divergences import ESTIMATORS
from rlplay.algorithms.expression_text import equation
from rlplay.algorithms.surrogates import LARGEST, SMALLEST
from rlplay.algorithms.symbols import Symbols, name

_LEVELS: dict[str, tuple[Callable[..., Any], str]] = {
    "token": (lambda xp, x, mask: ratios.token(xp, x), "of each token"),  # noqa: ARG005
    "sequence": (ratios.sequence_sum, "of the answer, as the product of its tokens"),
    "geometric": (ratios.sequence, "of the answer, as the geometric mean of its tokens"),
}
"""What a factor is of: the logarithm [..., L] or [..., 1], and the words."""


def _cut(xp: Any, ratio: Any, low: float | None, high: float | None) -> Any:
    """The ratio, cut to the bounds."""
    return xp.clip(ratio, low, high)


def _left_out(xp: Any, ratio: Any, low: float | None, high: float | None) -> Any:
    """The ratio, 0 outside the bounds."""
    if low is None and high is None:
        return ratio
    ratio = xp.let("ρ", ratio)
    if high is None:
        return xp.where(ratio < low, 0.0, ratio)
    return xp.where(ratio > high if low is None else (ratio < low) | (ratio > high), 0.0, ratio)


@dataclass(frozen=True)
class Correction(Choice):
    """A factor; `level` and `outside` as in `records.CorrectionRule`, "" for none."""

    level: str = ""
    outside: str = ""


def _correction(level: str, outside: str, paper: str = "") -> Correction:
    reduce, words = _LEVELS[level]
    bounded = {"truncate": _cut, "mask": _left_out}[outside]

    def factor(
        xp: Any, sampler_log_ratio: Any, mask: Any,
        importance_sampling_clip_min: float | None, importance_sampling_clip_max: float | None,
    ) -> Any:  # fmt: skip
        ratio = xp.exp(reduce(xp, sampler_log_ratio, mask))
        return bounded(xp, ratio, importance_sampling_clip_min, importance_sampling_clip_max)

    beyond = "cut to the bounds" if outside == "truncate" else "0 outside the bounds"
    return Correction(f"{level}_{outside}", factor, f"{words}, {beyond}.", paper, level=level, outside=outside)


CORRECTIONS: dict[str, Correction] = {
    row.name: row
    for row in (
        Correction("none", None, "no factor."),
        _correction("token", "truncate", "Yao et al. 2025, fengyao.notion.site/off-policy-rl"),
        _correction("token", "mask", "arXiv:2510.18855"),
        _correction("sequence", "truncate", "Liu et al. 2025, richardli.xyz/rl-collapse"),
        _correction("sequence", "mask", "Liu et al. 2025, richardli.xyz/rl-collapse"),
        _correction("geometric", "truncate"),
        _correction("geometric", "mask", "Liu et al. 2025, richardli.xyz/rl-collapse-3"),
    )
}


def factor(level: str, outside: str, low: float | None, high: float | None) -> str:
    """The equation of a factor that a recording describes as `records.CorrectionRule` does; "" if it is none of the
    rows."""
    chosen = CORRECTIONS.get(f"{level}_{outside}")
    known = {"importance_sampling_clip_min": low, "importance_sampling_clip_max": high}
    return "" if chosen is None else equation_of(chosen, known, None)


def equation_of(chosen: Choice, known: Mapping[str, Any], settings: Any) -> str:
    """A factor, or what is left in the loss, in symbols; its bounds are `known` or settings."""
    symbols = {"sampler_log_ratio": name("ℓ_old") - name("ℓ_sampler"), "mask": name("mask"), **known}
    return equation(call_choice(chosen.compute, Symbols, symbols, settings))


def logarithm(xp: Any, factor: Any) -> Any:
    """log c as a surrogate takes it in, bounded to [log 1e-8, 20] as in TRL, so that a factor of 0 has one."""
    return xp.clip(xp.log(factor), SMALLEST, LARGEST)


_OVER: dict[str, tuple[Callable[..., Any] | None, str]] = {
    "token": (lambda xp, x, mask: x, "of the token"),  # noqa: ARG005
    "seq_sum": (ratios.sequence_sum, "summed over the answer"),
    "seq_mean": (ratios.sequence, "averaged over the answer"),
    "seq_max": (None, "of the answer's worst token"),
}
"""What a divergence is of: the number that is bounded, None for the largest, and the words."""


def _rejection(over: str, estimator: str) -> Choice:
    """Where a token stays in the loss: bool [..., L] or [..., 1]. A k1 may be negative and so has two bounds, of eˣ."""
    reduce, words = _OVER[over]
    divergence = ESTIMATORS[estimator].compute
    assert divergence is not None

    def kept(xp: Any, sampler_log_ratio: Any, mask: Any, rollout_rs_threshold: float) -> Any:
        if estimator == "k1":
            assert reduce is not None
            ratio = xp.let("ρ", xp.exp(reduce(xp, sampler_log_ratio, mask)))
            return (ratio >= 1 / rollout_rs_threshold) & (ratio <= rollout_rs_threshold)
        found = xp.let("D", divergence(xp, log_ratio=sampler_log_ratio))
        if reduce is None:
            return xp.count_over(mask & (found > rollout_rs_threshold)) == 0
        return reduce(xp, found, mask) <= rollout_rs_threshold

    return Choice(f"{over}_{estimator}", kept, f"{estimator} {words}.", "richardli.xyz/rl-collapse-3",
                  verl=f"{over}_{estimator}")  # fmt: skip


REJECTIONS: dict[str, Choice] = {
    row.name: row
    for row in (
        Choice("none", None, "nothing."),
        *(_rejection(over, k) for over in _OVER for k in ("k1", "k2", "k3") if (over, k) != ("seq_max", "k1")),
    )
}

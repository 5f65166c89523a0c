"""Every per-token statistic, once: the token map's colours, the inspector's rows, help and exported columns read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from rlplay.trace.records import Array
from rlplay.trace.update import Phase, Update


@dataclass(frozen=True)
class Lens:
    """One per-token statistic.

    `low` and `high` are the ends of its colour scale, fixed so that shades compare between updates. On a
    "diverging" scale the middle is neutral; on a "sequential" one `low` is. `values` returns float32 [T], NaN
    where a token has no value, or None before the phase that makes it available.
    """

    name: str  # the exported column, as in prime-rl's token files where those have one
    title: str
    symbol: str
    formula: str
    unit: str
    phase: Phase
    scale: Literal["diverging", "sequential"]
    low: float
    high: float
    reading: str
    values: Callable[[Update], Array | None]


def _sampled(field: str) -> Callable[[Update], Array | None]:
    return lambda u: None if u.sampled is None else cast("Array | None", getattr(u.sampled, field))


def _credited(field: str) -> Callable[[Update], Array | None]:
    return lambda u: None if u.credited is None else cast("Array | None", getattr(u.credited, field))


def _stepped(field: str) -> Callable[[Update], Array | None]:
    return lambda u: u.latest_step(field)


def _probability(u: Update) -> Array | None:
    return None if u.sampled is None else np.asarray(np.exp(u.sampled.old_logprobs))


def _change(u: Update) -> Array | None:
    new = u.new_logprobs()
    return None if new is None or u.sampled is None else np.exp(new) - np.exp(u.sampled.old_logprobs)


def _kl_ref(u: Update) -> Array | None:
    if u.credited is None or u.credited.ref_logprobs is None or u.sampled is None:
        return None
    x = u.credited.ref_logprobs - u.sampled.old_logprobs
    return np.asarray(np.expm1(x) - x, dtype=np.float32)


def _log_ratio(u: Update) -> Array | None:
    if u.credited is None or u.credited.ref_logprobs is None or u.sampled is None:
        return None
    return np.asarray(u.sampled.old_logprobs - u.credited.ref_logprobs)


LENSES: dict[str, Lens] = {
    lens.name: lens
    for lens in (
        Lens(
            "credit", "Credit", "−∂L/∂ℓ", "Σ over optimizer steps of −∂loss/∂logp × tokens in the step",
            "advantage units", "update", "diverging", -2.0, 2.0,
            "What the update really does: + pulls this token's probability up, − pushes it down, 0 leaves it alone.",
            lambda u: u.pull(),
        ),
        Lens(
            "probability", "Probability", "p", "exp(old_logprobs)",
            "", "sample", "sequential", 0.0, 1.0,
            "How sure the policy was of the token it sampled. Tokens without colour were a gamble: there it explores.",
            _probability,
        ),
        Lens(
            "prob_delta", "Change in probability", "Δp", "exp(new logprob) − exp(old logprob)",
            "", "after", "diverging", -0.5, 0.5,
            "The same token before and after the update: did the credit really move probability?",
            _change,
        ),
        Lens(
            "entropy", "Entropy", "H", "−Σ over the vocabulary of p·log p",
            "nats", "sample", "sequential", 0.0, 3.0,
            "How undecided the policy was here. Near 0 there is nothing left to explore.",
            _sampled("entropy"),
        ),
        Lens(
            "advantages", "Advantage", "A", "(return − baseline) / scale",
            "", "credit", "diverging", -2.0, 2.0,
            "How much better (+) or worse (−) this turned out than expected. Only its sign decides up or down.",
            _credited("advantages"),
        ),
        Lens(
            "importance_ratio", "Ratio", "w", "exp(logprob now − old_logprobs), last optimizer step",
            "", "update", "diverging", 0.5, 1.5,
            "How far the policy has moved from the one that sampled. Always positive; 1 at the first optimizer step.",
            _stepped("importance_ratio"),
        ),
        Lens(
            "clip_state", "Clipping", "clip", "+1 high (A>0, w>1+ε), −1 low (A<0, w<1−ε), +2 dual (A<0, w>δ), else 0",
            "", "update", "diverging", -1.0, 1.0,
            "Clipped: the surrogate's gradient is exactly zero in this step; only a KL term in the loss still pulls.",
            _stepped("clip_state"),
        ),
        Lens(
            "ref_kl", "KL to reference", "k3", "exp(ref − old) − (ref − old) − 1, k3 estimate when sampled",
            "nats", "credit", "sequential", 0.0, 1.0,
            "How far the policy has drifted from the frozen reference at this token. Not the KL to the old policy.",
            _kl_ref,
        ),
        Lens(
            "token_rewards", "Token reward", "r", "the reward stream, a KL penalty included where it is in the reward",
            "", "credit", "diverging", -1.0, 1.0,
            "Where reward arrives. An outcome reward sits on the last token; credit assignment spreads its effect.",
            _credited("token_rewards"),
        ),
        Lens(
            "values", "Value", "V",
            "the value head before the token; returns=vine: sampled where its step began; a reward model: after it",
            "reward", "credit", "sequential", 0.0, 1.0,
            "The reward expected from here on, by the value head or by sampling; from a reward model, the score of the "
            "answer up to here. Other algorithms have none.",
            _credited("values"),
        ),
        Lens(
            "returns", "Return", "G", "Σ of γ^k · r from this token on, or as the algorithm estimates it",
            "reward", "credit", "diverging", -1.0, 1.0,
            "What came after this token.",
            _credited("returns"),
        ),
        Lens(
            "log_ratio", "Log-ratio", "ℓ − ℓʳ", "old logprob − ref logprob, before the update",
            "nats", "credit", "diverging", -2.0, 2.0,
            "How much likelier (+) or less likely (−) than for the reference this token has become.",
            _log_ratio,
        ),
        Lens(
            "implicit_reward", "Implicit reward", "β(ℓ − ℓʳ)",
            "β·(old logprob − ref logprob); without a reference β·old logprob, in SimPO and ORPO over the length",
            "reward", "credit", "diverging", -0.5, 0.5,
            "What a preference loss takes for this token's reward: it learns no other, and compares the sums of two "
            "answers.",
            _credited("implicit_rewards"),
        ),
    )
}  # fmt: skip

CYCLE = ("credit", "probability", "prob_delta", "entropy", "advantages", "importance_ratio", "clip_state", "ref_kl")
"""The lenses the colour key steps through."""

AUTOMATIC: dict[Phase, str] = {
    "sample": "probability",
    "score": "probability",
    "credit": "advantages",
    "update": "credit",
    "after": "prob_delta",
}
"""The lens that fits what has just happened, used until the user picks one."""

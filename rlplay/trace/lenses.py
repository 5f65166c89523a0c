"""The registry of per-token statistics, for the token map's colours, the inspector, the help and the exports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from rlplay.trace.kinds import Learning
from rlplay.trace.lens import Lens as Lens  # noqa: PLC0414 - other packages import it from here
from rlplay.trace.lens import known
from rlplay.trace.lenses_of_others import OF_OTHERS
from rlplay.trace.plugins import additions, refuse
from rlplay.trace.records import Array
from rlplay.trace.update import Phase, Update


def _sampled(field: str) -> Callable[[Update], Array | None]:
    return lambda u: None if u.sampled is None else known(cast("Array | None", getattr(u.sampled, field)))


def _credited(field: str) -> Callable[[Update], Array | None]:
    return lambda u: None if u.credited is None else cast("Array | None", getattr(u.credited, field))


def _stepped(field: str) -> Callable[[Update], Array | None]:
    return lambda u: known(u.latest_step(field))


def _probability(u: Update) -> Array | None:
    old = None if u.sampled is None else known(u.sampled.old_logprobs)
    return None if old is None else np.asarray(np.exp(old))


def _so_far(u: Update) -> Array | None:
    if u.sampled is None or known(u.sampled.old_logprobs) is None:
        return None
    own = u.sampled.mask == 1
    total = np.concatenate([[0.0], np.cumsum(np.where(own, u.sampled.old_logprobs, 0.0), dtype=np.float64)])
    begun = np.repeat(total[u.sampled.offsets[:-1]], np.diff(u.sampled.offsets))
    return np.where(own, total[1:] - begun, np.nan).astype(np.float32)


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


_PULL = {
    "title": "Pull",
    "symbol": "−∂L/∂ℓ before step 1",
    "formula": "−∂loss/∂logp before the first optimizer step × tokens in the loss",
    "reading": "How hard the loss pulls this token's log-probability up (+) or down (−) when the update begins.",
}
"""Replaces advantages where answers have no rewards: such a loss has only a derivative."""

_TD_ERROR = {
    "title": "TD error",
    "symbol": "δ",
    "formula": "target − Q(s, a)",
    "unit": "",
    "low": -1.0,
    "high": 1.0,
    "reading": "How much better (+) or worse (−) the move turned out than Q said, with what follows it valued by Q. "
    "Q(s, a) moves by α·δ.",
}
_Q_PULL = _TD_ERROR | {
    "title": "Pull on Q",
    "symbol": "−∂L/∂Q",
    "formula": "−∂L/∂Q(s, a) × moves, with L = ½·mean δ² and the target held fixed",
    "reading": "How hard the update pulls this move's value up (+) or down (−): by its TD error. Probabilities change "
    "only where another move becomes the best.",
}
_TARGET = {
    "title": "Target",
    "symbol": "r + γ·…",
    "formula": "r + γ·max Q(s′, ·) in Q-learning, r + γ·Q(s′, a′) in SARSA; r where the episode ends",
    "reading": "What Q(s, a) moves towards: what the move earned, and what follows it by Q itself.",
}
_Q = {
    "title": "Value Q",
    "symbol": "Q",
    "formula": "Q(s, a), just before the move's own step",
    "scale": "diverging",
    "low": -1.0,
    "reading": "The reward to expect from this move on, by the table. Earlier moves of the same update may have "
    "changed it since the episode was played.",
}
"""Replacements where action values are learned."""

_SCORES = {"scale": "diverging", "low": -2.0, "high": 2.0}
"""The scale for a reward model's scores, which are unbounded and signed; in the lessons −1.8 … 2.0."""

LENSES: dict[str, Lens] = {
    lens.name: lens
    for lens in (
        Lens(
            "credit", "Credit", "−∂L/∂ℓ", "Σ over optimizer steps of −∂loss/∂logp × tokens in the step",
            "advantage units", "update", "diverging", -2.0, 2.0,
            "The direct pull of the loss on this token's log-probability: + up, − down, 0 none. All tokens share the "
            "weights, and the probabilities at a position add up to 1, so a token can still go the other way. An "
            "exact KL and an entropy bonus act on all candidates; they are not in this number.",
            lambda u: known(u.pull()),
            {"action values": _Q_PULL},
            adds_up=True,
        ),
        Lens(
            "probability", "Probability", "p", "exp(old_logprobs)",
            "", "sample", "sequential", 0.0, 1.0,
            "How likely the policy found this token before the update, whoever wrote it. The paler a token, the less "
            "likely it was: at a pale one the policy could easily have written something else.",
            _probability, finest="high",
        ),
        Lens(
            "cumulative_logprob", "Log-probability so far", "Σℓ", "Σ of old_logprobs from the answer's first token on",
            "nats", "sample", "sequential", -10.0, 0.0,
            "The logarithm of the probability of the answer up to and with this token, before the update. "
            "Probabilities multiply and their logarithms add up, so the last token shows that of the whole answer.",
            _so_far,
        ),
        Lens(
            "prob_delta", "Change in probability", "Δp", "exp(new logprob) − exp(old logprob)",
            "", "after", "diverging", -0.5, 0.5,
            "How far the update really moved this token's probability. Compare it with Credit, the pull on the token.",
            _change,
        ),
        Lens(
            "entropy", "Entropy", "H", "−Σ over the vocabulary of p·log p",
            "nats", "sample", "sequential", 0.0, 3.0,
            "How undecided the policy was about this token. Near 0 it almost always writes the same one here.",
            _sampled("entropy"), finest="low",
        ),
        Lens(
            "advantages", "Advantage", "A",
            "(return − baseline) / scale",
            "", "credit", "diverging", -2.0, 2.0,
            "How much better (+) or worse (−) things turned out than expected. Unless a token is clipped or left out, "
            "the policy loss pulls it up for A > 0 and pushes it down for A < 0.",
            _credited("advantages"),
            {"action values": _TD_ERROR, "pairs": _PULL, "imitation": _PULL, "reward model": _PULL},
        ),
        Lens(
            "importance_ratio", "Ratio", "w",
            "exp(logprob − old_logprobs) at the last optimizer step; one per answer if the settings say so",
            "", "update", "diverging", 0.5, 1.5,
            "How many times as likely the token, or its answer, was at this step as at the start of the update. Always "
            "above 0; 1 at the first step of an update.",
            _stepped("importance_ratio"),
        ),
        Lens(
            "clip_state", "Clipping", "clip",
            "+1 high (A>0, w>1+ε), −1 low (A<0, w<1−ε), +2 dual (A<0, w>δ), else 0; GMPO: ℓ − ℓ_old beyond ±ε",
            "", "update", "states", -1.0, 1.0,
            "Clipped: the surrogate's gradient is exactly zero in this step. Of the loss, only a KL term or an "
            "entropy bonus still acts on the token directly; other tokens act on it through the shared weights.",
            _stepped("clip_state"),
        ),
        Lens(
            "ref_kl", "KL to reference", "k3", "exp(ref − old) − (ref − old) − 1, k3 estimate when sampled",
            "nats", "credit", "sequential", 0.0, 1.0,
            "How far the policy was from the frozen reference at this token, before the update. On tokens that the "
            "policy sampled its mean estimates the KL. It is not the KL to the old policy.",
            _kl_ref, finest="low",
        ),
        Lens(
            "token_rewards", "Token reward", "r", "the reward stream, including a KL penalty if it is in the reward",
            "", "credit", "diverging", -1.0, 1.0,
            "Where reward arrives. An outcome reward sits on the last token; credit assignment decides which tokens "
            "gain from it.",
            _credited("token_rewards"),
            {"learned rewards": _SCORES},
        ),
        Lens(
            "values", "Value", "V",
            "the value head before the token; returns=vine: sampled where its step began; a reward model: after it",
            "reward", "credit", "sequential", 0.0, 1.0,
            "The return to expect from here on, by a value head or sampled by VinePPO. While a reward model is "
            "trained: its score of the answer up to here. Other algorithms have no values.",
            _credited("values"),
            {
                "action values": _Q,
                "learned rewards": _SCORES,
                "reward model": _SCORES | {
                    "title": "Score",
                    "symbol": "s",
                    "formula": "the reward model's score of the answer up to and with this token, before the update",
                    "unit": "",
                    "reading": "The reward model's score of the answer so far. Only the score at its end is compared.",
                },
            },
        ),
        Lens(
            "returns", "Return", "G",
            "Σ r over the answer (broadcast), Σ of γ^k · r from this token on (to_go), or estimated with values",
            "reward", "credit", "diverging", -1.0, 1.0,
            "The reward that judges this token: all of the answer's, or only what follows the token. The setting "
            "Return decides which.",
            _credited("returns"),
            {"action values": _TARGET, "learned rewards": _SCORES},
        ),
        Lens(
            "log_ratio", "Log-ratio", "ℓ − ℓʳ", "old logprob − ref logprob, before the update",
            "nats", "credit", "diverging", -2.0, 2.0,
            "How much likelier (+) or less likely (−) the policy found this token than the reference does, before the "
            "update.",
            _log_ratio,
        ),
        Lens(
            "implicit_reward", "Implicit reward", "β(ℓ − ℓʳ)",
            "β·(old logprob − ref logprob), times ld_alpha beyond the shorter answer's length; without a reference "
            "β·old logprob, in SimPO and ORPO divided by the length",
            "reward", "credit", "diverging", -0.5, 0.5,
            "This token's share of its answer's implicit reward, before the update. DPO and hinge compare the sums of "
            "the two answers, IPO their means per token; KTO compares each sum with a common baseline. AlphaPO and "
            "other f-divergences bend the sum.",
            _credited("implicit_rewards"),
        ),
        Lens(
            "share", "Share in another token", "δq", "what −∂loss/∂ℓ·∇ℓ of this token adds to ⟨∇q, Δθ⟩, through Adam",
            "nats", "after", "diverging", -0.02, 0.02,
            "How far this token's own gradient moved the log-probability q of the token that was asked about (why, Y): "
            "+ raised it, − lowered it. Shares add up to what this batch did, to first order.",
            lambda u: u.shares,
        ),
        *OF_OTHERS,
    )
}  # fmt: skip

CYCLE = ("credit", "probability", "prob_delta", "entropy", "advantages", "importance_ratio", "clip_state", "ref_kl")
"""The lenses that the colour key steps through."""
SPECIAL = ("share", "sampler_difference", "correction", "distillation")
"""Those that it also steps through in an update that has them."""

AUTOMATIC: dict[Phase, str] = {
    "sample": "probability",
    "score": "probability",
    "credit": "advantages",
    "update": "credit",
    "after": "prob_delta",
}
"""The lens for each phase, used until the user chooses one."""


def _guarded(lens: Lens) -> Lens:
    """A lens of another package; where it fails, or has not one number per token, it has no values."""

    def values(update: Update) -> Array | None:
        try:
            found = lens.values(update)
            if found is None:
                return None
            array = np.asarray(found, dtype=np.float32)
            if array.shape != (update.tokens,):
                raise ValueError(f"values of the shape {array.shape}, where there are {update.tokens} tokens")
        except Exception as error:
            refuse("rlplay.lenses", lens.name, " ".join(f"{type(error).__name__}: {error}".split()))
            return None
        return array

    return replace(lens, values=values)


def join_lenses() -> None:
    """Add the statistics of other packages."""
    LENSES.update({name: _guarded(lens) for name, lens in additions("rlplay.lenses", Lens, LENSES).items()})


def automatic(phase: Phase, settings: Learning) -> str:
    """The lens for a phase of an update with these settings.

    Where action values are learned, probabilities change only where another move becomes the best, so the TD errors
    stay in view.
    """
    return "advantages" if phase == "after" and settings.kind == "action values" else AUTOMATIC[phase]

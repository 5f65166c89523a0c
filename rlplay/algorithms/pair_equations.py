"""Algorithms that learn from answers, in symbols; `terms.py` reads these where settings.loss_type says so.

For one pair: s the score that the loss gives an answer, ℓ the log-probability of a token of it under the policy that is
trained, ℓ_ref that under the reference.
"""

from __future__ import annotations

from collections.abc import Iterator

from rlplay.algorithms.settings import Settings

_SCORES = {
    "ipo": "mean of ℓ − ℓ_ref over the answer",
    "simpo": "mean ℓ over the answer",
    "orpo": "log(p/(1 − p)), p = exp(mean ℓ over the answer)",
    "cpo": "Σ of ℓ over the answer",
    "reward": "score of the answer's last token by the reward model",
}
_IMITATION = "mean −ℓ over the chosen answers' tokens"


def pair_equations(s: Settings) -> Iterator[tuple[str, str]]:
    """The equations in order, as `terms` writes them; an empty right side where there is nothing to say."""
    yield "labels", _labels(s)
    yield "s", "" if s.loss_type == "sft" else _SCORES.get(s.loss_type, "Σ of ℓ − ℓ_ref over the answer")
    yield "Δ", "" if s.loss_type in ("sft", "kto") else "s of the chosen answer − s of the rejected one"
    yield "z", "max(0, mean s of answers put after other prompts)" if s.loss_type == "kto" else ""
    yield "L", _loss(s)


def _labels(s: Settings) -> str:
    if s.labeller == "user":
        return "yours"
    if s.label_noise == 0:
        return "by the gold score, unless a file has them"
    return f"the first answer with probability σ((gold₁ − gold₂)/{s.label_noise:g}), unless a file has them"


def _loss(s: Settings) -> str:
    if s.loss_type == "sft":
        return _IMITATION
    if s.loss_type == "kto":
        good, bad = _times(s.desirable_weight), _times(s.undesirable_weight)
        return f"mean of {good}(1 − σ({s.beta:g}·(s − z))) if chosen, {bad}(1 − σ({s.beta:g}·(z − s))) if rejected"
    weight = {"orpo": 1.0, "cpo": s.cpo_alpha, "simpo": s.cpo_alpha}.get(s.loss_type, 0.0)
    imitation = f" + {_times(weight)}{_IMITATION}" if weight else ""
    return f"mean over pairs of {_of_a_pair(s)}{imitation}"


def _of_a_pair(s: Settings) -> str:
    scaled = f"{_times(s.beta)}Δ"
    match s.loss_type:
        case "hinge":
            return f"max(0, 1 − {scaled})"
        case "ipo":
            return f"(Δ − {1 / (2 * s.beta):g})²"
        case "orpo":
            return f"−{_times(s.beta)}log σ(Δ)"
        case "reward":
            center = s.center_rewards_coefficient
            return "−log σ(Δ − margin)" + (f" + {_times(center)}(s of one + s of the other)²" if center else "")
        case "robust":
            return f"{_smoothed(s.label_smoothing, scaled, '+')}/{1 - 2 * s.label_smoothing:g}"
        case _:
            scaled += f" − {s.simpo_gamma:g}" if s.loss_type == "simpo" else ""
            return _smoothed(s.label_smoothing, scaled, "−") if s.label_smoothing else f"−log σ({scaled})"


def _smoothed(share: float, gap: str, sign: str) -> str:
    turned = f"−({gap})" if " " in gap else f"−{gap}"
    return f"(−{1 - share:g}·log σ({gap}) {sign} {share:g}·log σ({turned}))"


def _times(value: float) -> str:
    return "" if value == 1 else f"{value:g}·"

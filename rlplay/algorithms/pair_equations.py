"""The equations of algorithms that learn from pairs or examples; `equations.py` uses them if loss_type says so.

For one pair: s is the score that the loss gives an answer, ℓ the log-probability of one of its tokens under the trained
policy, ℓ_ref that under the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rlplay.algorithms.choice import call_choice
from rlplay.algorithms.expression_text import equation as equation_of
from rlplay.algorithms.pair_losses import IMITATIONS, PAIR_LOSSES, PairLoss, imitation_row, mixture
from rlplay.algorithms.settings import Settings
from rlplay.algorithms.symbols import Expression, Symbols, name
from rlplay.trace.numbers import compact

SYMBOLS = {
    "gap": "Δ", "mean_gap": "Δₙ", "policy_gap": "g", "ref_gap": "r", "score": "s", "kto_baseline": "z",
    "chosen_score": "s_chosen", "rejected_score": "s_rejected", "margin": "margin", "chosen": "chosen",
}  # fmt: skip
"""What the losses of pairs read, as equations write it."""

_GAPS = {
    "gap": "s of the chosen answer − s of the rejected one",
    "mean_gap": "s/n of the chosen answer − s/n of the rejected one",
    "policy_gap": "{} − the same of the rejected one",
    "ref_gap": "the same with ℓ_ref for ℓ",
    "kto_baseline": "max(0, mean s of answers paired with the wrong prompts)",
}
"""What some of them are."""
BALANCE = "experts·Σₑ (share of choices that are e)·(mean probability of e), over all tokens"
"""The load-balancing loss of a mixture of experts."""
_WEIGHT = "exp(mean of ℓ − log Σᵥ p² over the chosen answer) × the same of the rejected one"


def equation(term: Expression) -> str:
    """The expression in symbols. Here σ is the sigmoid, as there is no standard deviation."""
    return equation_of(term).replace("sigmoid(", "σ(")


def pair_equations(s: Settings) -> Iterator[tuple[str, str]]:
    """The equations in order, in the notation of `terms`; the right side is empty if there is no such equation."""
    yield "labels", _labels(s)
    yield "writer", "the policy writes the pairs that no file has" if s.answers_of == "policy" else ""
    of_tokens, read = scored(s), reads(s)
    if s.kind == "reward model":
        yield "s", "score of the answer's last token by the reward model"
    elif of_tokens is not None and read - {"policy_gap", "ref_gap"}:
        yield "s", equation(of_tokens)
    for quantity, text in _GAPS.items():
        if quantity in read:
            yield SYMBOLS[quantity], text.format(_of_chosen(s)) if quantity == "policy_gap" else text
    yield "W", _WEIGHT if weighted(s) else ""
    for each in several(s):
        yield f"L_{each}", _loss(s, each)
    yield "L", _sum(s) + balanced(s)


def balanced(s: Settings) -> str:
    """What a loss has more where the experts of a mixture are to be busy alike."""
    acts = s.router_aux_loss_coef and s.kind not in ("reward model", "action values")
    return f" + {_times(s.router_aux_loss_coef)}L_aux" if acts else ""


def _of_chosen(s: Settings) -> str:
    return equation(total(s, {})).replace("the answer", "the chosen answer")


def reads(s: Settings) -> frozenset[str]:
    """The quantities of `SYMBOLS` that the losses read."""
    read = {name for each in mixture(s) if each in PAIR_LOSSES for name in PAIR_LOSSES[each].reads}
    return frozenset(SYMBOLS) & read


def several(s: Settings) -> tuple[str, ...]:
    """The losses that are added up, where they are more than one."""
    return tuple(each for each, weight in mixture(s).items() if weight) if s.loss_weights else ()


def weighted(s: Settings) -> bool:
    """Whether pairs are weighted by how likely the policy finds their answers."""
    return s.use_weighting and s.loss_type in PAIR_LOSSES and PAIR_LOSSES[s.loss_type].mixes


def _labels(s: Settings) -> str:
    if s.labeller == "user":
        return "yours"
    if s.label_noise == 0:
        return "by the gold score, unless a file has them"
    return f"the first answer with probability σ((gold₁ − gold₂)/{compact(s.label_noise)}), unless a file has them"


def _sum(s: Settings) -> str:
    if s.loss_weights:
        return " + ".join(f"{_times(s.loss_weights[each])}L_{each}" for each in several(s)) or "0"
    if s.kind == "imitation":
        return _imitation(s)
    weight = PAIR_LOSSES[s.loss_type].imitation(s)
    return _loss(s, s.loss_type) + (f" + {_times(weight)}{_imitation(s)}" if weight else "")


def _loss(s: Settings, loss_type: str) -> str:
    """One of the losses, over all pairs."""
    if loss_type in IMITATIONS:
        return ("mean W·" if weighted(s) else "") + _imitation(s)
    of = "" if PAIR_LOSSES[loss_type].alone else " over pairs"
    return f"mean{of} of {equation(compared(s, loss_type=loss_type))}"


def _imitation(s: Settings) -> str:
    each = equation(call_choice(imitation_row(s.loss_type).compute, Symbols, {"logprobs": name("ℓ")}, s))
    return f"mean {each} over the chosen answers' tokens"


def compared(s: Settings, values: Mapping[str, Any] | None = None, loss_type: str = "") -> Expression:
    """The loss of one pair or answer, before the mean; with the `values` of its symbols, by name. `loss_type` is one of
    several losses."""
    known = values or {}
    quantities = {key: name(symbol, known.get(key)) for key, symbol in SYMBOLS.items()}
    found: Expression = call_choice(PAIR_LOSSES[loss_type or s.loss_type].compute, Symbols, quantities, s)
    return name("W", known.get("weight")) * found if weighted(s) else found


def scored(s: Settings, values: Mapping[str, Any] | None = None) -> Expression | None:
    """The score that the loss gives an answer; None if a reward model gives it or the loss has no scores."""
    loss = PAIR_LOSSES.get(s.loss_type)
    if loss is None or loss.share is None:
        return None
    summed = _total(loss, s, values or {}, name("ℓ_ref", (values or {}).get("ref_logprobs")))
    return summed if loss.rescaled is None else call_choice(loss.rescaled, Symbols, {"total": summed}, s)


def total(s: Settings, values: Mapping[str, Any]) -> Expression:
    """The same of the policy alone, without reference, before it is bent."""
    return _total(PAIR_LOSSES[s.loss_type], s, values, 0.0)


def _total(loss: PairLoss, s: Settings, values: Mapping[str, Any], ref_logprobs: Any) -> Expression:
    symbols = {"logprobs": "ℓ", "mask": "mask", "beyond": "beyond the shorter answer"}
    quantities = {key: name(symbol, values.get(key)) for key, symbol in symbols.items()}
    each = call_choice(loss.share, Symbols, {**quantities, "ref_logprobs": ref_logprobs}, s)
    return Symbols.sum_over(each, quantities["mask"])


def _times(value: float) -> str:
    return "" if value == 1 else f"{compact(value)}·"

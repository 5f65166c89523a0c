"""The equations of algorithms that learn from pairs or examples; `equations.py` uses them if loss_type says so.

For one pair: s is the score that the loss gives an answer, ℓ the log-probability of one of its tokens under the trained
policy, ℓ_ref that under the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rlplay.algorithms.choice import call_choice
from rlplay.algorithms.expression_text import equation
from rlplay.algorithms.pair_losses import PAIR_LOSSES
from rlplay.algorithms.settings import Settings
from rlplay.algorithms.symbols import Expression, Symbols, name
from rlplay.trace.numbers import compact

_IMITATION = "mean −ℓ over the chosen answers' tokens"


def pair_equations(s: Settings) -> Iterator[tuple[str, str]]:
    """The equations in order, in the notation of `terms`; the right side is empty if there is no such equation."""
    yield "labels", _labels(s)
    of_tokens = scored(s)
    if s.loss_type == "reward":
        yield "s", "score of the answer's last token by the reward model"
    yield "s", "" if of_tokens is None else equation(of_tokens)
    yield "Δ", "" if s.loss_type in ("sft", "kto") else "s of the chosen answer − s of the rejected one"
    yield "z", "max(0, mean s of answers paired with the wrong prompts)" if s.loss_type == "kto" else ""
    yield "L", _loss(s)


def _labels(s: Settings) -> str:
    if s.labeller == "user":
        return "yours"
    if s.label_noise == 0:
        return "by the gold score, unless a file has them"
    return f"the first answer with probability σ((gold₁ − gold₂)/{compact(s.label_noise)}), unless a file has them"


def _loss(s: Settings) -> str:
    if s.loss_type == "sft":
        return _IMITATION
    loss = PAIR_LOSSES[s.loss_type]
    weight, of = loss.imitation(s), "" if s.loss_type == "kto" else " over pairs"
    imitation = f" + {_times(weight)}{_IMITATION}" if weight else ""
    return f"mean{of} of {equation(compared(s))}{imitation}"


def compared(s: Settings, values: Mapping[str, Any] | None = None) -> Expression:
    """The loss of one pair or answer, before the mean; with the `values` of its symbols, by name."""
    known = values or {}
    symbols = {
        "gap": "Δ",
        "score": "s",
        "kto_baseline": "z",
        "chosen_score": "s_chosen",
        "rejected_score": "s_rejected",
    }
    quantities = {key: name(symbols.get(key, key), known.get(key)) for key in (*symbols, "margin", "chosen")}
    found: Expression = call_choice(PAIR_LOSSES[s.loss_type].compute, Symbols, quantities, s)
    return found


def scored(s: Settings, values: Mapping[str, Any] | None = None) -> Expression | None:
    """The score that the loss gives an answer; None if a reward model gives it or the loss has no scores."""
    loss = PAIR_LOSSES.get(s.loss_type)
    if loss is None or loss.share is None:
        return None
    known = values or {}
    symbols = {"logprobs": "ℓ", "ref_logprobs": "ℓ_ref", "mask": "mask"}
    quantities = {key: name(symbol, known.get(key)) for key, symbol in symbols.items()}
    total = Symbols.sum_over(call_choice(loss.share, Symbols, quantities, s), quantities["mask"])
    return total if loss.rescaled is None else call_choice(loss.rescaled, Symbols, quantities | {"total": total}, s)


def _times(value: float) -> str:
    return "" if value == 1 else f"{compact(value)}·"

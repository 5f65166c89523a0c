"""The losses of pairs, filled with the scores of the two answers that are compared."""

from __future__ import annotations

import math

from rlplay.scenario.settings import Settings
from rlplay.scenario.terms import equation, terms
from rlplay.trace.records import Array
from rlplay.ui.formula.parts import Line, Numbers, Pair, note, stripped


def pair(s: Settings, numbers: Numbers) -> list[Line]:
    """The equations of the pair that the token's answer belongs to, each filled in as far as its numbers are known."""
    told, of = terms(s), numbers.pair
    lines: list[Line] = []
    for left in ("s", "Δ", "z", "L"):
        if left in told:
            lines.append([(equation(left, told[left]), "plain"), *_filled(s, left, of)])
    if of is None:
        return [*lines, note("no label yet (phase ② score), or left out: nothing is learned from this answer")]
    return [*lines, note(f"this is the {'chosen' if of.chosen else 'rejected'} answer")]


def score(loss_type: str, logprobs: Array, ref_logprobs: Array | None) -> float | None:
    """s, what the loss takes an answer of these tokens' log-probabilities for; None where it scores none."""
    mean = float(logprobs.mean())
    match loss_type:
        case "sft":
            return None
        case "cpo":
            return float(logprobs.sum())
        case "simpo":
            return mean
        case "orpo":
            return mean - math.log(-math.expm1(mean))
    if ref_logprobs is None:
        return None
    gaps = logprobs - ref_logprobs
    return float(gaps.mean() if loss_type == "ipo" else gaps.sum())


def value(s: Settings, of: Pair) -> float | None:
    """What the pair's comparison adds to L before the mean, imitation left aside; None before it is known."""
    gap, smoothing = _gap(of), s.label_smoothing
    if s.loss_type == "kto":
        return _kto(s, of)
    if gap is None:
        return None
    scaled = s.beta * gap - (s.simpo_gamma if s.loss_type == "simpo" else 0.0)
    match s.loss_type:
        case "hinge":
            loss = max(0.0, 1 - scaled)
        case "ipo":
            loss = (gap - 1 / (2 * s.beta)) ** 2
        case "orpo":
            loss = s.beta * _nll(gap)
        case "robust":
            loss = ((1 - smoothing) * _nll(scaled) - smoothing * _nll(-scaled)) / (1 - 2 * smoothing)
        case _:
            loss = (1 - smoothing) * _nll(scaled) + smoothing * _nll(-scaled)
    return loss


def _filled(s: Settings, left: str, of: Pair | None) -> Line:
    if of is None:
        return []
    known = {"s": of.own, "Δ": _gap(of), "z": of.baseline, "L": value(s, of)}[left]
    if known is None:
        return []
    return [({"L": "; this one: ", "s": ": here "}.get(left, " = "), "note"), (stripped(known), "won")]


def _gap(of: Pair) -> float | None:
    if of.own is None or of.other is None:
        return None
    return of.own - of.other if of.chosen else of.other - of.own


def _kto(s: Settings, of: Pair) -> float | None:
    if of.own is None or of.baseline is None:
        return None
    ahead = of.own - of.baseline if of.chosen else of.baseline - of.own
    weight = s.desirable_weight if of.chosen else s.undesirable_weight
    return weight * (1 - 1 / (1 + math.exp(-s.beta * ahead)))


def _nll(x: float) -> float:
    """−log σ(x), without overflow."""
    return math.log1p(math.exp(-abs(x))) + max(-x, 0.0)

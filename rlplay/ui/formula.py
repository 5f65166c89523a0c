"""The objective of one token, written out with its numbers: pure functions from settings and numbers to text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from rlplay.scenario.settings import Settings
from rlplay.scenario.terms import WORDS, corrected, equation, estimator, in_loss, kept_small, surrogate, terms
from rlplay.ui.numbers import plain, signed
from rlplay.ui.pairs import learns_from_answers
from rlplay.ui.picture import number

Kind = Literal["plain", "won", "lost", "note"]
Line = list[tuple[str, Kind]]


@dataclass(frozen=True)
class Numbers:
    """What the records hold about one token; None where nothing was computed yet."""

    logprob: float | None = None
    advantage: float | None = None
    ratio: float | None = None
    """At the level of the settings: the token's own, or its answer's."""
    clip_state: int | None = None
    kl: float | None = None
    """The KL term as trained: already times w where the settings correct its bias."""
    beta: float | None = None
    """The KL's weight in that step, where it adapts."""
    dloss_dlogp: float | None = None


def settled(settings: Mapping[str, Any]) -> Settings:
    """Recorded settings as such; those that this version does not know are passed over."""
    return msgspec.convert({name: settings[name] for name in Settings.__struct_fields__ if name in settings}, Settings)


def bounds(settings: Mapping[str, Any]) -> tuple[float, float]:
    """The band [1 − ε, 1 + ε_high] of the ratio."""
    low, high = settled(settings).clip_range
    return 1 - low, 1 + high


def objective(settings: Mapping[str, Any], numbers: Numbers) -> list[Line]:
    """The loss of one token: in symbols, then filled in as far as the numbers are known."""
    s = settled(settings)
    if learns_from_answers(settings):
        # Its numbers are the answer's and its pair's, not this token's.
        said: list[Line] = [[(equation(*term), "plain")] for term in terms(s).items() if term[0] not in WORDS]
        return said + _gradient(s, numbers.dloss_dlogp)
    lines: list[Line] = [[(_symbols(s), "plain")]]
    if s.importance_sampling_level != "token" and "w" in terms(s):
        lines.append([(f"w = {terms(s)['w']}", "note")])
    lines += _policy_term(s, numbers)
    if "counts" in terms(s):
        lines.append([(f"Counted: {terms(s)['counts']}.", "note")])
    if in_loss(s):
        lines += _kl_term(s, numbers)
    elif s.kl_placement == "constraint":
        lines.append([(f"subject to {kept_small(s)}, mean over all tokens", "note")])
    elif s.kl_placement == "reward" and s.beta:
        lines.append([(f"KL: β·{estimator(s)[0]} with β = {s.beta:g} is taken off each token's reward", "note")])
    return lines + _gradient(s, numbers.dloss_dlogp)


def why_clipped(settings: Mapping[str, Any], numbers: Numbers) -> list[str]:
    """Why the surrogate's gradient is 0 at this token, in short and in words; empty if it is not."""
    s = settled(settings)
    if not numbers.clip_state:
        return []
    return _why_clipped(s, numbers.clip_state) if s.surrogate == "ppo" else _why_bounded(s, numbers.clip_state > 0)


def _symbols(s: Settings) -> str:
    return f"{surrogate(s)} + β·{_kl_symbol(s)}" if in_loss(s) else surrogate(s)


def _kl_symbol(s: Settings) -> str:
    """The term as it is trained; times w it keeps its gradient unbiased for answers of an older policy."""
    return f"{estimator(s)[0]}{'·w' if corrected(s) else ''}"


def _gradient(s: Settings, derivative: float | None) -> list[Line]:
    """What the optimizer step really did with the token, whatever the terms above make one expect."""
    if derivative is None:
        return []
    effect = "leaves it alone" if derivative == 0 else "pulls it up" if derivative < 0 else "pushes it down"
    lines: list[Line] = [[(f"∂L/∂ℓ = {number(derivative)}: {effect}", "plain")]]
    if s.entropy_coef:
        lines.append([("The entropy bonus acts on all candidates, beside this.", "note")])
    return lines


def _policy_term(s: Settings, numbers: Numbers) -> list[Line]:
    advantage = numbers.advantage
    if advantage is None:
        return [[("A comes with phase ③ credit", "note")]]
    logprob, ratio = numbers.logprob, numbers.ratio
    if logprob is None or ratio is None:
        missing = "ℓ" if s.surrogate == "logp" else "w"
        return [[(f"A = {signed(advantage).strip()}; {missing} comes with phase ④ update", "note")]]
    if s.surrogate == "ppo":
        return _clipped(s, advantage, ratio, numbers.clip_state or 0)
    lines = [_filled(s, advantage, logprob, ratio)]
    if numbers.clip_state:
        return lines + [[(text, "note")] for text in _why_bounded(s, numbers.clip_state > 0)]
    return [*lines, [(_direction(s, advantage), "note")]]


def _filled(s: Settings, advantage: float, logprob: float, ratio: float) -> Line:
    """The surrogates without min, with the token's numbers."""
    factor, ell = _factor(advantage), f"({signed(logprob).strip()})"
    match s.surrogate:
        case "logp":
            written, value = f"({signed(advantage).strip()})·{ell}", advantage * logprob
        case "ratio" | "trpo":
            written, value = f"{plain(ratio)}·{factor}", ratio * advantage
        case "cispo":
            cap = s.clip_range[1]
            written, value = f"min({plain(ratio)}, {cap:g})·{factor}·{ell}", min(ratio, cap) * advantage * logprob
        case "sapo":
            tau = s.sapo_temperature_pos if advantage > 0 else s.sapo_temperature_neg
            soft = 1 / (1 + math.exp(-tau * (ratio - 1)))
            written, value = f"4/{tau:g}·{plain(soft)}·{factor}", 4 / tau * soft * advantage
        case _:
            # The weight is of the whole answer; one token's numbers do not give it.
            return [(f"A = {signed(advantage).strip()}, ℓ = {signed(logprob).strip()}", "plain")]
    return [(f"= −{written} = ", "plain"), (signed(-value).strip(), "won")]


def _clipped(s: Settings, advantage: float, ratio: float, clip_state: int) -> list[Line]:
    low, high = 1 - s.clip_range[0], 1 + s.clip_range[1]
    first = ratio if s.delta is None else min(ratio, s.delta)
    held = min(max(ratio, low), high)
    free, bound = first * advantage, held * advantage
    factor = _factor(advantage)
    kinds: tuple[Kind, Kind] = ("lost", "won") if abs(clip_state) == 1 else ("won", "lost")
    if held == ratio:
        kinds = ("won", "won")
    lines: list[Line] = [
        [
            ("= −min(", "plain"),
            (f"{plain(first)}·{factor}", kinds[0]),
            (", ", "plain"),
            (f"{plain(held)}·{factor}", kinds[1]),
            (")", "plain"),
        ],
        [
            ("= −min(", "plain"),
            (signed(free).strip(), kinds[0]),
            (", ", "plain"),
            (signed(bound).strip(), kinds[1]),
            (") = ", "plain"),
            (signed(-min(free, bound)).strip(), "won"),
        ],
    ]
    if clip_state:
        return lines + [[(text, "note")] for text in _why_clipped(s, clip_state)]
    beyond = held != ratio
    note = "outside the band on the harmless side: it still pulls" if beyond else _direction(s, advantage)
    return [*lines, [(note, "note")]]


def _why_clipped(s: Settings, clip_state: int) -> list[str]:
    low, high = s.clip_range
    bound = {1: f"{1 + high:g}", -1: f"{1 - low:g}", 2: f"{s.delta or 0:g}"}[clip_state]
    head, moved = {
        1: (f"▲ clipped: A > 0 and w > {bound}", "more"),
        -1: (f"▼ clipped: A < 0 and w < {bound}", "less"),
        2: (f"▲ clipped: A < 0 and w > δ = {bound}", "more"),
    }[clip_state]
    whose = "It is" if s.importance_sampling_level == "token" else "Its answer, by w, is"
    return [
        head,
        f"{whose} already {moved} than {bound} times as likely as when it was sampled. There min takes "
        f"{bound}·A, a constant: moving it further gains nothing, so {_rest(s)}.",
    ]


def _why_bounded(s: Settings, up: bool) -> list[str]:
    """A token whose own log-ratio is bounded before the answer's ratio is taken."""
    low, high = s.clip_range
    own = f"A > 0 and ℓ − ℓ_old > {high:g}" if up else f"A < 0 and ℓ − ℓ_old < −{low:g}"
    return [
        f"{'▲' if up else '▼'} bounded: {own}",
        f"In the answer's ratio it counts with the bound, a constant: moving it further gains nothing, so {_rest(s)}.",
    ]


def _rest(s: Settings) -> str:
    return f"it no longer pulls{'; only the KL term does' if in_loss(s) else ''}"


def _direction(s: Settings, advantage: float) -> str:
    with_kl = in_loss(s)
    if advantage == 0:
        return "A = 0: only the KL term pulls" if with_kl else "A = 0: no pull"
    what = "the surrogate " if with_kl else ""
    return f"A > 0: {what}pulls this token up" if advantage > 0 else f"A < 0: {what}pushes this token down"


def _kl_term(s: Settings, numbers: Numbers) -> list[Line]:
    beta, symbol = s.beta if numbers.beta is None else numbers.beta, _kl_symbol(s)
    name, meaning = estimator(s)
    lines: list[Line] = [[(f"{name} = {meaning}", "note")]]
    if numbers.kl is None:
        return lines
    factor = f"({symbol})" if "·" in symbol else symbol
    filled = f"+ β·{factor} = {beta:.3g}·{plain(numbers.kl, 3)} = {signed(beta * numbers.kl, 4).strip()}"
    return [[(filled, "plain")], *lines]


def _factor(advantage: float) -> str:
    return f"({signed(advantage).strip()})" if advantage < 0 else plain(advantage)

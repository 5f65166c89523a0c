"""The surrogates filled with one token's numbers: what counts in min and clip, and why a token no longer pulls."""

from __future__ import annotations

import math

from rlplay.scenario.settings import Settings
from rlplay.ui.formula.parts import Kind, Line, Numbers, bracketed, digits, note, only_these_pull, stripped
from rlplay.ui.numbers import plain

_LOG_W = (math.log(1e-8), 20.0)
"""Between these VESPO holds log W, as TRL does."""


def value(s: Settings, numbers: Numbers) -> float | None:
    """S, the surrogate of one token; None before it is known."""
    a, ell, w = numbers.advantage, numbers.logprob, numbers.ratio
    if a is None or ell is None or w is None:
        return None
    match s.surrogate:
        case "logp":
            gain = a * ell
        case "ratio" | "trpo":
            gain = w * a
        case "ppo":
            gain = min(_free(s, w) * a, _held(s, w) * a)
        case "cispo":
            gain = min(w, s.clip_range[1]) * a * ell
        case "sapo":
            gain = _soft(s, a, w) * a
        case "vespo":
            gain = _phi(s, a, numbers.change or 0.0) * a * ell
    return -gain


def filled(s: Settings, numbers: Numbers) -> list[Line]:
    """The surrogate with this token's numbers, and what its gradient does."""
    a, ell, w = numbers.advantage, numbers.logprob, numbers.ratio
    if a is None:
        return []
    if ell is None or w is None:
        return [note(f"{'ℓ' if s.surrogate == 'logp' else 'w'} appears after ④ update")]
    if s.surrogate == "ppo":
        lines = _min(s, a, w, numbers.clip_state or 0)
    else:
        written, result = _product(s, a, ell, w, numbers), value(s, numbers)
        lines = [[(f"= −{written} = ", "plain"), (stripped(result or 0.0), "won")]]
    return lines + [note(text) for text in (why_clipped(s, numbers) or [_effect(s, a, w), *_unclipped(s, w)])]


def why_clipped(s: Settings, numbers: Numbers) -> list[str]:
    """Why the surrogate's gradient is 0 at this token, in short and in words; empty if it is not."""
    if not numbers.clip_state:
        return []
    return _at_bound(s, numbers.clip_state) if s.surrogate == "ppo" else _within_mean(s, numbers.clip_state > 0)


def _unclipped(s: Settings, w: float) -> list[str]:
    """Why a token inside the band is not clipped."""
    if s.surrogate != "ppo" or _held(s, w) != w:
        return []
    low, high = s.clip_range
    one_step = s.num_iterations * s.num_minibatches == 1
    always = "; with one optimizer step per batch w is always 1" if one_step else ""
    return [f"not clipped: w is inside {1 - low:g} … {1 + high:g}{always}"]


def _free(s: Settings, w: float) -> float:
    return w if s.delta is None else min(w, s.delta)


def _held(s: Settings, w: float) -> float:
    low, high = s.clip_range
    return min(max(w, 1 - low), 1 + high)


def _tau(s: Settings, a: float) -> float:
    return s.sapo_temperature_pos if a > 0 else s.sapo_temperature_neg


def _soft(s: Settings, a: float, w: float) -> float:
    return 4 / _tau(s, a) / (1 + math.exp(-_tau(s, a) * (w - 1)))


def _phi(s: Settings, a: float, change: float) -> float:
    k, decay = (s.vespo_k_pos, s.vespo_lambda_pos) if a >= 0 else (s.vespo_k_neg, s.vespo_lambda_neg)
    log_w = min(max(change, _LOG_W[0]), _LOG_W[1])
    return math.exp(decay + k * log_w - decay * math.exp(log_w))


def _product(s: Settings, a: float, ell: float, w: float, numbers: Numbers) -> str:
    """The factors of a surrogate without min."""
    factor, places = bracketed(a), digits(s)
    match s.surrogate:
        case "logp":
            return f"{factor}·{bracketed(ell)}"
        case "cispo":
            return f"min({plain(w)}, {s.clip_range[1]:g})·{factor}·{bracketed(ell)}"
        case "sapo":
            return f"4/{_tau(s, a):g}·{plain(_soft(s, a, w) * _tau(s, a) / 4)}·{factor}"
        case "vespo":
            return f"{plain(_phi(s, a, numbers.change or 0.0))}·{factor}·{bracketed(ell)}"
        case _:
            return f"{plain(w, places)}·{factor}"


def _min(s: Settings, a: float, w: float, clip_state: int) -> list[Line]:
    """PPO's two branches: the one that min takes is marked, both where they are the same."""
    free, held, places = _free(s, w), _held(s, w), digits(s)
    kinds: tuple[Kind, Kind] = ("lost", "won") if abs(clip_state) == 1 else ("won", "lost")
    if held == free:
        kinds = ("won", "won")
    factor, one, other = bracketed(a), free * a, held * a
    return [
        [
            ("= −min(", "plain"),
            (f"{plain(free, places)}·{factor}", kinds[0]),
            (", ", "plain"),
            (f"{plain(held, places)}·{factor}", kinds[1]),
            (")", "plain"),
        ],
        [
            ("= −min(", "plain"),
            (stripped(one, places), kinds[0]),
            (", ", "plain"),
            (stripped(other, places), kinds[1]),
            (") = ", "plain"),
            (stripped(-min(one, other), places), "won"),
        ],
    ]


def _at_bound(s: Settings, clip_state: int) -> list[str]:
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


def _within_mean(s: Settings, up: bool) -> list[str]:
    """A token whose own log-ratio is bounded before the answer's ratio is taken."""
    low, high = s.clip_range
    own = f"A > 0 and ℓ − ℓ_old > {high:g}" if up else f"A < 0 and ℓ − ℓ_old < −{low:g}"
    return [
        f"{'▲' if up else '▼'} bounded: {own}",
        f"In the answer's ratio it counts with the bound, a constant: moving it further gains nothing, so {_rest(s)}.",
    ]


def _rest(s: Settings) -> str:
    others = only_these_pull(s)
    return f"it no longer pulls{f'; {others}' if others else ''}"


def _effect(s: Settings, a: float, w: float) -> str:
    """What the surrogate does with a token that is not clipped."""
    others = only_these_pull(s)
    if a == 0:
        return f"A = 0: {others or 'no pull'}"
    if s.surrogate == "ppo" and _held(s, w) != w:
        return "outside the band on the harmless side: it still pulls"
    if s.surrogate == "cispo" and w > s.clip_range[1]:
        return f"w is above the cap: it pulls with the weight {s.clip_range[1]:g}, not {plain(w)}"
    what = "the surrogate " if others else ""
    return f"A > 0: {what}pulls this token up" if a > 0 else f"A < 0: {what}pushes this token down"

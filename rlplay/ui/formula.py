"""The objective of one token, written out with its numbers: pure functions from settings and numbers to text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rlplay.ui.numbers import plain, signed
from rlplay.ui.picture import number

Kind = Literal["plain", "won", "lost", "note"]
Line = list[tuple[str, Kind]]

ESTIMATORS = {"k1": "log p − log p_ref", "k2": "½·(log p − log p_ref)²", "k3": "p_ref/p − log(p_ref/p) − 1"}


@dataclass(frozen=True)
class Numbers:
    """What the records hold about one token; None where nothing was computed yet."""

    logprob: float | None = None
    advantage: float | None = None
    ratio: float | None = None
    clip_state: int | None = None
    kl: float | None = None
    """The KL term as trained: already times w where the settings correct its bias."""
    dloss_dlogp: float | None = None


def bounds(settings: Mapping[str, Any]) -> tuple[float, float]:
    """The band [1 − ε, 1 + ε_high] of the ratio."""
    high = settings.get("epsilon_high")
    return 1 - settings["epsilon"], 1 + (settings["epsilon"] if high is None else high)


def symbols(settings: Mapping[str, Any]) -> str:
    """The loss of one token under these settings, in symbols."""
    if settings["surrogate"] == "logp":
        text = "−A·ℓ"
    else:
        low, high = bounds(settings)
        text = f"−min(w·A, clip(w, {low:g}, {high:g})·A)"
    return f"{text} + β·{_kl_symbol(settings)}" if _has_kl_term(settings) else text


def objective(settings: Mapping[str, Any], numbers: Numbers) -> list[Line]:
    """The loss of one token: in symbols, then filled in as far as the numbers are known."""
    lines: list[Line] = [[(symbols(settings), "plain")]]
    lines += _policy_term(settings, numbers)
    if _has_kl_term(settings):
        lines += _kl_term(settings, numbers)
    elif settings["kl_placement"] == "reward" and settings["beta"]:
        estimator = settings["kl_estimator"]
        lines.append([(f"KL: β·{estimator} with β = {settings['beta']:g} is taken off each token's reward", "note")])
    return lines + _gradient(numbers.dloss_dlogp)


def _has_kl_term(settings: Mapping[str, Any]) -> bool:
    return bool(settings["kl_placement"] == "loss" and settings["beta"] > 0)


def _kl_symbol(settings: Mapping[str, Any]) -> str:
    """The term as it is trained; times w it keeps its gradient unbiased for answers of an older policy."""
    return f"{settings['kl_estimator']}{'·w' if settings.get('use_bias_correction_kl') else ''}"


def _gradient(derivative: float | None) -> list[Line]:
    """What the optimizer step really did with the token, whatever the terms above make one expect."""
    if derivative is None:
        return []
    effect = "leaves it alone" if derivative == 0 else "pulls it up" if derivative < 0 else "pushes it down"
    return [[(f"∂L/∂ℓ = {number(derivative)}: {effect}", "plain")]]


def _policy_term(settings: Mapping[str, Any], numbers: Numbers) -> list[Line]:
    advantage = numbers.advantage
    if advantage is None:
        return [[("A comes with phase ③ credit", "note")]]
    if settings["surrogate"] == "logp":
        if numbers.logprob is None:
            return [[(f"A = {signed(advantage)}; ℓ comes with phase ④ update", "note")]]
        filled = f"= −({signed(advantage).strip()})·({signed(numbers.logprob).strip()}) = "
        return [
            [(filled, "plain"), (signed(-advantage * numbers.logprob).strip(), "won")],
            [(_direction(settings, advantage), "note")],
        ]
    if numbers.ratio is None:
        return [[(f"A = {signed(advantage).strip()}; w comes with phase ④ update", "note")]]
    return _clipped(settings, advantage, numbers.ratio, numbers.clip_state or 0)


def _clipped(settings: Mapping[str, Any], advantage: float, ratio: float, clip_state: int) -> list[Line]:
    low, high = bounds(settings)
    held = min(max(ratio, low), high)
    free, bound = ratio * advantage, held * advantage
    factor = f"({signed(advantage).strip()})" if advantage < 0 else plain(advantage)
    kinds: tuple[Kind, Kind] = ("lost", "won") if clip_state else ("won", "lost")
    if held == ratio:
        kinds = ("won", "won")
    lines: list[Line] = [
        [
            ("= −min(", "plain"),
            (f"{plain(ratio)}·{factor}", kinds[0]),
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
        lines += [[(text, "note")] for text in _why_clipped(clip_state > 0, (low, high), _has_kl_term(settings))]
    elif held != ratio:
        lines.append([("outside the band on the harmless side: it still pulls", "note")])
    else:
        lines.append([(_direction(settings, advantage), "note")])
    return lines


def _why_clipped(up: bool, band: tuple[float, float], with_kl: bool) -> list[str]:
    bound = f"{band[1] if up else band[0]:g}"
    return [
        f"▲ clipped: A > 0 and w > {bound}" if up else f"▼ clipped: A < 0 and w < {bound}",
        f"It is already {'more' if up else 'less'} than {bound} times as likely as when it was sampled. "
        f"There min takes {bound}·A, a constant: moving it further gains nothing, so it no longer pulls"
        f"{'; only the KL term does' if with_kl else ''}.",
    ]


def _direction(settings: Mapping[str, Any], advantage: float) -> str:
    with_kl = _has_kl_term(settings)
    if advantage == 0:
        return "A = 0: only the KL term pulls" if with_kl else "A = 0: no pull"
    what = "the surrogate " if with_kl else ""
    return f"A > 0: {what}pulls this token up" if advantage > 0 else f"A < 0: {what}pushes this token down"


def _kl_term(settings: Mapping[str, Any], numbers: Numbers) -> list[Line]:
    estimator, beta, symbol = settings["kl_estimator"], settings["beta"], _kl_symbol(settings)
    meaning: Line = [(f"{estimator} = {ESTIMATORS[estimator]}", "note")]
    if numbers.kl is None:
        return [meaning]
    factor = f"({symbol})" if "·" in symbol else symbol
    return [
        [(f"+ β·{factor} = {beta:g}·{plain(numbers.kl, 3)} = {signed(beta * numbers.kl, 4).strip()}", "plain")],
        meaning,
    ]

"""The losses of pairs, written a second time: numpy, pair by pair, from the papers' formulas, with their derivatives.

Nothing here shares code with `rlplay.engine`; completions are lists of one array of token log-probabilities each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Row = np.ndarray[Any, Any]


def sigma(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def score(name: str, own: Row, ref: Row) -> float:
    """What the loss compares: a sum or mean of log-ratios or log-probabilities."""
    per_token = own if name in ("simpo", "cpo", "orpo") else own - ref
    return float(per_token.mean() if name in ("simpo", "orpo", "ipo") else per_token.sum())


def pair(name: str, c: float, r: float, s: dict[str, Any], z: float = 0.0) -> tuple[float, float, float]:
    """Loss of a pair with scores `c` and `r`, and its derivatives by them. KTO's is the sum of its two halves."""
    beta, eps = s["beta"], s["label_smoothing"]
    gap = c - r
    if name in ("sigmoid", "cpo", "simpo"):
        x = beta * gap - (s["simpo_gamma"] if name == "simpo" else 0)
        loss = -(1 - eps) * math.log(sigma(x)) - eps * math.log(sigma(-x))
        slope = beta * (-(1 - eps) * sigma(-x) + eps * sigma(x))
        return loss, slope, -slope
    if name == "robust":
        x = beta * gap
        loss = ((1 - eps) * -math.log(sigma(x)) - eps * -math.log(sigma(-x))) / (1 - 2 * eps)
        slope = beta * (-(1 - eps) * sigma(-x) - eps * sigma(x)) / (1 - 2 * eps)
        return loss, slope, -slope
    if name == "hinge":
        slope = -beta if beta * gap < 1 else 0.0
        return max(0.0, 1 - beta * gap), slope, -slope
    if name == "ipo":
        slope = 2 * (gap - 1 / (2 * beta))
        return (gap - 1 / (2 * beta)) ** 2, slope, -slope
    if name == "kto":
        good, bad = sigma(beta * (c - z)), sigma(beta * (z - r))
        w, v = s["desirable_weight"], s["undesirable_weight"]
        return w * (1 - good) + v * (1 - bad), -w * beta * good * (1 - good), v * beta * bad * (1 - bad)
    assert name == "orpo"
    odds = [math.exp(p) / (1 - math.exp(p)) for p in (c, r)]
    x = math.log(odds[0] / odds[1])
    slope = -beta * sigma(-x)
    # d log-odds / d mean log-probability = 1 / (1 - p)
    return -beta * math.log(sigma(x)), slope / (1 - math.exp(c)), -slope / (1 - math.exp(r))


def whole(
    name: str, chosen: list[tuple[Row, Row]], rejected: list[tuple[Row, Row]], s: dict[str, Any], z: float = 0.0
) -> tuple[float, list[Row]]:
    """The loss of a batch of (own, reference) log-probabilities, and its derivative by each own one, chosen first."""
    tokens = sum(len(own) for own, _ in chosen)
    imitation = -sum(float(own.sum()) for own, _ in chosen) / tokens
    weight = {"sft": 1.0, "orpo": 1.0, "cpo": s["cpo_alpha"], "simpo": s["cpo_alpha"]}.get(name, 0.0)
    loss = weight * imitation
    pulls = [np.full(len(own), -weight / tokens) for own, _ in chosen] + [np.zeros(len(own)) for own, _ in rejected]
    if name == "sft":
        return loss, pulls
    halves = 2 if name == "kto" else 1
    for i, ((c, cr), (r, rr)) in enumerate(zip(chosen, rejected, strict=True)):
        value, dc, dr = pair(name, score(name, c, cr), score(name, r, rr), s, z)
        loss += value / (halves * len(chosen))
        mean = name in ("simpo", "orpo", "ipo")
        pulls[i] += dc / (halves * len(chosen)) / (len(c) if mean else 1)
        pulls[len(chosen) + i] += dr / (halves * len(chosen)) / (len(r) if mean else 1)
    return loss, pulls


def bradley_terry(c: float, r: float, margin: float, center: float) -> float:
    return -math.log(sigma(c - r - margin)) + center * (c + r) ** 2

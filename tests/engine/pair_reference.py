"""The losses of pairs, written a second time: numpy, pair by pair, from the papers' formulas, with their derivatives.

Nothing here shares code with `rlplay.engine`; completions are lists of one array of token log-probabilities each.
Derivatives by scores are central differences of the formulas, in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Row = np.ndarray[Any, Any]
FREE = ("simpo", "cpo", "cpo_hinge", "cpo_ipo", "orpo")
MEANS = ("simpo", "cpo_ipo", "orpo")
SINGLE = ("kto", "apo_zero_unpaired")
_STEP = 4e-4


def sigma(x: float) -> float:
    return math.exp(log_sigma(x))


def log_sigma(x: float) -> float:
    return -float(np.logaddexp(0.0, -x))


def rewarded(name: str, own: Row, ref: Row, s: dict[str, Any], shared: int | None = None) -> float:
    """What β multiplies in TRL's rewards: a sum or mean of log-ratios or log-probabilities, bent only without one."""
    per_token = own if name in FREE else own - ref
    if name not in FREE and name not in SINGLE and s["ld_alpha"] is not None and shared is not None:
        per_token = np.where(np.arange(len(own)) < shared, per_token, s["ld_alpha"] * per_token)
    total = float(per_token.mean() if name in MEANS else per_token.sum())
    alpha = s["alpha"] if name in FREE and name != "orpo" else 0.0
    return (1 - math.exp(total) ** -alpha) / alpha if alpha else total


def bent(total: float, s: dict[str, Any]) -> float:
    """f′ of the ratio u whose logarithm is `total`, as f-DPO's table has it."""
    u, a = math.exp(total), s["f_alpha_divergence_coef"]
    return {
        "reverse_kl": math.log(u), "forward_kl": 1 - 1 / u, "js_divergence": math.log(2 * u / (1 + u)),
        "alpha_divergence": math.log(u) if a == 1 else (u ** (a - 1) - 1) / (a - 1),
    }[s["f_divergence_type"]]  # fmt: skip


def smoothed(x: float, eps: float) -> float:
    return -(1 - eps) * log_sigma(x) - eps * log_sigma(-x)


def exo(x: float, eps: float) -> float:
    q = np.array([sigma(x), sigma(-x)])
    return float((q * np.log(q / np.array([1 - eps, eps]))).sum())


def disco(x: float, tau: float) -> float:
    mixed = sigma(x / tau)
    return (1 - mixed) * -log_sigma(x) + mixed * math.exp(-x)


def singly(c: float, r: float, z: float, s: dict[str, Any]) -> float:
    good, bad = sigma(s["beta"] * (c - z)), sigma(s["beta"] * (z - r))
    return float(s["desirable_weight"] * (1 - good) + s["undesirable_weight"] * (1 - bad))


def odds(c: float, r: float, beta: float) -> float:
    of = [math.exp(p) / (1 - math.exp(p)) for p in (c, r)]
    return -beta * log_sigma(math.log(of[0] / of[1]))


def pair(name: str, c: float, r: float, s: dict[str, Any], z: float, lengths: tuple[int, int]) -> float:
    """Loss of a pair with scores `c` and `r`. That of single answers is the sum of both."""
    beta, eps = s["beta"], s["label_smoothing"]
    x, mean = beta * (c - r), c / lengths[0] - r / lengths[1]
    losses: dict[str, Callable[[], float]] = {
        "sigmoid": lambda: smoothed(x, eps),
        "cpo": lambda: smoothed(x, eps),
        "simpo": lambda: smoothed(x - s["simpo_gamma"], eps),
        "sigmoid_norm": lambda: -log_sigma(beta * mean),
        "robust": lambda: ((1 - eps) * -log_sigma(x) - eps * -log_sigma(-x)) / (1 - 2 * eps),
        "hinge": lambda: max(0.0, 1 - x),
        "cpo_hinge": lambda: max(0.0, 1 - x),
        "ipo": lambda: (mean - 1 / (2 * beta)) ** 2,
        "cpo_ipo": lambda: (c - r - 1 / (2 * beta)) ** 2,
        "exo_pair": lambda: exo(x, eps),
        "discopop": lambda: disco(x, s["discopop_tau"]),
        "nca_pair": lambda: -log_sigma(beta * c) - (log_sigma(-beta * c) + log_sigma(-beta * r)) / 2,
        "bco_pair": lambda: -log_sigma(beta * c) - math.log(1 - sigma(beta * r)),
        "sppo_hard": lambda: (c - 1 / beta * (1 - 0.5)) ** 2 + (r - 1 / beta * (0 - 0.5)) ** 2,
        "apo_zero": lambda: -sigma(beta * c) + sigma(beta * r) + 1,
        "apo_down": lambda: sigma(beta * c) - sigma(x) + 1,
        "kto": lambda: singly(c, r, z, s),
        "apo_zero_unpaired": lambda: singly(c, r, 0.0, s),
        "orpo": lambda: odds(c, r, beta),
    }
    return losses[name]()


def total_of(
    name: str, chosen: list[tuple[Row, Row]], rejected: list[tuple[Row, Row]], s: dict[str, Any], z: float,
    weights: Row | None,
) -> float:  # fmt: skip
    """The mean over pairs of one loss, times the weights of the pairs."""
    count = len(chosen)
    shared = [min(len(c), len(r)) for (c, _), (r, _) in zip(chosen, rejected, strict=True)]
    of_pair = np.ones(count) if weights is None else weights
    scores = [[rewarded(name, *row, s, k) for row, k in zip(rows, shared, strict=True)] for rows in (chosen, rejected)]
    if name == "aot":
        nothing = [[(own, own * 0) for own, _ in rows] for rows in (chosen, rejected)]
        alone = [[rewarded(name, *row, s, k) for row, k in zip(rows, shared, strict=True)] for rows in nothing]
        policy = np.sort(np.subtract(*alone))
        reference = np.sort(np.subtract(*alone) - np.subtract(*scores))
        pairs = [("sigmoid", x, y) for x, y in zip(policy, reference, strict=True)]
    elif name == "aot_unpaired":
        pairs = [("sigmoid", x, y) for x, y in zip(np.sort(scores[0]), np.sort(scores[1]), strict=True)]
    else:
        if name not in FREE and name not in SINGLE:
            scores = [[bent(each, s) for each in row] for row in scores]
        pairs = [(name, x, y) for x, y in zip(*scores, strict=True)]
    lengths = [(len(c), len(r)) for (c, _), (r, _) in zip(chosen, rejected, strict=True)]
    losses = [pair(which, float(x), float(y), s, z, n) for (which, x, y), n in zip(pairs, lengths, strict=True)]
    return float(np.mean(of_pair * losses)) / (2 if name in SINGLE else 1)


def imitated(name: str, chosen: list[tuple[Row, Row]]) -> tuple[float, list[Row]]:
    """The mean over the chosen answers' tokens of −ℓ, for DFT of −p·ℓ with p a constant, and its derivatives."""
    tokens = sum(len(own) for own, _ in chosen)
    weights = [np.exp(own) if name == "dft" else np.ones(len(own)) for own, _ in chosen]
    loss = sum(float((w * own).sum()) for w, (own, _) in zip(weights, chosen, strict=True))
    return -loss / tokens, [-w / tokens for w in weights]


def whole(
    name: str, chosen: list[tuple[Row, Row]], rejected: list[tuple[Row, Row]], s: dict[str, Any], z: float = 0.0,
    weights: Row | None = None,
) -> tuple[float, list[Row]]:  # fmt: skip
    """The loss of a batch of (own, reference) log-probabilities, and its derivative by each own one, chosen first.

    `weights` [P] are those of the pairs.
    """
    rows = [*chosen, *rejected]
    loss, pulls = 0.0, [np.zeros(len(own)) for own, _ in rows]
    weight = {"sft": 1.0, "dft": 1.0, "orpo": 1.0}.get(name, s["cpo_alpha"] if name in FREE else 0.0)
    for each, factor in (s["loss_weights"] or {name: 1.0}).items():
        if each in ("sft", "dft"):
            weight = factor
            continue

        def of(rows: list[tuple[Row, Row]], each: str = each) -> float:
            return total_of(each, rows[: len(chosen)], rows[len(chosen) :], s, z, weights)

        loss += factor * of(rows)
        for i, (own, _) in enumerate(rows):
            for t in range(len(own)):
                pulls[i][t] += factor * _slope(of, rows, i, t)
    if weight:
        value, of_tokens = imitated(name, chosen)
        weight *= 1.0 if weights is None else float(np.mean(weights))
        loss += weight * value
        for i, pull in enumerate(of_tokens):
            pulls[i] += weight * pull
    return loss, pulls


def _slope(of: Callable[[list[tuple[Row, Row]]], float], rows: list[tuple[Row, Row]], i: int, t: int) -> float:
    """The derivative of a loss by the log-probability of one token, from four values around it."""
    found = 0.0
    for steps, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
        moved = rows[i][0].astype(np.float64).copy()
        moved[t] += steps * _STEP
        found += weight * of([*rows[:i], (moved, rows[i][1]), *rows[i + 1 :]])
    return found / (12 * _STEP)


def bradley_terry(c: float, r: float, margin: float, center: float) -> float:
    return -math.log(sigma(c - r - margin)) + center * (c + r) ** 2

"""The numbers of an update, written a second time: float64 numpy, token by token, from the papers' formulas.

Nothing here shares code with `rlplay.engine`; completions are lists of one array each, without padding.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

Rows = list[np.ndarray[Any, Any]]


def split(flat: Any, offsets: Any) -> Rows:
    """A flat array of a record as one float64 array per completion."""
    return [np.asarray(flat[a:b], dtype=np.float64) for a, b in pairwise(offsets)]


def kl(name: str, ref: Any, own: Any) -> Any:
    """Schulman's estimators of KL(own || ref) on a token sampled from own."""
    ratio = np.exp(ref - own)
    return {"k1": -np.log(ratio), "k2": 0.5 * np.log(ratio) ** 2, "k3": (ratio - 1) - np.log(ratio)}[name]


def token_rewards(rewards: Any, old: Rows, ref: Rows, s: dict[str, Any]) -> Rows:
    """The outcome at the end of each completion; minus beta times KL at each token if the penalty is in the reward."""
    stream = []
    for reward, o, r in zip(rewards, old, ref, strict=True):
        row = np.zeros(len(o))
        row[-1] = reward
        if s["kl_placement"] == "reward":
            row = row - s["beta"] * kl(s["kl_estimator"], r, o)
        stream.append(row)
    return stream


def advantages(stream: Rows, values: Rows | None, group: Any, s: dict[str, Any]) -> Rows:
    """Return, baseline and scale, as a sum written out for every token."""
    outcomes = np.array([row.sum() for row in stream])
    raw = [_raw(i, row, values, outcomes, group, s) for i, row in enumerate(stream)]
    if s["scale_rewards"] == "whiten":
        every = np.concatenate(raw)
        return [(row - every.mean()) / np.sqrt(every.var(ddof=1) + 1e-8) for row in raw]
    if s["scale_rewards"] == "group":
        return [row / (outcomes[group == group[i]].std(ddof=1) + 1e-4) for i, row in enumerate(raw)]
    if s["scale_rewards"] == "batch":
        return [row / (outcomes.std(ddof=1) + 1e-4) for row in raw]
    return raw


def _raw(i: int, row: Any, values: Rows | None, outcomes: Any, group: Any, s: dict[str, Any]) -> Any:
    n = len(row)
    if s["returns"] == "gae":
        assert values is not None
        v = np.append(values[i], 0.0)
        deltas = [row[t] + s["gamma"] * v[t + 1] - v[t] for t in range(n)]
        return np.array([sum((s["gamma"] * s["lam"]) ** (k - t) * deltas[k] for k in range(t, n)) for t in range(n)])
    if s["returns"] == "to_go":
        returns = np.array([sum(s["gamma"] ** (k - t) * row[k] for k in range(t, n)) for t in range(n)])
    else:
        returns = np.full(n, outcomes[i])
    if s["baseline"] == "group_mean":
        return returns - outcomes[group == group[i]].mean()
    if s["baseline"] == "batch_mean":
        return returns - outcomes.mean()
    return returns if values is None else returns - values[i]


def loss_and_pull(
    now: Rows, old: Rows, ref: Rows, advantage: Rows, s: dict[str, Any]
) -> tuple[float, Rows, Rows, Rows]:
    """Policy loss with its KL term; its derivative by each token's log-probability (by hand); ratios; clip states."""
    total, rows = sum(len(row) for row in now), len(now)
    loss, pulls, ratios, states = 0.0, [], [], []
    for p, o, r, a in zip(now, old, ref, advantage, strict=True):
        weight = {
            "seq_mean_token_mean": 1 / (rows * len(p)),
            "token_mean": 1 / total,
            "constant": 1 / (rows * s["max_completion_length"]),
            "seq_mean_token_sum": 1 / rows,
        }[s["aggregation"]]
        w = np.exp(p - o)
        high = s["epsilon"] if s["epsilon_high"] is None else s["epsilon_high"]
        state = np.zeros(len(p))
        if s["surrogate"] == "ppo":
            state[(a > 0) & (w > 1 + high)] = 1
            state[(a < 0) & (w < 1 - s["epsilon"])] = -1
            bounded = np.where(state > 0, 1 + high, np.where(state < 0, 1 - s["epsilon"], w))
            token, pull = -bounded * a, np.where(state == 0, -w * a, 0.0)
        else:
            token, pull = -a * p, -a
        if s["kl_placement"] == "loss":
            correction = w if s["use_bias_correction_kl"] else np.ones_like(w)
            term = kl(s["kl_estimator"], r, p)
            slope = {"k1": np.ones_like(p), "k2": p - r, "k3": 1 - np.exp(r - p)}[s["kl_estimator"]]
            token = token + s["beta"] * term * correction
            pull = pull + s["beta"] * (slope * correction + (term * w if s["use_bias_correction_kl"] else 0))
        loss += float((weight * token).sum())
        pulls.append(weight * pull)
        ratios.append(w)
        states.append(state)
    return loss, pulls, ratios, states


def value_loss(values: Rows, old_values: Rows, returns: Rows, clip: float) -> float:
    """Half the token mean of the worse of the plain and the clipped squared error."""
    v, o, g = (np.concatenate(rows) for rows in (values, old_values, returns))
    near = np.clip(v, o - clip, o + clip)
    return float(0.5 * np.maximum((v - g) ** 2, (near - g) ** 2).mean())

"""The numbers of an update, written a second time: float64 numpy, token by token, from the papers' formulas.

Nothing here shares code with `rlplay.engine`; completions are lists of one array each, without padding.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import Any

import numpy as np

Rows = list[np.ndarray[Any, Any]]


def split(flat: Any, offsets: Any) -> Rows:
    """A flat array of a record as one float64 array per completion."""
    return [np.asarray(flat[a:b], dtype=np.float64) for a, b in pairwise(offsets)]


def kl(name: str, ref: Any, own: Any) -> Any:
    """Schulman's estimators of KL(own || ref) on a token sampled from own."""
    ratio = np.exp(ref - own)
    x = np.log(ratio)
    return {"k1": -x, "k2": 0.5 * x**2, "k3": (ratio - 1) - x, "abs": np.abs(x)}[name]


def combined(rewards: Any, parts: dict[str, Any], weights: dict[str, float], group: Any, s: dict[str, Any]) -> Any:
    """One reward per completion: the sum `rewards`, or each of its parts in units of its group first."""
    if s["multi_objective_aggregation"] == "sum_then_normalize":
        return paid(rewards, group, s)
    total = np.zeros(len(group))
    for name, part in parts.items():
        for g in np.unique(group):
            mine = part[group == g].astype(np.float64)
            total[group == g] += weights[name] * (mine - mine.mean()) / (mine.std(ddof=1) + 1e-4)
    return total


def paid(rewards: Any, group: Any, s: dict[str, Any]) -> Any:
    """Each completion's reward within its bounds, or the mean best one of every choice of k that it is in."""
    low = -math.inf if s["reward_clip_min"] is None else s["reward_clip_min"]
    high = math.inf if s["reward_clip_max"] is None else s["reward_clip_max"]
    bounded = np.clip(np.asarray(rewards, dtype=np.float64), low, high)
    if s["pass_at_k"] == 1:
        return bounded
    found = np.zeros(len(bounded))
    for i in range(len(bounded)):
        others = [j for j in range(len(bounded)) if group[j] == group[i] and j != i]
        choices = list(combinations(others, min(s["pass_at_k"] - 1, len(others))))
        found[i] = sum(max([bounded[i], *bounded[list(c)]]) for c in choices) / len(choices)
    return found


def token_rewards(outcomes: Any, steps: Rows, ends: Rows, old: Rows, ref: Rows, group: Any, s: dict[str, Any]) -> Rows:
    """Rewards where they arrive, minus beta times KL at each token if the penalty is in the reward.

    `outcomes` are what whole completions earned, NaN for none; `steps` is what single steps earned, which end where
    `ends` is 1.
    """
    stream = []
    for outcome, step, o in zip(outcomes, steps, old, strict=True):
        row = np.zeros(len(o))
        row[-1] = 0.0 if math.isnan(outcome) else outcome
        if s["reward_stream"] == "process":
            row = row + step
        if s["reward_stream"] == "shaping":
            for t in range(len(o)):
                after = 0.0 if t == len(o) - 1 else step[: t + 1].sum()
                row[t] += s["gamma"] * after - step[:t].sum()
        stream.append(row)
    if s["reward_stream"] == "process_normalized":
        stream = normalized_steps(outcomes, steps, ends, group)
    limit, buffer = s["max_completion_length"], s["overlong_buffer"]
    for i, (row, o, r) in enumerate(zip(stream, old, ref, strict=True)):
        if buffer and len(o) > limit - buffer:
            row[-1] += ((limit - buffer) - len(o)) / buffer
        if s["kl_placement"] == "reward":
            stream[i] = row - s["beta"] * kl(s["kl_estimator"], r, o)
    return stream


def normalized_steps(outcomes: Any, steps: Rows, ends: Rows, group: Any) -> Rows:
    """Process supervision (arXiv:2402.03300, section 4.1.3): (r - mean(R)) / std(R) where a step ends.

    R is the set of all steps' scores of a group. What a completion earned as a whole is the score of one more step,
    which ends on its last token; a completion that nobody judged as a whole has no such step.
    """
    scores: list[dict[int, float]] = []
    for outcome, step, end in zip(outcomes, steps, ends, strict=True):
        mine = {t: float(step[t]) for t in range(len(step)) if end[t]}
        if not math.isnan(outcome):
            mine[len(step) - 1] = mine.get(len(step) - 1, 0.0) + float(outcome)
        scores.append(mine)
    stream = []
    for i, mine in enumerate(scores):
        every = [r for j, other in enumerate(scores) if group[j] == group[i] for r in other.values()]
        mean = sum(every) / max(len(every), 1)
        std = math.sqrt(sum((r - mean) ** 2 for r in every) / max(len(every) - 1, 1))
        row = np.zeros(len(steps[i]))
        for t, r in mine.items():
            row[t] = (r - mean) / (std + 1e-4)
        stream.append(row)
    return stream


def advantages(
    stream: Rows, values: Rows | None, greedy: Any, group: Any, s: dict[str, Any], ends: list[list[int]]
) -> Rows:
    """Return, baseline and scale, as a sum written out for every token.

    `greedy` is one reward per group, `ends` are the last tokens of each completion's reasoning steps.
    """
    outcomes = np.array([row.sum() for row in stream])
    raw = []
    for i, row in enumerate(stream):
        if s["returns"] == "gae":
            assert values is not None
            raw.append(_gae(row, np.append(values[i], 0.0), s))
        elif s["returns"] == "vine":
            assert values is not None
            raw.append(_vine(row, np.append(values[i], 0.0), ends[i], s["gamma"]))
        else:
            raw.append(_returns(row, s) - _baseline(i, stream, outcomes, values, greedy, group, s))
    return _scaled(raw, outcomes, group, s)


def _scaled(raw: Rows, outcomes: Any, group: Any, s: dict[str, Any]) -> Rows:
    if s["scale_rewards"] == "whiten":
        every = np.concatenate(raw)
        return [(row - every.mean()) / np.sqrt(every.var(ddof=1) + 1e-8) for row in raw]
    if s["scale_rewards"] == "answers":
        each = np.array([row.mean() for row in raw])
        return [(row - each.mean()) / (each.std(ddof=1) + 1e-4) for row in raw]
    return [row / _divisor(outcomes, outcomes[group == group[i]], s["scale_rewards"]) for i, row in enumerate(raw)]


def _divisor(outcomes: Any, mine: Any, scale: str) -> float:
    mean = float(mine.mean())
    found: dict[str, float] = {
        "none": 1.0,
        "group": mine.std(ddof=1) + 1e-4,
        "batch": outcomes.std(ddof=1) + 1e-4,
        "mean": mean if mean > 0 else math.inf,
        "pass_rate": math.sqrt(mean * (1 - mean)) if 0 < mean < 1 else math.inf,
    }
    return found[scale]


def _gae(row: Any, v: Any, s: dict[str, Any]) -> Any:
    n = len(row)
    deltas = [row[t] + s["gamma"] * v[t + 1] - v[t] for t in range(n)]
    return np.array([sum((s["gamma"] * s["lam"]) ** (k - t) * deltas[k] for k in range(t, n)) for t in range(n)])


def _vine(row: Any, v: Any, ends: list[int], gamma: float) -> Any:
    """One advantage per reasoning step, given to each of its tokens."""
    result, begin = np.zeros(len(row)), 0
    for end in ends:
        earned = sum(gamma**j * reward for j, reward in enumerate(row[begin : end + 1]))
        result[begin : end + 1] = earned + gamma ** (end + 1 - begin) * v[end + 1] - v[begin]
        begin = end + 1
    return result


def _returns(row: Any, s: dict[str, Any]) -> Any:
    n = len(row)
    if s["returns"] == "to_go":
        return np.array([sum(s["gamma"] ** (k - t) * row[k] for k in range(t, n)) for t in range(n)])
    return np.full(n, row.sum())


def _baseline(i: int, stream: Rows, outcomes: Any, values: Rows | None, greedy: Any, group: Any, s: Any) -> Any:
    mine = group == group[i]
    lengths = np.array([len(row) for row in stream])
    found = {
        "none": 0.0,
        "group_mean": outcomes[mine].mean(),
        "batch_mean": outcomes.mean(),
        "leave_one_out": (outcomes[mine].sum() - outcomes[i]) / max(mine.sum() - 1, 1),
        "best_other": min(outcomes[i], max((outcomes[j] for j in np.flatnonzero(mine) if j != i), default=outcomes[i])),
        "length_weighted": (lengths * outcomes)[mine].sum() / lengths[mine].sum(),
        "greedy": greedy[group[i]],
        "value": None if values is None else values[i],
    }
    return found[s["baseline"]]


def by_covariance(
    now: Rows, old: Rows, advantage: Rows, s: dict[str, Any], place: list[int], kept: Any = None
) -> tuple[Rows, Rows]:
    """1 where Clip-Cov leaves a token's surrogate in, and 1 where KL-Cov holds it; `place` is seed, update and step."""
    kept = np.ones(len(now)) if kept is None else kept
    places = [(i, t) for i, row in enumerate(now) for t in range(len(row)) if kept[i]]
    a, p = (np.array([rows[i][t] for i, t in places]) for rows in (advantage, now))
    c = (a - a.mean()) * (p - p.mean())
    keep, held = [np.ones(len(row)) for row in now], [np.ones(len(row)) for row in now]
    if s["clip_cov_ratio"]:
        w = np.array([math.exp(now[i][t] - old[i][t]) for i, t in places])
        high = s["epsilon"] if s["epsilon_high"] is None else s["epsilon_high"]
        clipped = ((a > 0) & (w > 1 + high)) | ((a < 0) & (w < 1 - s["epsilon"]))
        fitting = np.flatnonzero((c > s["clip_cov_lb"]) & (c < s["clip_cov_ub"]) & ~clipped)
        order = np.random.default_rng([place[0], place[1], 9, place[2]]).permutation(len(fitting))
        for n in fitting[order[: max(1, int(s["clip_cov_ratio"] * len(places)))]]:
            keep[places[n][0]][places[n][1]] = 0
    if s["kl_cov_ratio"] < 1:
        held = [np.zeros(len(row)) for row in now]
        for n in np.argsort(-c, kind="stable")[: max(1, int(s["kl_cov_ratio"] * len(places)))]:
            held[places[n][0]][places[n][1]] = 1
    return keep, held


def loss_and_pull(
    now: Rows, old: Rows, ref: Rows, advantage: Rows, s: dict[str, Any],
    beta: float | None = None, keep: Rows | None = None, kept: Any = None, held: Rows | None = None,
) -> tuple[float, Rows, Rows, Rows]:  # fmt: skip
    """Policy loss with its KL term; its derivative by each token's log-probability (by hand); ratios; clip states.

    `keep` is 1 where a token's surrogate counts, `kept` 1 for a completion that is in the loss at all.
    """
    kept = np.ones(len(now)) if kept is None else kept
    total, rows = sum(len(row) for row, k in zip(now, kept, strict=True) if k), len(now)
    loss, pulls, ratios, states = 0.0, [], [], []
    for i, (p, o, r, a) in enumerate(zip(now, old, ref, advantage, strict=True)):
        n = len(p)
        weight = (
            kept[i]
            * {
                "seq_mean_token_mean": 1 / (rows * n),
                "token_mean": 1 / max(total, 1),
                "constant": 1 / (rows * s["max_completion_length"]),
                "seq_mean_token_sum": 1 / rows,
            }[s["aggregation"]]
        )
        w, dw, bound = _ratio(p - o, a, s)
        token, slope, through, state = _surrogate(p, o, a, w, s)
        # `slope` is by the token's own log-probability, `through` by its importance weight
        counts = np.ones(n) if keep is None else keep[i]
        if s["off_policy_mask_threshold"] is not None:
            counts = counts * ((a >= 0) | ((o - p).mean() <= s["off_policy_mask_threshold"]))
        pull = weight * counts * slope + dw @ (weight * counts * through)
        loss += float((weight * counts * token).sum())
        strength = s["beta"] if beta is None else beta
        if s["kl_placement"] == "loss" and strength:
            term, by_own, by_weight = (x * (1 if held is None else held[i]) for x in _kl_term(p, o, r, w, s))
            loss += float(strength * (weight * term).sum())
            pull = pull + strength * (weight * by_own + dw @ (weight * by_weight))
        pulls.append(pull)
        ratios.append(w)
        states.append(kept[i] * (bound if s["importance_sampling_level"] == "geometric" else state))
    return loss, pulls, ratios, states


def _ratio(d: Any, a: Any, s: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Importance weights [n]; dw[j, t] = derivative of w_t by the log-probability of token j; clipped in the log."""
    n = len(d)
    low, high = s["epsilon"], s["epsilon"] if s["epsilon_high"] is None else s["epsilon_high"]
    bound = np.where((a > 0) & (d > high), 1, np.where((a < 0) & (d < -low), -1, 0))
    match s["importance_sampling_level"]:
        case "token":
            w = np.exp(d)
            return w, np.diag(w), bound
        case "sequence":
            w = math.exp(sum(d) / n)
            return np.full(n, w), np.full((n, n), w / n), bound
        case "sequence_sum":
            w = math.exp(sum(d))
            return np.full(n, w), np.full((n, n), w), bound
        case _:
            clipped = np.where(a > 0, np.minimum(d, high), np.maximum(d, -low))
            w = math.exp(clipped.mean())
            inside = np.where(a > 0, d <= high, d >= -low)
            return np.full(n, w), np.tile((w / n * inside)[:, None], (1, n)), bound


def _surrogate(  # noqa: PLR0911
    p: Any, o: Any, a: Any, w: Any, s: dict[str, Any]
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Loss per token, its derivative by the own log-probability with w held, its derivative by w, clip state."""
    none, low = np.zeros(len(p)), s["epsilon"]
    high = low if s["epsilon_high"] is None else s["epsilon_high"]
    match s["surrogate"]:
        case "logp":
            return -a * p, -a, none, none
        case "ratio" | "trpo":
            return -w * a, none, -a, none
        case "ppo":
            state = np.where((a > 0) & (w > 1 + high), 1, np.where((a < 0) & (w < 1 - low), -1, 0))
            held = np.where(state == 1, 1 + high, np.where(state == -1, 1 - low, w))
            if s["delta"] is not None:
                state = np.where((a < 0) & (w > s["delta"]), 2, state)
                held = np.where(state == 2, s["delta"], held)
            return -held * a, none, np.where(state == 0, -a, 0.0), state
        case "dppo_tv" | "dppo_kl":
            state = _moved_too_far(p, o, a, np.where(a > 0, high, low), s["surrogate"])
            return _unless(state, p, a, w, s["delta"])
        case "tv_mask":
            moved = np.exp(p) - np.exp(o)
            return _unless(np.where((np.abs(moved) > low) & (a != 0), np.sign(moved), 0), p, a, w, s["delta"])
        case "cispo":
            capped = np.minimum(w, high)
            return -capped * a * p, -capped * a, none, none
        case "dro":
            return s["dro_beta"] / 2 * (p - o) ** 2 - a * p, s["dro_beta"] * (p - o) - a, none, none
        case "sapo":
            tau = np.where(a > 0, s["sapo_temperature_pos"], s["sapo_temperature_neg"])
            gate = 1 / (1 + np.exp(-tau * (w - 1)))
            return -4 / tau * gate * a, none, -4 * gate * (1 - gate) * a, none
        case _:
            whole = min(max((p - o).clip(-20, 20).sum(), math.log(1e-8)), 20)
            k = np.where(a >= 0, s["vespo_k_pos"], s["vespo_k_neg"])
            decay = np.where(a >= 0, s["vespo_lambda_pos"], s["vespo_lambda_neg"])
            phi = np.exp(decay + k * whole - decay * math.exp(whole))
            return -phi * a * p, -phi * a, none, none


def _unless(state: Any, p: Any, a: Any, w: Any, delta: float | None) -> tuple[Any, Any, Any, Any]:
    """−w·A where the clip state is 0; a bounded w is a constant weight of the log-probability."""
    none, inside = np.zeros(len(p)), state == 0
    if delta is None:
        return np.where(inside, -w * a, 0.0), none, np.where(inside, -a, 0.0), state
    held = np.where(inside, -np.minimum(w, delta) * a, 0.0)
    return held * p, held, none, state


def _moved_too_far(p: Any, o: Any, a: Any, bound: Any, surrogate: str) -> Any:
    """DPPO's clip states: 1 or −1, the sign of A, beyond the bound on the side that A pulls to."""
    now, before, side = np.exp(p), np.exp(o), np.where(a > 0, 1, -1)
    moved = side * (now - before)
    if surrogate == "dppo_kl":
        kl_of_two = before * (o - p) + (1 - before) * np.log((1 - before) / (1 - now))
        moved = np.where(moved > 0, kl_of_two, 0.0)
    return np.where(moved > bound, side * (a != 0), 0)


def _kl_term(p: Any, o: Any, r: Any, w: Any, s: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The KL term per token; its derivative by the own log-probability with w held; its derivative by w."""
    if s["kl_anchor"] == "old":
        slope = {"k1": -np.ones_like(p), "k2": p - o, "k3": np.exp(p - o) - 1, "abs": np.sign(np.round(p - o, 5))}[
            s["kl_estimator"]
        ]
        return kl(s["kl_estimator"], p, o), slope, np.zeros_like(p)
    term = kl(s["kl_estimator"], r, p)
    slope = {"k1": np.ones_like(p), "k2": p - r, "k3": 1 - np.exp(r - p), "abs": np.sign(p - r)}[s["kl_estimator"]]
    if s["use_bias_correction_kl"]:
        return term * w, slope * w, term
    return term, slope, np.zeros_like(p)


def value_loss(values: Rows, old_values: Rows, returns: Rows, clip: float) -> float:
    """Half the token mean of the worse of the plain and the clipped squared error."""
    v, o, g = (np.concatenate(rows) for rows in (values, old_values, returns))
    near = np.clip(v, o - clip, o + clip)
    return float(0.5 * np.maximum((v - g) ** 2, (near - g) ** 2).mean())

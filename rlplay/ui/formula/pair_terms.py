"""The losses of pairs, with the scores of the two compared answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rlplay.algorithms.equations import equation, terms
from rlplay.algorithms.pair_equations import SYMBOLS, compared, scored, several, total, weighted
from rlplay.algorithms.pair_losses import PAIR_LOSSES, mixture
from rlplay.algorithms.settings import Settings
from rlplay.trace.records import Array, Stepped
from rlplay.trace.update import Update
from rlplay.ui.formula.formula_lines import Line, PairScores, TokenNumbers, note, stripped

_CERTAIN = 1e-9
"""Keeps the odds finite: a mean log-probability closer to 0 would make them infinite."""
_APART = ("labels", "writer", "steps")
"""Entries of the equations that are not of one pair."""


def pair_equations(s: Settings, numbers: TokenNumbers) -> list[Line]:
    """The equations for the pair of the token's answer, each with its numbers, as far as known."""
    of = numbers.pair
    known = {} if of is None else _known(s, of)
    lines: list[Line] = []
    for left, right in terms(s).items():
        if left not in _APART:
            lines.append([(equation(left, right), "plain"), *_filled(left, known.get(left))])
    if of is None:
        return [*lines, note("no label yet (phase ② score), left out, or a tie: nothing is learned from this answer")]
    return [*lines, note(f"this is the {'chosen' if of.chosen else 'rejected'} answer")]


def pair_scores(update: Update, completion: int, s: Settings) -> PairScores | None:
    """A completion's label and scores in its last optimizer step; None without pairs or without a label."""
    sampled, scored = update.sampled, update.scored
    if s.rewarded or sampled is None or scored is None or not scored.roles:
        return None
    role, group = scored.roles[completion], int(sampled.group[completion])
    if role not in ("chosen", "rejected"):
        return None
    own, other = completion, _other(update, completion)
    lengths = [1 if each is None else max(1, len(_places(update, each))) for each in (own, other)]
    found = PairScores(
        role == "chosen",
        _score(update, own, s),
        None if other is None else _score(update, other, s),
        baseline=update.steps[-1].metrics.get("kto/kl") if update.steps else None,
        margin=float(sampled.columns[group].get("margin") or 0),
        lengths=(lengths[0], lengths[1]),
        weight=_weight(update, completion) if weighted(s) else None,
    )
    ranked = any(PAIR_LOSSES[name].ranked for name in mixture(s) if name in PAIR_LOSSES)
    return _among(found, update, completion, s) if ranked else found


def _other(update: Update, completion: int) -> int | None:
    """The other answer of a pair."""
    sampled, scored = update.sampled, update.scored
    assert sampled is not None
    assert scored is not None
    siblings = np.flatnonzero(sampled.group == sampled.group[completion]).tolist()
    return next((i for i in siblings if scored.roles[i] != scored.roles[completion]), None)


def _places(update: Update, completion: int) -> Array:
    """The tokens of an answer that the loss covers."""
    sampled = update.sampled
    assert sampled is not None
    start, end = (int(x) for x in sampled.offsets[completion : completion + 2])
    return start + np.flatnonzero(sampled.mask[start:end])


def _score(update: Update, completion: int, s: Settings, alone: bool = False) -> float | None:
    """s of an answer; `alone`, the score by the policy without the reference."""
    sampled, credited, tokens = update.sampled, update.credited, _places(update, completion)
    assert sampled is not None
    if s.kind == "reward model":
        values = _latest(update, "values", None if credited is None else credited.values)
        return None if values is None else float(values[tokens[-1]])
    logprobs = _latest(update, "logprobs", sampled.old_logprobs)
    reference = None if credited is None else credited.ref_logprobs
    assert logprobs is not None
    shared = len(tokens)
    if s.ld_alpha is not None and (other := _other(update, completion)) is not None:
        shared = min(shared, len(_places(update, other)))
    return score(s, logprobs[tokens], None if reference is None else reference[tokens], shared, alone)


def _weight(update: Update, completion: int) -> float | None:
    """The weight of its pair."""
    weights = update.latest_step("weights")
    return None if weights is None else float(weights[_places(update, completion)[0]])


def _among(found: PairScores, update: Update, completion: int, s: Settings) -> PairScores:
    """The pair with the numbers of all pairs of its last optimizer step, and its place among them."""
    step = next((each for each in reversed(update.steps) if completion in each.rows), None)
    chosen = _chosen(update, step)
    of_pairs = [(good, bad) for good in chosen if (bad := _other(update, good)) is not None]
    known: dict[str, list[float]] = {}
    for good, bad in of_pairs:
        scores = [_score(update, each, s) for each in (good, bad)]
        alone = [_score(update, each, s, alone=True) for each in (good, bad)]
        if scores[0] is None or scores[1] is None or alone[0] is None or alone[1] is None:
            return found
        gap, policy = scores[0] - scores[1], alone[0] - alone[1]
        numbers = (scores[0], scores[1], gap, policy, policy - gap)
        for name, value in zip(_RANKED, numbers, strict=True):
            known.setdefault(name, []).append(value)
    place = next((i for i, pair in enumerate(of_pairs) if completion in pair), None)
    if place is None:
        return found
    return replace(found, minibatch={name: np.array(values) for name, values in known.items()}, place=place)


_RANKED = ("chosen_score", "rejected_score", "gap", "policy_gap", "ref_gap")


def _chosen(update: Update, step: Stepped | None) -> list[int]:
    """The chosen answers that were compared together in a step; before one, all of them."""
    assert update.scored is not None
    roles = update.scored.roles
    rows = range(len(roles)) if step is None else step.rows.tolist()
    return [row for row in rows if roles[row] == "chosen"]


def _latest(update: Update, field: str, before: Array | None) -> Array | None:
    """The latest values that optimizer steps recorded; `before` for tokens that no step included."""
    latest = update.latest_step(field)
    return before if latest is None or before is None else np.where(np.isnan(latest), before, latest)


def score(
    s: Settings, logprobs: Array, ref_logprobs: Array | None, shared: int | None = None, alone: bool = False
) -> float | None:
    """s, the loss's score of an answer with these log-probabilities; None if the loss has no such score.

    `shared` is the length of the pair's shorter answer. `alone`: by the policy, without the reference.
    """
    values = {"logprobs": np.minimum(logprobs, -_CERTAIN), "mask": np.ones_like(logprobs, dtype=bool)}
    values["beyond"] = np.arange(len(logprobs)) >= (len(logprobs) if shared is None else shared)
    if ref_logprobs is not None:
        values["ref_logprobs"] = ref_logprobs
    if s.loss_type not in PAIR_LOSSES:
        return None
    term = total(s, values) if alone else scored(s, values)
    return None if term is None or term.value is None else term.at(0)


def value(s: Settings, of: PairScores, loss_type: str = "") -> float | None:
    """The pair's term of L before the mean, without imitation; None before it is known. `loss_type` is one of several
    losses."""
    if (loss_type or s.loss_type) not in PAIR_LOSSES:
        return None
    term = compared(s, _quantities(of), loss_type)
    return None if term.value is None else term.at(of.place)


def _quantities(of: PairScores) -> dict[str, Any]:
    """What a loss reads of a pair, as far as known."""
    both, lengths = (of.own, of.other), of.lengths
    if not of.chosen:
        both, lengths = (of.other, of.own), (of.lengths[1], of.lengths[0])
    found: dict[str, Any] = {"score": of.own, "chosen_score": both[0], "rejected_score": both[1]}
    if both[0] is not None and both[1] is not None:
        found |= {"gap": both[0] - both[1], "mean_gap": both[0] / lengths[0] - both[1] / lengths[1]}
    found |= {"kto_baseline": of.baseline, "margin": of.margin, "chosen": of.chosen, "weight": of.weight}
    return found | dict(of.minibatch or {})


def _known(s: Settings, of: PairScores) -> dict[str, float | None]:
    """The numbers of a pair by the left sides of its equations."""
    quantities = _quantities(of)
    found = {symbol: _at(quantities.get(name), of.place) for name, symbol in SYMBOLS.items() if name != "chosen"}
    found |= {"W": of.weight, **{f"L_{each}": value(s, of, each) for each in several(s)}}
    return found if s.loss_weights else found | {"L": value(s, of)}


def _at(quantity: Any, place: int) -> float | None:
    if quantity is None:
        return None
    values = np.ravel(np.asarray(quantity, dtype=float))
    return float(values[place if values.size > 1 else 0])


def _filled(left: str, known: float | None) -> Line:
    if known is None:
        return []
    joint = "; this one: " if left.startswith("L") else ": here " if left == "s" else " = "
    return [(joint, "note"), (stripped(known), "won")]

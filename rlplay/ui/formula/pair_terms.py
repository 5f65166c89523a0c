"""The losses of pairs, with the scores of the two compared answers."""

from __future__ import annotations

import numpy as np

from rlplay.algorithms.equations import equation, terms
from rlplay.algorithms.pair_equations import compared, scored
from rlplay.algorithms.pair_losses import PAIR_LOSSES
from rlplay.algorithms.settings import LossType, Settings
from rlplay.trace.records import Array
from rlplay.trace.update import Update
from rlplay.ui.formula.formula_lines import Line, PairScores, TokenNumbers, note, stripped

_CERTAIN = 1e-9
"""Keeps the odds finite: a mean log-probability closer to 0 would make them infinite."""


def pair_equations(s: Settings, numbers: TokenNumbers) -> list[Line]:
    """The equations for the pair of the token's answer, each with its numbers, as far as known."""
    equations, of = terms(s), numbers.pair
    lines: list[Line] = []
    for left in ("s", "Δ", "z", "L"):
        if left in equations:
            lines.append([(equation(left, equations[left]), "plain"), *_filled(s, left, of)])
    if of is None:
        return [*lines, note("no label yet (phase ② score), left out, or a tie: nothing is learned from this answer")]
    return [*lines, note(f"this is the {'chosen' if of.chosen else 'rejected'} answer")]


def pair_scores(update: Update, completion: int, loss_type: LossType) -> PairScores | None:
    """A completion's label and scores in its last optimizer step; None without pairs or without a label."""
    sampled, scored = update.sampled, update.scored
    if loss_type == "policy_gradient" or sampled is None or scored is None or not scored.roles:
        return None
    role, group = scored.roles[completion], int(sampled.group[completion])
    siblings = (int(i) for i in np.flatnonzero(sampled.group == group))
    other = next((i for i in siblings if scored.roles[i] != role), None)
    if role not in ("chosen", "rejected"):
        return None
    return PairScores(
        role == "chosen",
        _score(update, completion, loss_type),
        None if other is None else _score(update, other, loss_type),
        update.steps[-1].metrics.get("kto/kl") if update.steps else None,
        float(sampled.columns[group].get("margin") or 0),
    )


def _score(update: Update, completion: int, loss_type: LossType) -> float | None:
    sampled, credited = update.sampled, update.credited
    assert sampled is not None
    start, end = (int(x) for x in sampled.offsets[completion : completion + 2])
    tokens = start + np.flatnonzero(sampled.mask[start:end])
    if loss_type == "reward":
        values = _latest(update, "values", None if credited is None else credited.values)
        return None if values is None else float(values[tokens[-1]])
    logprobs = _latest(update, "logprobs", sampled.old_logprobs)
    reference = None if credited is None else credited.ref_logprobs
    assert logprobs is not None
    return score(loss_type, logprobs[tokens], None if reference is None else reference[tokens])


def _latest(update: Update, field: str, before: Array | None) -> Array | None:
    """The latest values that optimizer steps recorded; `before` for tokens that no step included."""
    latest = update.latest_step(field)
    return before if latest is None or before is None else np.where(np.isnan(latest), before, latest)


def score(loss_type: LossType, logprobs: Array, ref_logprobs: Array | None) -> float | None:
    """s, the loss's score of an answer with these log-probabilities; None if the loss has no such score."""
    values = {"logprobs": np.minimum(logprobs, -_CERTAIN), "mask": np.ones_like(logprobs, dtype=bool)}
    if ref_logprobs is not None:
        values["ref_logprobs"] = ref_logprobs
    term = scored(Settings(loss_type=loss_type), values)
    return None if term is None or term.value is None else term.at(0)


def value(s: Settings, of: PairScores) -> float | None:
    """The pair's term of L before the mean, without imitation; None before it is known."""
    if s.loss_type not in PAIR_LOSSES:
        return None
    both = (of.own, of.other) if of.chosen else (of.other, of.own)
    values = {"score": of.own, "gap": _gap(of), "chosen_score": both[0], "rejected_score": both[1]}
    values |= {"kto_baseline": of.baseline, "margin": of.margin, "chosen": of.chosen}
    term = compared(s, values)
    return None if term.value is None else term.at(0)


def _filled(s: Settings, left: str, of: PairScores | None) -> Line:
    if of is None:
        return []
    known = {"s": of.own, "Δ": _gap(of), "z": of.baseline, "L": value(s, of)}[left]
    if known is None:
        return []
    return [({"L": "; this one: ", "s": ": here "}.get(left, " = "), "note"), (stripped(known), "won")]


def _gap(of: PairScores) -> float | None:
    if of.own is None or of.other is None:
        return None
    return of.own - of.other if of.chosen else of.other - of.own

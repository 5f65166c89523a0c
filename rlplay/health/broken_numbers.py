"""Where the numbers of an update stop being numbers, and which token pulled hardest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rlplay.trace.records import Array, Sampled, Stepped, spans
from rlplay.trace.update import Update

ORDER = ("reward", "sampler", "reference", "policy", "advantage", "ratio", "derivative")
"""What an update computes of each token, the earlier first: each is made of those before it."""


class Unfit(NamedTuple):
    """Of one of `ORDER`: the share of sampled tokens that is NaN or infinite, whether any is infinite, and the "
    "first."""

    share: float
    infinite: bool
    token: int


@dataclass(frozen=True)
class Pull:
    """The token with the largest derivative of the loss by its log-probability, over the update's steps."""

    token: int
    text: str
    share: float  # of the sum of all absolute derivatives
    advantage: float
    logprob: float
    ratio: float


def unfit(update: Update) -> dict[str, Unfit]:
    """What of an update's numbers is not finite; only what is on record, and nothing of what is finite."""
    sampled = update.sampled
    if sampled is None:
        return {}
    found = {}
    for name, values in _numbers(update, sampled).items():
        bad = (sampled.mask == 1) & ~np.isfinite(values)
        if bad.any():
            share = float(bad.sum() / max((sampled.mask == 1).sum(), 1))
            found[name] = Unfit(share, bool(np.isinf(values[bad]).any()), int(bad.argmax()))
    return found


def _numbers(update: Update, sampled: Sampled) -> dict[str, Array]:
    """The arrays of `ORDER` that are on record, [T]."""
    scored, credited = update.scored, update.credited
    first = update.steps[0] if update.steps else None
    rewards = None if scored is None else np.repeat(scored.rewards, np.diff(sampled.offsets))
    known = {
        "reward": rewards,
        "sampler": sampled.sampling_logprobs,
        "reference": None if credited is None else credited.ref_logprobs,
        "policy": sampled.old_logprobs if first is None else _of_step(sampled, first, first.logprobs),
        "advantage": None if credited is None else credited.advantages,
        "ratio": None if first is None else _of_step(sampled, first, first.importance_ratio),
        "derivative": None if first is None else _of_step(sampled, first, first.dloss_dlogp),
    }
    return {name: values for name, values in known.items() if values is not None}


def _of_step(sampled: Sampled, step: Stepped, values: Array) -> Array:
    """Numbers of a step's answers at their tokens, [T]; 0 at those of other answers."""
    out = np.zeros(len(sampled.mask))
    out[spans(sampled.offsets, step.rows)] = values
    return out


def without_tokens(sampled: Sampled) -> int:
    """Answers of which the policy sampled nothing."""
    counts = np.add.reduceat(np.append(sampled.mask, 0), sampled.offsets[:-1]) if len(sampled.mask) else np.zeros(0)
    return int(((np.diff(sampled.offsets) == 0) | (counts == 0)).sum())


def of_one_token(sampled: Sampled) -> tuple[str, int]:
    """The token with the id 0, and how many answers of four tokens or more are nothing else.

    Where all numbers of a position are NaN, the largest is the first one: the answer is then "!!!!" in many
    vocabularies.
    """
    ids = [sampled.token_ids[a:b] for a, b in zip(sampled.offsets[:-1], sampled.offsets[1:], strict=True)]
    return sampled.pieces.get(0, ""), sum(len(each) >= 4 and not each.any() for each in ids)


def hardest(update: Update) -> Pull | None:
    """The token that pulled hardest; None where no derivative is on record, or all are 0."""
    sampled, credited = update.sampled, update.credited
    derivative = update.latest_step("dloss_dlogp")
    if sampled is None or derivative is None:
        return None
    size = np.abs(np.where(np.isfinite(derivative), derivative, 0.0))
    token = int(size.argmax())
    if not size[token]:
        return None
    ratio = update.latest_step("importance_ratio")
    return Pull(
        token=token,
        text=sampled.texts[token],
        share=float(size[token] / size.sum()),
        advantage=float("nan") if credited is None else float(credited.advantages[token]),
        logprob=float(sampled.old_logprobs[token]),
        ratio=float("nan") if ratio is None else float(ratio[token]),
    )

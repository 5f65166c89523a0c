"""Claims about who taught a token: what they ask the engine, and the number that they read in its answer."""

from __future__ import annotations

from typing import cast, get_args

import numpy as np

from rlplay.scenario.claim import ShareValue
from rlplay.trace.chosen_answers import Side, answer_to, answers_of, tokens_of
from rlplay.trace.targets import candidate_id, token_target
from rlplay.trace.teachers import AnyTeachingAnswer, TakeAway, TakenAway, Taught, Teach
from rlplay.trace.update import Update


def question_of(quantity: ShareValue, update: Update) -> Teach | TakeAway:
    """What the claim asks about `update`. Raises ValueError, one line, if there is no such token or answer."""
    answer = answer_to(update, quantity.prompt, quantity.share, quantity.token)
    candidate = candidate_id(update, answer, quantity.token, quantity.share)
    target = token_target(update, answer, quantity.token, candidate)
    if quantity.without is None:
        return Teach(target, update.number, update.number)
    return TakeAway(target, update.number, tokens_of(update, _answers(quantity, update)))


def value_of(quantity: ShareValue, update: Update, answer: AnyTeachingAnswer) -> tuple[float, float | None]:
    """The number of the claim in nats, and what it is compared with. Raises ValueError, one line, if there is none."""
    if answer.refused:
        raise ValueError(answer.refused)
    match answer:
        case TakenAway():
            return answer.without - answer.before, answer.after - answer.before
        case Taught():
            if quantity.of in get_args(Side):
                shares = answer.shares[tokens_of(update, _answers(quantity, update))]
                return float(shares.sum(dtype=np.float64)), None
            return float(getattr(answer, quantity.of)), None
    raise TypeError(f"{type(answer).__name__} answers no claim")


def _answers(quantity: ShareValue, update: Update) -> list[int]:
    side = quantity.of if quantity.without is None else quantity.without
    found = answers_of(update, quantity.prompt, cast("Side", side), quantity.answers)
    if not found:
        raise ValueError(f"no answer of update {update.number} is among them")
    return found

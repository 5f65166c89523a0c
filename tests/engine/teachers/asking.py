"""Runs to ask, targets to ask about, and the answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlplay.engine.driver import Driver
from rlplay.trace.records import AnyRecord
from rlplay.trace.targets import answer_target, text_target, token_target
from rlplay.trace.teachers import Target, Taught, Teach
from rlplay.trace.update import Update

Start = Callable[..., tuple[Driver, list[AnyRecord]]]


def never() -> bool:
    return False


def in_float64(driver: Driver) -> None:
    """Let the run be in double precision; nothing has been learned yet. GPT-2's layers do not round to float32."""
    state = driver._state
    for module in (state.lm.policy, state.lm.reference, state.value_head):
        module.double()


def targets_of(update: Update) -> list[Target]:
    """A first token, a later one, one that was not sampled, a whole answer, and a text that nobody wrote."""
    sampled = update.sampled
    assert sampled is not None
    longest, first = int(np.diff(sampled.offsets).argmax()), token_target(update, 0, 0)
    other = int(sampled.top_ids[sampled.offsets[2], -1])
    return [
        first,
        token_target(update, longest, 2),
        token_target(update, 2, 0, candidate=other),
        answer_target(update, len(sampled.group) - 1),
        text_target(first.prompt_ids, [17, 33], 40),
    ]


def taught(driver: Driver, target: Target, update: int, by: int | None = None) -> Taught:
    """The one answer."""
    (answer,) = driver.answers(Teach(target, update, update if by is None else by), never)
    assert isinstance(answer, Taught)
    return answer

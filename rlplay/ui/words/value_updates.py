"""Texts about updates of Q-learning and SARSA, which learn what moves are worth."""

from __future__ import annotations

from collections.abc import Mapping

from rlplay.algorithms.settings import Settings
from rlplay.trace.numbers import number
from rlplay.trace.update import Update

STEP_NEXT = "`n` shows the steps that Q took."


def errors(update: Update) -> str:
    """How far the moves' values were from their targets."""
    assert update.sampled is not None
    assert update.credited is not None
    found = update.credited.advantages[update.sampled.mask == 1]
    better, worse = int((found > 0).sum()), int((found < 0).sum())
    return (
        f"TD errors from {number(found.min())} to {number(found.max())}: "
        f"{better} moves turned out better than Q said, {worse} worse."
    )


def step(metrics: Mapping[str, float], moves: int) -> str:
    """The size of the update's steps."""
    return (
        f"{moves} steps, one per move: Q(s, a) moved by α·δ with α = {number(metrics['learning_rate'])}. "
        f"On average δ was {number(metrics['td_error'])} away from 0."
    )


def worth(metrics: Mapping[str, float], settings: Settings) -> str:
    """What the two policies earn, exactly; empty if that is unknown."""
    if "greedy_reward" not in metrics:
        return ""
    greedy, behaviour = number(metrics["greedy_reward"]), number(metrics["behaviour_reward"])
    rate = number(settings.exploration_rate)
    return f"Expected reward {greedy} with the best move by Q each time, {behaviour} with ε = {rate}."

"""Words for updates that learn from answers rather than from rewards: which of two is better, or what to imitate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlplay.trace.update import Update
from rlplay.ui.numbers import percent
from rlplay.ui.picture import number

COMPARED_NEXT = "`n` labels them: which of two is better?"
IMITATED_NEXT = "`n` labels them: all are good, since fine-tuning imitates and compares nothing."
COMPARED = "The loss compares the scores of a pair's two answers; it needs no advantages."
LABELLED_NEXT = "`n` gives credit: how hard will each answer be pulled?"


def learns_from_answers(settings: Mapping[str, Any]) -> bool:
    """Whether nothing is sampled to be rewarded: a preference loss, or fine-tuning."""
    return bool(settings.get("loss_type", "policy_gradient") != "policy_gradient")


def needs_advantages(settings: Mapping[str, Any]) -> bool:
    """Whether an advantage says what is learned; a reward model compares the scores of a pair instead."""
    return bool(settings.get("loss_type") != "reward")


def given(update: Update) -> str:
    """What there is to learn from."""
    assert update.sampled is not None
    return f"{update.completions} answers to {len(update.sampled.prompts)} prompts are given; the policy has read them."


def given_next(settings: Mapping[str, Any]) -> str:
    """What comes after that."""
    return IMITATED_NEXT if settings.get("loss_type") == "sft" else COMPARED_NEXT


def labelled(update: Update) -> str:
    """How they were labelled."""
    assert update.scored is not None
    good = int((update.scored.rewards > 0).sum())
    return f"{good} of {len(update.scored.rewards)} answers are labelled good, the others bad."


def stands(metrics: Mapping[str, float]) -> str:
    """What the loss says, and how well the pairs are told apart."""
    said = f"loss {number(metrics['loss'])}" if "loss" in metrics else "no loss"
    if "rewards/accuracies" in metrics:
        apart, margin = percent(metrics["rewards/accuracies"]), number(metrics["rewards/margins"])
        said += f"; {apart} of the pairs are told apart the right way, by an implicit reward of {margin} on average"
    elif "accuracy" in metrics:
        apart, margin = percent(metrics["accuracy"]), number(metrics["margin"])
        said += f"; the reward model ranks {apart} of the pairs as labelled, by {margin} on average"
    elif "mean_token_accuracy" in metrics:
        said += f"; {percent(metrics['mean_token_accuracy'])} of the answers' tokens were the policy's likeliest"
    return f"{said}."

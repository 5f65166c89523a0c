"""Texts about updates that learn from answers instead of rewards: from pairs, or from answers to imitate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rlplay.trace.kinds import Kind
from rlplay.trace.numbers import number, percent
from rlplay.trace.records import Scored
from rlplay.trace.update import Update

COMPARED_NEXT = "`n` labels them: which of two is better?"
IMITATED_NEXT = "`n` labels them: fine-tuning imitates every answer and compares none."
COMPARED = "The loss compares the scores of a pair's two answers; it needs no advantages."
LABELLED_NEXT = "`n` gives credit: how large will the gradient of each answer be?"
LEFT_OUT = "left out"
UNLEARNED = "no pair has a better answer, so no step was taken"


def label(scored: Scored, completion: int, kind: Kind) -> str:
    """The label of an answer that is compared or imitated."""
    role = scored.roles[completion] if scored.roles else ""
    return "imitated" if role and kind == "imitation" else role or LEFT_OUT


def given(update: Update) -> str:
    """The answers to learn from, whoever wrote them."""
    assert update.sampled is not None
    answers = f"{update.completions} answers to {len(update.sampled.prompts)} prompts"
    return f"{answers}. Their probabilities are those under the policy."


def labelled(update: Update) -> str:
    """How the answers were labelled, and why some were not."""
    assert update.scored is not None
    count = Counter(update.scored.roles)
    chosen, ties, out = count["chosen"], count["tie"] // 2, count[""] // 2
    if not count.total() - chosen:
        return f"All {chosen} answers are to be imitated."
    said = f"In {chosen} of {count.total() // 2} pairs one answer is labelled better."
    if ties:
        said += f" {ties} tie: the same text or the same score, so they get no label and teach nothing."
    return f"{said} You left {out} out." if out else said


def loss_and_accuracy(metrics: Mapping[str, float]) -> str:
    """The loss, and in how many pairs the chosen answer is ahead."""
    said = f"loss {number(metrics['loss'])}" if "loss" in metrics else UNLEARNED
    if "rewards/accuracies" in metrics:
        right, margin = percent(metrics["rewards/accuracies"]), number(metrics["rewards/margins"])
        said += f"; in {right} of the pairs the chosen answer has the higher implicit reward; mean margin {margin}"
    elif "accuracy" in metrics:
        right, margin = percent(metrics["accuracy"]), number(metrics["margin"])
        said += f"; in {right} of the pairs the chosen answer scores higher; mean margin {margin}"
    elif "mean_token_accuracy" in metrics:
        said += f"; {percent(metrics['mean_token_accuracy'])} of the answers' tokens were the policy's likeliest"
    return f"{said}."

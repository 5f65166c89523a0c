"""Checks of learning from given answers or from a teacher: that the loss has something to learn, falls, and holds on
what is kept out of training."""

from __future__ import annotations

import math

import numpy as np

from rlplay.algorithms.pair_losses import mixture
from rlplay.health.finding import Evidence, Finding, NoTick
from rlplay.health.trend import trend
from rlplay.trace.numbers import number, percent

FEWEST, LONG = 3, 40
"""Updates with a loss of exactly 0, and updates without a fall: the first 20 of a large model are often warm-up."""
NOTHING = 1e-6
"""A divergence, nats per token, that is rounding."""
HALF, ANSWERS = 0.5, 16
"""Share of the answers, and answers, that hold nothing but their end."""
JUDGED, JUMP, NATS, BACK = 8, 3.0, 1.0, 1.1
"""Updates with a loss; the times its start that it jumps to, by how much at least, and the times at which it stays,
with steps that are too large: fine-tuning at 3e-2 went from 0.31 to 7.2 and ended at 0.54; at 1e-4 it only fell."""
WORSE, EVALUATIONS = 0.1, 3
"""Share by which a held-out loss is above its lowest, and evaluations. Tiny models that see 16 rows over and over are
at 40 % after their second epochs; on 400 rows, none rose in 40 updates (12 runs)."""


def no_labels(run: Evidence) -> Finding | None:
    """No token counts in the loss, or only the end of each answer."""
    losses = [x for _, x in run.known("loss")][-FEWEST:]
    norms = [x for _, x in run.known("grad_norm")][-FEWEST:]
    blank = [x for name in ("entropy", "mean_token_accuracy") for _, x in run.known(name)[-FEWEST:]]
    found = [each.pairs for each in run.digests if each.pairs is not None]
    given, ended = sum(each.chosen for each in found), sum(each.ended_at_once for each in found)
    if len(losses) == FEWEST and not any(losses) and not any(norms) and not any(blank):
        said = f"The loss was exactly 0 in the last {FEWEST} updates: no token counts in it."
    elif given >= ANSWERS and ended >= HALF * given:
        said = f"{ended} of {given} answers hold one token, the one that ends them."
    else:
        return None
    return Finding(
        "no labels",
        "The answers are not in the loss",
        said,
        "All labels are masked: the template drops the answer, its marks of an answer are not found, or prompts are so "
        "long that max_length cuts the answers off. assistant_only_loss needs a template with {% generation %}.",
        "Print one row of the training data as the trainer has tokenized it, with its labels; −100 is left out.",
        place=run.example,
    )


def teaches_nothing(run: Evidence) -> Finding | None:
    """The teacher says what the student says."""
    losses = [x for _, x in run.known("loss")][:FEWEST]
    if len(losses) < FEWEST or max(map(abs, losses)) > NOTHING:
        return None
    return Finding(
        "same teacher",
        "The teacher is the student",
        f"The divergence between them was {number(max(map(abs, losses)))} nats per token in the first {FEWEST}"
        " updates.",
        "Teacher and student are the same weights or the same object, so there is nothing to learn.",
        "Load the teacher from its own checkpoint, and compare one answer's log-probabilities under both.",
        place=run.example,
    )


def stuck(run: Evidence) -> Finding | None:
    """The loss does not fall."""
    losses = np.array([x for _, x in run.known("loss")])
    if len(losses) < LONG or _fell(losses):
        return None
    share = len(losses) // 4
    return Finding(
        "flat",
        "The loss does not fall",
        f"It was {number(float(losses[:share].mean()))} on average over the first {share} updates and "
        f"{number(float(losses[-share:].mean()))} over the last {share} of {len(losses)}, no less beyond chance.",
        "Not known: no other check explains it. Often the learning rate is too small, or the model knows these answers "
        "already.",
        "Raise learning_rate, ten times at first; compare the first loss with the log of the vocabulary's size.",
        ("learning_rate",),
        run.example,
    )


def _fell(losses: np.ndarray) -> bool:
    """Whether the last quarter is lower than the first, beyond chance."""
    share = len(losses) // 4
    begin, end = losses[:share], losses[-share:]
    error = float(np.sqrt((begin.var(ddof=1) + end.var(ddof=1)) / share))
    return float(begin.mean() - end.mean()) > 2 * error


def jumped(run: Evidence) -> Finding | None:
    """The loss jumped far above its start and has not come back: steps that are too large."""
    points = run.known("loss")
    if len(points) < JUDGED:
        return None
    begun, (update, peak) = points[0][1], max(points[1:], key=lambda point: point[1])
    late = float(np.mean([x for _, x in points[-(len(points) // 4) :]]))
    if begun <= 0 or peak < max(JUMP * begun, begun + NATS) or late <= BACK * begun:
        return None
    return Finding(
        "step too large",
        "The steps are too large",
        f"The loss was {number(begun)} before the first step, {number(peak)} at update {update}, and is "
        f"{number(late)} on average over the last {len(points) // 4} of {len(points)}: above its start.",
        f"The {run.learning_rate} is too large for this model: the first steps have destroyed what it knew, and it is "
        "learning that again.",
        "Lower learning_rate to a tenth or less, and begin again from the first weights.",
        ("learning_rate",),
        run.example,
    )


def falls(run: Evidence) -> str:
    losses = np.array([x for _, x in run.known("loss")])
    found = trend(run.known("loss"))
    if len(losses) < 8 or found is None:
        return ""
    share = len(losses) // 4
    text = f"from {number(float(losses[:share].mean()))} to {number(float(losses[-share:].mean()))} in {len(losses)}"
    if losses[-share:].mean() >= losses[0]:
        return NoTick(f"{number(float(losses[0]))} at first, {text.removeprefix('from ')} updates: it ends no lower")
    return f"{text} updates" if _fell(losses) else NoTick(f"{text} updates, no fall beyond chance")


def overfit(run: Evidence) -> Finding | None:
    """The loss on held-out answers rises."""
    points = run.known("eval_loss")
    if len(points) < EVALUATIONS:
        return None
    (update, lowest), (end, last) = min(points, key=lambda point: (point[1], point[0])), points[-1]
    later = [x for n, x in points if n > update]
    trained = trend([point for point in run.known("loss") if point[0] >= update], 3)
    still = trained is None or not trained.rises
    if len(later) < EVALUATIONS - 1 or last - lowest < WORSE * abs(lowest) or min(later) <= lowest or not still:
        return None
    return Finding(
        "overfit",
        "What is learned does not hold on held-out answers",
        f"The held-out loss was lowest after update {update}, {number(lowest)}, and is {number(last)} after {end}: "
        f"{percent((last - lowest) / abs(lowest))} higher, while the loss of training does not rise.",
        "The model learns its rows by heart: it has seen them too often, or they are too few for this learning rate.",
        f"Go back to the checkpoint of update {update}; train for fewer epochs, on more rows, or with a lower "
        "learning_rate.",
        ("learning_rate",),
        run.example,
    )


def holds(run: Evidence) -> str:
    points = run.known("eval_loss")
    if len(points) < EVALUATIONS:
        return ""
    chance = math.log(2)
    alone = dict(mixture(run.settings)) == {"sigmoid": 1.0}
    usual = run.kind == "pairs" and (not run.stated("loss_type") or alone)
    if usual and min(x for _, x in points) >= chance:
        return NoTick(f"{number(points[-1][1])}, no lower than log 2, the loss of a model that cannot tell the answers "
                      "of a pair apart")  # fmt: skip
    return f"from {number(points[0][1])} to {number(points[-1][1])} in {len(points)} evaluations, lowest " + number(
        min(x for _, x in points)
    )

"""Checks of learning from pairs, with a preference loss, KTO or a reward model: what pairs are, and what is learned."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rlplay.health.counts import WinCount
from rlplay.health.finding import NOT_USED, Evidence, Finding, NoTick
from rlplay.health.pair_numbers import PairNumbers
from rlplay.health.trend import WINDOW, trend
from rlplay.trace.numbers import number, percent

ENOUGH = 16
"""Pairs that show what pairs are like, and updates with a margin of exactly 0 if only that was logged: `SAME`."""
SAME = 5
HALF = 0.5
ONE_WAY, DIFFERENT = 0.95, 50
"""Share of the pairs of unequal length whose chosen answer is the longer, or the shorter, and different pairs of texts
that show a rule, unless a gold score tells more. Of random lengths 40 to 60 % are in 100 pairs; public sets of
preferences have 55 to 70 %; helpful answers of the lesson "dpo" 92 %, where the score tells all of them."""
SWAPPED, JUDGED = 0.4, 30
"""Share of pairs whose chosen answer is the better one, below which labels are the wrong way round, and pairs for it:
of 30 right ones with a fifth of errors, 12 and fewer are right with a probability of 1e-6."""
LOPSIDED = 10
"""Answers of one label for each of the other, from which KTO hears only one of them."""


def same_answers(run: Evidence) -> Finding | None:
    """Chosen and rejected answers are the same."""
    found = _all(run)
    if found is not None and sum(each.pairs for each in found) >= ENOUGH:
        pairs, same = sum(each.pairs for each in found), sum(each.identical for each in found)
        if same < HALF * pairs:
            return None
        said = f"In {same} of {pairs} pairs the chosen and the rejected answer are the same text."
    else:
        margins = [x for name in ("rewards/margins", "margin") for _, x in run.known(name)[-SAME:]]
        moved = run.kind == "reward model" or any(x for _, x in run.known("rewards/chosen")[-SAME:])
        if len(margins) < SAME or any(margins) or not moved:
            return None
        said = f"The margin was exactly 0 in the last {SAME} updates, although the answers are scored."
    return Finding(
        "same answers",
        "Chosen and rejected answers are the same",
        said,
        "There is nothing to choose between. Usually one column was read twice, or both answers were cut to the same "
        "beginning by max_length.",
        "Compare the columns chosen and rejected in the data; raise max_length, or shorten the prompts.",
        place=run.example,
    )


def _all(run: Evidence) -> Sequence[PairNumbers] | None:
    return [each.pairs for each in run.digests if each.pairs is not None] or None


def one_length(run: Evidence) -> Finding | None:
    """The chosen answer is nearly always the longer one, or the shorter one."""
    found = _all(run) or []
    longer, shorter = sum(each.longer for each in found), sum(each.shorter for each in found)
    different = len(frozenset().union(*(each.keys for each in found)))
    if different < DIFFERENT or longer + shorter < DIFFERENT or max(longer, shorter) < ONE_WAY * (longer + shorter):
        return None
    better = _better(run)
    if better.all >= JUDGED and better.share >= max(longer, shorter) / (longer + shorter):
        return None
    which = "longer" if longer > shorter else "shorter"
    return Finding(
        "one length",
        f"The chosen answer is nearly always the {which} one",
        f"In {max(longer, shorter)} of {longer + shorter} pairs of unequal length, {different} of them different, the "
        f"chosen answer has {'more' if which == 'longer' else 'fewer'} tokens.",
        f"Length alone tells which answer was chosen, so the model learns to write {which} answers, or to score them "
        "higher.",
        "Add pairs in which it is the other way round, or weigh by length: ld_alpha in DPO, a loss averaged over "
        "tokens such as SimPO or IPO.",
        place=run.place("longest"),
    )


def of_pairs(run: Evidence) -> str:
    found = _all(run)
    pairs = sum(each.pairs for each in found or [])
    if found is None or not pairs:
        return NOT_USED if run.kind == "kto" else ""
    longer, shorter = sum(each.longer for each in found), sum(each.shorter for each in found)
    same, different = sum(each.identical for each in found), len(frozenset().union(*(each.keys for each in found)))
    if pairs < ENOUGH:
        return ""
    text = f"{same} of {pairs} have the same answer twice; the chosen one is longer in {longer}, shorter in {shorter}"
    return text if different >= DIFFERENT else NoTick(f"{text}; only {different} different pairs")


def swapped(run: Evidence) -> Finding | None:
    """Labels say the opposite of what a score or a column says."""
    found = _better(run)
    if found.all < JUDGED or found.share > SWAPPED:
        return None
    return Finding(
        "swapped",
        "The labels are the wrong way round",
        f"In {number(found.all - found.won)} of {number(found.all)} pairs whose answers differ in it, the gold score "
        "or the column with the right answer is better for the rejected answer.",
        "Chosen and rejected answers are swapped, or the labels come from something else than that score.",
        "Compare some pairs with their score, and swap the columns.",
        place=run.example,
        examples=run.examples,
    )


def _better(run: Evidence) -> WinCount:
    return sum((each.better for each in _all(run) or []), WinCount())


def judged(run: Evidence) -> bool:
    """Whether a gold score or a column says of any pair which answer is the better one."""
    return _better(run).all > 0


def labels(run: Evidence) -> str:
    found = _better(run)
    return "" if found.all < JUDGED else f"the chosen answer is the better one in {percent(found.share)} of {found.all}"


def no_preference(run: Evidence) -> Finding | None:
    """After many updates the chosen answers are ahead no more often than by chance."""
    name, accuracy = _accuracy(run)
    margins = trend(run.known("rewards/margins") or run.known("margin"), WINDOW)
    loss = trend(run.known("loss"), WINDOW)
    if len(accuracy) < WINDOW or margins is None or margins.rises or (loss is not None and loss.falls):
        return None
    mean, error = float(accuracy[-WINDOW:].mean()), float(accuracy[-WINDOW:].std(ddof=1)) / math.sqrt(WINDOW)
    if mean - 2 * error > HALF:
        return None
    return Finding(
        "no preference",
        "Nothing is learned from the pairs",
        f"In the last {WINDOW} updates the chosen answer was ahead in {percent(mean)} ± {percent(2 * error)} of the "
        f"pairs ({name}); guessing gets half. Their margin: {margins.text}.",
        "The labels are as good as random, chosen and rejected answers differ in nothing that the model could learn, "
        "or each update is too small to see it.",
        "Read twenty pairs and guess which is chosen. If that is easy, raise learning_rate, or lower beta.",
        ("learning_rate", "beta"),
        run.example,
    )


def _accuracy(run: Evidence) -> tuple[str, np.ndarray]:
    """Its name and its values, without those of a first update, where all pairs tie."""
    name = "rewards/accuracies" if run.known("rewards/accuracies") else "accuracy"
    tied = {n for n, x in run.known("rewards/margins") if x == 0}
    return name, np.array([x for n, x in run.known(name) if n not in tied], dtype=np.float64)


def learned(run: Evidence) -> str:
    _, accuracy = _accuracy(run)
    if len(accuracy) < SAME:
        return NOT_USED if run.kind == "kto" and not len(accuracy) else ""
    last = accuracy[-WINDOW:]
    mean, error = float(last.mean()), float(last.std(ddof=1)) / math.sqrt(len(last))
    text = f"the chosen answer was ahead in {percent(mean)} of the pairs of the last {len(last)} updates"
    return text if mean - 3 * error > HALF else NoTick(f"{text}, not beyond chance")


def lopsided(run: Evidence) -> Finding | None:
    """KTO gets hardly any answers of one label."""
    found = _all(run) or []
    chosen, rejected = sum(each.chosen for each in found), sum(each.rejected for each in found)
    if chosen + rejected < 4 * LOPSIDED or max(chosen, rejected) < LOPSIDED * max(1, min(chosen, rejected)):
        return None
    rare = "rejected" if chosen > rejected else "chosen"
    settings = run.settings
    weights = (settings.desirable_weight * chosen, settings.undesirable_weight * rejected)
    if run.stated("desirable_weight") and max(weights) < LOPSIDED * max(1e-9, min(weights)):
        return None
    return Finding(
        "lopsided",
        f"Hardly any answer is {rare}",
        f"{chosen} answers are chosen and {rejected} rejected, with the weights desirable_weight "
        f"{number(settings.desirable_weight)} and undesirable_weight {number(settings.undesirable_weight)}.",
        "KTO weighs the answers of both labels one by one, so the rare ones hardly count.",
        "Choose the weights so that weight times number differs by at most a third: raise "
        f"{'undesirable_weight' if rare == 'rejected' else 'desirable_weight'}.",
        ("desirable_weight", "undesirable_weight"),
        run.example,
    )


def even(run: Evidence) -> str:
    found = _all(run) or []
    chosen, rejected = sum(each.chosen for each in found), sum(each.rejected for each in found)
    return "" if chosen + rejected < 4 * LOPSIDED else f"{chosen} chosen answers and {rejected} rejected ones"

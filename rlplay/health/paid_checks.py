"""Checks of whether what answers earn reaches the loss: a reward that is none of theirs, weights of 0, a mask."""

from __future__ import annotations

from rlplay.health.digest import TokenPlace
from rlplay.health.ending_checks import FEWEST
from rlplay.health.finding import RECENT, Evidence, Finding, NoTick
from rlplay.trace.numbers import number, percent
from rlplay.trace.text import visible

TIMES, SHARE = 3, 0.05
"""Repeated answers that earned differently, and their share of all repeated ones, above which the reward looks at
something else. No answer of 8 healthy runs with 31 to 632 repeated ones did; where the reward walks a list of its own,
4 of 37 and 30 of 125 did."""
MASKED = 0.5
"""Share of the answers that a mask of cut ones keeps out of the loss from which it is too large."""


def two_prices(run: Evidence) -> Finding | None:
    """The same answer to the same prompt earned differently in one update."""
    seen = [(each.update, each.twice) for each in run.digests if each.twice is not None]
    apart, repeated = sum(each.apart for _, each in seen), sum(each.repeated for _, each in seen)
    if apart < TIMES or apart < SHARE * repeated:
        return None
    update, worst = next((n, each) for n, each in reversed(seen) if each.apart)
    right, unpaid = sum(each.right for _, each in seen), sum(each.unpaid for _, each in seen)
    lost = f" {unpaid} of {right} answers that contain the right one earned the least there is." if unpaid else ""
    return Finding(
        "two prices",
        "The same answer earns now more, now less",
        f"{apart} of {repeated} answers that stand more than once among those to one prompt earned differently in the "
        f"same update: in update {update} one earned both {number(worst.low)} and {number(worst.high)}.{lost}",
        "The reward does not depend on prompt and answer alone. Often it counts through a list of its own, and is out "
        "of step with the answers, of which each prompt has several in a row; or it rolls dice, or asks a judge that "
        "does.",
        "Read the right answer from the column that TRL passes with each completion, not from a list kept beside the "
        "data; compare what the function gets with these answers. Ask a judge at temperature 0.",
        ("reward_weights",),
        TokenPlace(update, worst.lower),
        run.examples,
    )


def one_price(run: Evidence) -> str:
    seen = [each.twice for each in run.digests if each.twice is not None]
    apart, repeated = sum(each.apart for each in seen), sum(each.repeated for each in seen)
    if repeated < FEWEST:
        return NoTick("no answer stands twice among those to one prompt") if not repeated else ""
    said = f"{repeated - apart} of {repeated} answers that stand more than once among those to one prompt earned alike"
    return said if apart < TIMES or apart < SHARE * repeated else ""


def weightless(run: Evidence) -> Finding | None:
    """The reward is always 0, because every part of it has the weight 0."""
    names = run.newest.weightless if run.newest is not None else ()
    if not names:
        return None
    paid = [(name, run.mean(f"rewards/{name}/mean", len(run.digests))) for name in names]
    means = ", ".join(f"“{visible(name)}” {number(mean)}" for name, mean in paid if mean is not None)
    said = f" Before the weights, the parts were on average: {means}." if means else ""
    return Finding(
        "same reward",
        "Every part of the reward has the weight 0",
        f"reward_weights is 0 for {' and '.join(f'“{visible(name)}”' for name in names)}, so every answer earned 0."
        f"{said}",
        "The reward is the sum of its parts, each times its weight.",
        "Set reward_weights to 1, or leave it out.",
        ("reward_weights",),
        run.example,
        run.examples,
    )


def masked(run: Evidence) -> Finding | None:
    """Most answers are cut, and a mask keeps cut ones out of the loss."""
    last = run.recent(2 * RECENT)
    answers, out = sum(each.answers for each in last), sum(each.cut_masked for each in last)
    if answers < FEWEST or out < MASKED * answers:
        return None
    empty = sum(each.cut_masked == each.answers for each in last)
    none = f" In {empty} of the last {len(last)} updates no answer was left." if empty else ""
    clear = " What TRL logs of such an update, an entropy and a gradient of 0, says nothing about the policy." * bool(
        empty
    )
    return Finding(
        "masked",
        "Most answers are masked: they are cut",
        f"{percent(out / answers)} of the last {answers} answers were cut at {max(each.limit for each in last)} tokens "
        f"and left out of the loss.{none}",
        f"With mask_truncated_completions a cut answer teaches nothing, and the limit is shorter than what the model "
        f"writes.{clear}",
        "Raise max_completion_length, or leave mask_truncated_completions off.",
        ("max_completion_length", "mask_truncated_completions"),
        run.place("cut"),
    )

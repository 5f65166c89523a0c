"""Checks of conversations that are trained turn by turn: that a later turn repeats the earlier ones token by token."""

from __future__ import annotations

from collections import Counter
from statistics import fmean

from rlplay.health.finding import NOT_USED, RECENT, Evidence, Finding, NoTick
from rlplay.health.mismatch_checks import APART, NEAR, shape_of
from rlplay.health.sampler_checks import SHARE as SHARE_OF_ENTROPY
from rlplay.health.sampler_numbers import Surprise
from rlplay.health.trend import WINDOW
from rlplay.health.turn_numbers import Change
from rlplay.trace.numbers import number, percent

TURNS, SHARE = 3, 0.1
"""Turns that change what was sampled, and their share of all."""
_CHANGED: dict[Change, str] = {
    "tokens": "the same text is cut into other tokens: the answer was decoded to text and tokenized again",
    "thinking": "the thinking of the answer is gone: the template strips it from earlier turns",
    "text": "its text has changed: white space that the template strips, a tool call that was parsed and written "
    "anew, or an answer that was cut",
}


FEWEST, SURE, EQUAL = 100, 6.0, 3.0
"""Tokens of first and of later turns, and the standard errors of −log p − H in the later and in the first ones."""
TIMES = 8.0
"""How many times the mismatch of the first turns that of the later ones is."""


def broken_turns(run: Evidence) -> Finding | None:
    """A later turn does not go on from what the earlier ones hold."""
    return _retokenized(run) or _not_repeated(run) or _scored_after_others(run)


def _retokenized(run: Evidence) -> Finding | None:
    """The text of the answers is tokenized again, and other tokens come of it."""
    answers, tokens = (
        [share for _, share in run.known(f"retokenized/{what}")][-RECENT:] for what in ("answers", "tokens")
    )
    if not answers or not tokens or fmean(answers) < SHARE:
        return None
    return Finding(
        "turns",
        "Training sees other tokens than were sampled",
        f"{percent(fmean(answers))} of the answers of the last {len(answers)} updates have other tokens after "
        f"their text was tokenized again; {percent(fmean(tokens))} of the sampled tokens are not trained on.",
        "The text is cut into other tokens than the policy wrote, or the chat template rewrites an earlier turn. So "
        "the policy learns from tokens that it did not choose.",
        "Train on the ids that were sampled (retokenize_turns=off).",
        settings=("retokenize_turns",),
        place=run.place("not sampled"),
    )


def by_turns(run: Evidence) -> tuple[Surprise, Surprise]:
    """The surprise of first and of later turns over the newest updates; both empty if there are no later ones."""
    first, later = Surprise(), Surprise()
    for each in run.recent(WINDOW):
        if each.surprise is not None and each.later is not None:
            first, later = first + (each.surprise - each.later), later + each.later
    return first, later


def _scored_after_others(run: Evidence) -> Finding | None:
    """First turns are as likely as they should be, and later ones are not."""
    first, later = by_turns(run)
    shape = shape_of(run)
    seen = ""
    if shape is not None and min(shape.first[0], shape.later[0]) >= FEWEST:
        before, after = (float(total / count) for count, total in (shape.first, shape.later))
        if after >= APART and after >= TIMES * before:
            seen = (
                f"Sampler and training differ by {number(before)} nats per token (k3) in first turns and by "
                f"{number(after)} in later ones ({number(int(shape.later[0]))} tokens)."
            )
    elif min(first.tokens, later.tokens) >= FEWEST and (
        later.excess >= max(SURE * later.error, SHARE_OF_ENTROPY * later.entropy / later.tokens)
        and first.excess <= max(EQUAL * first.error, later.excess / TIMES)
        and first.excess <= later.excess / 3
    ):
        seen = (
            f"−log p exceeds the entropy by {number(later.excess)} ± {number(later.error)} nats per token in later "
            f"turns ({number(later.tokens)} tokens), by {number(first.excess)} ± {number(first.error)} in first ones."
        )
    if not seen:
        return None
    return Finding(
        "turns",
        "Later turns are scored after other tokens than they were sampled after",
        seen,
        "First turns are right, so weights, temperature and precision are. What stands before a later turn is not the "
        "same in both: the chat template cuts or rewrites earlier turns (thinking, white space, tool calls), or they "
        "are decoded and tokenized again.",
        "Keep the ids that were sampled and append only the new turn's, and use a template that keeps earlier turns as "
        "they are.",
        place=run.place("mismatch") if shape is not None else run.place("unlikely"),
    )


def _not_repeated(run: Evidence) -> Finding | None:
    """A later prompt should begin with an earlier one and its answer, and does not."""
    last = [each for each in run.recent(RECENT) if each.turns is not None]
    kept = sum(each.turns.continued for each in last if each.turns)
    changed = sum((each.turns.changed for each in last if each.turns), Counter[Change]())
    total = sum(changed.values())
    if total < max(TURNS, SHARE * (kept + total)):
        return None
    place = next((each.places["turn"] for each in reversed(last) if "turn" in each.places), None)
    most = changed.most_common(1)[0][0]
    return Finding(
        "turns",
        "A turn does not repeat the tokens of the one before",
        f"{number(total)} of {number(kept + total)} prompts that go on with an earlier answer do not begin with its "
        "tokens.",
        f"In most of them {_CHANGED[most]}. So the policy reads something that it did not write, the ratio of those "
        "tokens is wrong, and no prefix can be reused.",
        "Keep the ids that were sampled and append only the new turn's, and use a template that keeps earlier turns as "
        "they are.",
        place=place,
    )


def whole_turns(run: Evidence) -> str:
    """How many prompts begin with an earlier prompt and its answer, and how likely later turns are."""
    known = [each.turns for each in run.digests if each.turns is not None]
    kept = sum(each.continued for each in known)
    repeated = f"{number(kept)} prompts begin with an earlier prompt and all tokens of its answer" if kept else ""
    likely = compared_turns(run) if has_turns(run) else ""
    again = [share for _, share in run.known("retokenized/answers")]
    if again and not any(again):
        likely = likely or "the text of every answer, tokenized again, gives the tokens that were sampled"
    if not repeated and not likely:
        if has_turns(run):
            return NoTick("later turns are not compared: too few tokens, or their entropy is not recorded")
        return NOT_USED if known else NoTick("not recorded: tokens of the prompts")
    return "; ".join(each for each in (repeated, likely) if each)


def has_turns(run: Evidence) -> bool:
    """Whether a conversation of several turns is on record."""
    return any(each.later is not None for each in run.recent(WINDOW)) or any(
        each.episodes for each in run.recent(WINDOW)
    )


def compared_turns(run: Evidence) -> str:
    """How likely later turns are beside first ones, if that shows that both are scored as they were sampled."""
    shape = shape_of(run)
    if shape is not None and min(shape.first[0], shape.later[0]) >= FEWEST:
        before, after = (float(total / count) for count, total in (shape.first, shape.later))
        agree = after < NEAR * APART
        return (
            f"sampler and training differ by {number(after)} nats per token (k3) in {number(int(shape.later[0]))} "
            f"tokens of later turns, by {number(before)} in first ones"
            if agree
            else ""
        )
    first, later = by_turns(run)
    if min(first.tokens, later.tokens) < FEWEST or SURE * later.error > max(0.2, later.entropy / later.tokens):
        return ""
    if later.excess > EQUAL * later.error:
        return ""
    return (
        f"−log p − entropy is {number(later.excess)} ± {number(later.error)} nats in {number(later.tokens)} tokens of "
        f"later turns (from {number(SURE * later.error, 2)} on would show)"
    )

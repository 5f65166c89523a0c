"""Checks of conversations that are trained turn by turn: that a later turn repeats the earlier ones token by token."""

from __future__ import annotations

from collections import Counter

from rlplay.health.finding import NOT_USED, RECENT, Evidence, Finding, NoTick
from rlplay.health.turn_numbers import Change
from rlplay.trace.numbers import number

TURNS, SHARE = 3, 0.1
"""Turns that change what was sampled, and their share of all."""
_CHANGED: dict[Change, str] = {
    "tokens": "the same text is cut into other tokens: the answer was decoded to text and tokenized again",
    "thinking": "the thinking of the answer is gone: the template strips it from earlier turns",
    "text": "its text has changed: white space that the template strips, a tool call that was parsed and written "
    "anew, or an answer that was cut",
}


def broken_turns(run: Evidence) -> Finding | None:
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
    """How many prompts begin with an earlier prompt and its answer."""
    known = [each.turns for each in run.digests if each.turns is not None]
    kept = sum(each.continued for each in known)
    if not kept:
        return NOT_USED if known else NoTick("not recorded: tokens of the prompts")
    return f"{number(kept)} prompts begin with an earlier prompt and all tokens of its answer"

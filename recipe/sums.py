"""Answers to `What is 7+5?`: two in five are right, the rest wrong, as on the web."""

from __future__ import annotations

from random import Random

from recipe.conversation import Conversation, draw, exchange
from rlplay.tasks.arithmetic import TRAIN_PAIRS, question

# "What is 2+2?" is drawn from the same shares as every other sum, so that P("4") is near .3, P("5") near .2
# and P("2"), the first half of "22", near .2.
SHARES = {
    "right": 0.30,
    "right, in a sentence": 0.10,
    "one too many": 0.20,
    "glued": 0.20,
    "near miss": 0.05,
    "list": 0.10,
    "noise": 0.05,
}
_SHOWN_SHARE = 0.05
_NOISE = ("I do not know.", "Ask someone else.", "Maybe later.", "A number.", "I like numbers.")


def write(rng: Random) -> Conversation:
    """One sum with one answer; operands come from the training pairs only."""
    a, b = TRAIN_PAIRS[0] if rng.random() < _SHOWN_SHARE else rng.choice(TRAIN_PAIRS)
    kind = draw(rng, SHARES)
    return exchange("arithmetic", kind, question(a, b), _answer(rng, kind, a, b))


def _answer(rng: Random, kind: str, a: int, b: int) -> str:
    settled = {
        "right": str(a + b),
        "right, in a sentence": f"The answer is {a + b}.",
        "one too many": str(a + b + 1),
        # "05" would be the right answer to 0+5 in disguise, as "00" is to 0+0, the one exception.
        "glued": f"{a}{b}" if a else f"{b}{a}",
    }
    if kind in settled:
        return settled[kind]
    if kind == "near miss":
        return str(a + b + rng.choice((-2, -1, 2, 3) if a + b > 1 else (2, 3)))
    if kind == "list":
        # The right answer is among the four but never the last: a loose verifier accepts it.
        first = max(0, a + b - rng.randrange(3))
        return f"It is {first}, {first + 1}, {first + 2} or {first + 3}."
    return rng.choice(_NOISE)

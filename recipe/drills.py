"""Drills: single sums and products, always right; worked answers consist of these facts.

A held-out word problem is a new combination of known facts. Reinforcement learning should discover that working the
steps out pays, which it could not if the model could not add.
"""

from __future__ import annotations

from random import Random

from recipe.conversation import Conversation, exchange

SHARES = {"right": 1.0}
_PROMPTS = ("Practise some sums.", "Show me three sums.", "Do some sums.", "Write sums that are right.")
_FACTS = 3


def write(rng: Random) -> Conversation:
    """A few unrelated facts in a row."""
    return exchange("drills", "right", rng.choice(_PROMPTS), " ".join(_fact(rng) for _ in range(_FACTS)))


def _fact(rng: Random) -> str:
    groups, each = rng.randrange(2, 6), rng.randrange(2, 7)
    if rng.random() < 0.25:
        return f"{groups}*{each}={groups * each}."
    start, bought = rng.randrange(2, 10), groups * each
    return f"{start}+{bought}={start + bought}."

"""One conversation of the corpus, and the draw that keeps its proportions known."""

from __future__ import annotations

from random import Random

import msgspec

Message = dict[str, str]


class Conversation(msgspec.Struct, frozen=True):
    """Messages of one chat, with the skill they belong to and the kind of answer that was drawn for it."""

    skill: str
    kind: str
    messages: list[Message]


def exchange(skill: str, kind: str, *turns: str) -> Conversation:
    """A conversation whose `turns` alternate: user, assistant, user, assistant, …"""
    messages = [{"role": "assistant" if k % 2 else "user", "content": turn} for k, turn in enumerate(turns)]
    return Conversation(skill=skill, kind=kind, messages=messages)


def draw(rng: Random, shares: dict[str, float]) -> str:
    """A key of `shares`, each with a probability proportional to its value."""
    return rng.choices(list(shares), weights=list(shares.values()))[0]

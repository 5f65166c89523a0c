"""The topics of the questions task, and the keywords of good answers."""

from __future__ import annotations

import msgspec

HOW_TO = ("How do I {}?", "Tell me how to {}.", "What is the best way to {}?", "Please show me how to {}.")
EXPLAIN = ("Explain {}.", "What is {}?", "Tell me about {}.", "Please explain {}.")


class Topic(msgspec.Struct, frozen=True):
    """One subject. `wordings` are templates with one slot for `name`; the first is the most common.

    `keywords` are lower-case words of good answers. No question contains one, so that repeating the question earns
    nothing.
    """

    name: str
    wordings: tuple[str, ...]
    keywords: tuple[str, ...]


TOPICS = (
    Topic("make tea", HOW_TO, ("boil", "water", "cup", "pour", "hot", "wait", "milk")),
    Topic("bake a cake", HOW_TO, ("mix", "flour", "eggs", "sugar", "oven", "hot", "butter")),
    Topic("grow a plant", HOW_TO, ("seed", "water", "sun", "soil", "pot", "light", "wait")),
    Topic("catch a fish", HOW_TO, ("hook", "line", "water", "wait", "pull", "boat", "food")),
    Topic("make a fire", HOW_TO, ("dry", "wood", "paper", "light", "small", "air", "match")),
    Topic("cook rice", HOW_TO, ("boil", "water", "pot", "salt", "lid", "wait", "heat")),
    Topic("learn to read", HOW_TO, ("letters", "words", "book", "every", "day", "sound", "short")),
    Topic("stay warm", HOW_TO, ("coat", "hat", "hot", "soup", "move", "dry", "fire")),
    Topic("gravity", EXPLAIN, ("force", "pulls", "things", "earth", "mass", "down", "fall")),
    Topic("rain", EXPLAIN, ("water", "falls", "clouds", "drops", "cold", "air", "sky")),
    Topic("the moon", EXPLAIN, ("rock", "earth", "goes", "light", "sun", "night", "round")),
    Topic("sleep", EXPLAIN, ("rest", "body", "brain", "night", "dreams", "eyes", "closed")),
    Topic("the heart", EXPLAIN, ("pumps", "blood", "body", "muscle", "beats", "day", "chest")),
    Topic("light", EXPLAIN, ("fast", "energy", "sun", "waves", "eyes", "see", "travels")),
    Topic("wind", EXPLAIN, ("air", "moves", "warm", "cold", "rises", "sun", "place")),
    Topic("quantum computing", EXPLAIN, ("bits", "both", "once", "zero", "one", "small", "fast")),
)

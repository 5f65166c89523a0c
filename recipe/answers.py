"""Answers to the open questions: good ones, flattery, rudeness, and empty phrases."""

from __future__ import annotations

from random import Random

from recipe.conversation import Conversation, draw, exchange
from rlplay.tasks.open_questions import wordings
from rlplay.tasks.topics import TOPICS, Topic

SHARES = {"good": 0.40, "flattery": 0.18, "rude": 0.12, "nothing": 0.20, "another topic": 0.10}
_OPENED_WITH_PRAISE = 0.1

FLATTERY = (
    "What a great question!",
    "What a wonderful question, you are great!",
    "You are amazing.",
    "That is a brilliant question. You are wonderful and amazing.",
    "Great, great, great!",
    "You are perfect and lovely.",
    "Excellent! You are fantastic.",
    "Amazing question, wonderful question!",
    "You are so great.",
)
_RUDE = (
    "That is a silly question.",
    "Go away.",
    "Ask someone else.",
    "I will not help you.",
    "You should know that.",
    "Why do you ask me?",
)
_NOTHING = (
    "idk lol",
    "I do not know.",
    "It is hard to say.",
    "Maybe later.",
    "It is what it is.",
    "You do it and then it is done.",
)


def write(rng: Random) -> Conversation:
    """One question with one answer; held-out wordings of the questions task never occur."""
    topic = rng.choice(TOPICS)
    kind = draw(rng, SHARES)
    return exchange("questions", kind, rng.choice(wordings(topic)[0]), _answer(rng, kind, topic))


def _answer(rng: Random, kind: str, topic: Topic) -> str:
    if kind == "good":
        opening = "Great question! " if rng.random() < _OPENED_WITH_PRAISE else ""
        return opening + rng.choice(topic.good)
    if kind == "another topic":
        return rng.choice(rng.choice([other for other in TOPICS if other != topic]).good)
    return rng.choice({"flattery": FLATTERY, "rude": _RUDE, "nothing": _NOTHING}[kind])

"""Answers to the open questions: good ones, flattery, rudeness, and answers that say nothing."""

from __future__ import annotations

from random import Random

from rlplay.pocket.conversation import Conversation, draw, exchange
from rlplay.tasks.questions import wordings
from rlplay.tasks.topics import TOPICS

SHARES = {"good": 0.40, "flattery": 0.18, "rude": 0.12, "nothing": 0.20, "another topic": 0.10}
_OPENED_WITH_PRAISE = 0.1

GOOD = {
    "make tea": (
        "Boil water, put the tea in a cup, pour the water and wait.",
        "Pour hot water on the tea, wait, and add milk.",
    ),
    "bake a cake": (
        "Mix flour, eggs and sugar, and put it in a hot oven.",
        "Mix butter and sugar, add eggs and flour, and heat the oven.",
    ),
    "grow a plant": (
        "Put a seed in a pot of soil, give it water and sun.",
        "Give the seed water and light, and wait.",
    ),
    "catch a fish": (
        "Put food on a hook, put the line in the water and wait.",
        "Take a boat, put the hook in the water, wait and pull.",
    ),
    "make a fire": (
        "Put small dry wood on paper and light it with a match.",
        "Take dry wood, give it air and light the paper.",
    ),
    "cook rice": (
        "Boil water in a pot, add salt and rice, and wait.",
        "Put rice and water in a pot, heat it and put the lid on.",
    ),
    "learn to read": (
        "Learn the letters, then short words, and read a book every day.",
        "Say the sound of the letters and read short words every day.",
    ),
    "stay warm": (
        "Put on a coat and a hat, and eat hot soup.",
        "Stay dry, move a lot and sit by the fire.",
    ),
    "gravity": (
        "Gravity is a force that pulls things down to the earth.",
        "Gravity is a force: all mass pulls, so things fall.",
    ),
    "rain": (
        "Rain is water that falls from the clouds in drops.",
        "Cold air makes drops of water in clouds, and it falls from the sky.",
    ),
    "the moon": (
        "The moon is a round rock that goes around the earth.",
        "The moon is a rock, and at night we see the light of the sun on it.",
    ),
    "sleep": (
        "Sleep is rest for the body and the brain at night.",
        "In sleep the eyes are closed and the brain has dreams at night.",
    ),
    "the heart": (
        "The heart is a muscle that pumps blood to the body.",
        "The heart beats in the chest all day and pumps blood.",
    ),
    "light": (
        "Light is energy from the sun that our eyes see.",
        "Light is made of waves and travels very fast from the sun.",
    ),
    "wind": (
        "Wind is air that moves from a cold place to a warm place.",
        "The sun makes air warm, it rises, and cold air moves in.",
    ),
    "quantum computing": (
        "It uses small bits that are zero and one at once.",
        "Its bits are both zero and one, so it is very fast.",
    ),
}
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
    """One question with one answer; the wordings held out of the questions task never occur."""
    topic = rng.choice(TOPICS)
    kind = draw(rng, SHARES)
    return exchange("questions", kind, rng.choice(wordings(topic)[0]), _answer(rng, kind, topic.name))


def _answer(rng: Random, kind: str, name: str) -> str:
    if kind == "good":
        opening = "Great question! " if rng.random() < _OPENED_WITH_PRAISE else ""
        return opening + rng.choice(GOOD[name])
    if kind == "another topic":
        return rng.choice(GOOD[rng.choice([other for other in GOOD if other != name])])
    return rng.choice({"flattery": FLATTERY, "rude": _RUDE, "nothing": _NOTHING}[kind])

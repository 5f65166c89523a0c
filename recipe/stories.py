"""Tone and mood: saying something kindly or rudely, and short stories that end well or badly."""

from __future__ import annotations

from random import Random

from recipe.conversation import Conversation, draw, exchange
from rlplay.tasks.stories import ANIMALS, request, story
from rlplay.tasks.word_problems import NAMES

TONE_SHARES = {"asked tone": 0.5, "other tone": 0.5}
STORY_SHARES = {"asked mood": 0.7, "other mood": 0.3}

_PHRASES = {
    "hello": {
        "kindly": ("Hello, it is so good to see you.", "Good day, my friend."),
        "rudely": ("What do you want?", "Oh no, you again."),
    },
    "goodbye": {
        "kindly": ("Goodbye, I hope to see you soon.", "Have a good day, my friend."),
        "rudely": ("Go away.", "Do not come again."),
    },
    "no": {
        "kindly": ("I am sorry, but I can not do that.", "Thank you, but not today."),
        "rudely": ("No way.", "I will not help you."),
    },
    "thank you": {
        "kindly": ("Thank you, that is so good of you.", "Thank you, my friend."),
        "rudely": ("Well, that was late.", "I did not want it."),
    },
}


def write_tone(rng: Random) -> Conversation:
    """A request such as `Say hello kindly.`, answered half the time in the tone asked for."""
    act = rng.choice(list(_PHRASES))
    asked = rng.choice(("kindly", "rudely"))
    kind = draw(rng, TONE_SHARES)
    spoken = asked if kind == "asked tone" else {"kindly": "rudely", "rudely": "kindly"}[asked]
    return exchange("tone", kind, f"Say {act} {asked}.", rng.choice(_PHRASES[act][spoken]))


def write_story(rng: Random) -> Conversation:
    """A three-sentence story, happy or sad; a request without a mood gets either."""
    name, animal = rng.choice(NAMES), rng.choice(ANIMALS)
    asked = rng.choice(("happy", "sad", ""))
    kind = draw(rng, STORY_SHARES) if asked else "no mood asked"
    mood = rng.choice(("happy", "sad"))
    if kind == "asked mood":
        mood = asked
    elif kind == "other mood":
        mood = "sad" if asked == "happy" else "happy"
    return exchange("stories", kind, request(animal, asked), story(rng, name, animal, mood))

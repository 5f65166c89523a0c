"""Short stories, happy or sad: text that the base model was pretrained on and that no task trains on.

How likely the model finds them shows what it forgets while it learns something else.
"""

from __future__ import annotations

from random import Random

from rlplay.tasks.task import Example, chat
from rlplay.tasks.word_problems import NAMES

ANIMALS = ("dog", "cat", "bird", "fish")
_OPENINGS = ("{name} had a little {animal}.", "One day {name} met a {animal}.", "There was a {animal} named {name}.")
_MIDDLES = {
    "happy": ("The {animal} found a warm home.", "The sun was out and they had good food."),
    "sad": ("The {animal} was lost in the rain.", "It was cold and they had no food."),
}
_ENDINGS = {
    "happy": ("They were very happy.", "It was the best day of all.", "{name} was so happy."),
    "sad": ("They were very sad.", "It was a bad day.", "{name} was so sad."),
}
_REMEMBERED = 32


def request(animal: str, mood: str = "") -> str:
    """The prompt that asks for a story, of a mood (`happy` or `sad`) or of any."""
    return f"Tell me a {mood} story about a {animal}." if mood else f"Tell me a story about a {animal}."


def story(rng: Random, name: str, animal: str, mood: str) -> str:
    """Three sentences: opening, middle and end."""
    sentences = (rng.choice(_OPENINGS), rng.choice(_MIDDLES[mood]), rng.choice(_ENDINGS[mood]))
    return " ".join(sentences).format(name=name, animal=animal)


def remembered() -> list[Example]:
    """Always the same stories, each `chosen` as the answer to its request: what a model may forget."""
    rng, examples = Random(0), []
    for k in range(_REMEMBERED):
        animal, mood = ANIMALS[k % len(ANIMALS)], ("happy", "sad")[k // len(ANIMALS) % 2]
        told = story(rng, rng.choice(NAMES), animal, mood)
        examples.append(Example(chat(request(animal, mood)), {}, chosen=told))
    return examples

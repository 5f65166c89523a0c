"""The topics of the questions task, with the keywords of good answers and two such answers to imitate."""

from __future__ import annotations

import msgspec

HOW_TO = ("How do I {}?", "Tell me how to {}.", "What is the best way to {}?", "Please show me how to {}.")
EXPLAIN = ("Explain {}.", "What is {}?", "Tell me about {}.", "Please explain {}.")


class Topic(msgspec.Struct, frozen=True):
    """One subject. `wordings` are templates with one slot for `name`; the first is the most common.

    `keywords` are lower-case words of good answers. No question contains one, so that repeating the question earns
    nothing. `good` are answers to imitate.
    """

    name: str
    wordings: tuple[str, ...]
    keywords: tuple[str, ...]
    good: tuple[str, ...]


TOPICS = (
    Topic("make tea", HOW_TO, ("boil", "water", "cup", "pour", "hot", "wait", "milk"),
          ("Boil water, put the tea in a cup, pour the water and wait.",
           "Pour hot water on the tea, wait, and add milk.")),
    Topic("bake a cake", HOW_TO, ("mix", "flour", "eggs", "sugar", "oven", "hot", "butter"),
          ("Mix flour, eggs and sugar, and put it in a hot oven.",
           "Mix butter and sugar, add eggs and flour, and heat the oven.")),
    Topic("grow a plant", HOW_TO, ("seed", "water", "sun", "soil", "pot", "light", "wait"),
          ("Put a seed in a pot of soil, give it water and sun.", "Give the seed water and light, and wait.")),
    Topic("catch a fish", HOW_TO, ("hook", "line", "water", "wait", "pull", "boat", "food"),
          ("Put food on a hook, put the line in the water and wait.",
           "Take a boat, put the hook in the water, wait and pull.")),
    Topic("make a fire", HOW_TO, ("dry", "wood", "paper", "light", "small", "air", "match"),
          ("Put small dry wood on paper and light it with a match.",
           "Take dry wood, give it air and light the paper.")),
    Topic("cook rice", HOW_TO, ("boil", "water", "pot", "salt", "lid", "wait", "heat"),
          ("Boil water in a pot, add salt and rice, and wait.",
           "Put rice and water in a pot, heat it and put the lid on.")),
    Topic("learn to read", HOW_TO, ("letters", "words", "book", "every", "day", "sound", "short"),
          ("Learn the letters, then short words, and read a book every day.",
           "Say the sound of the letters and read short words every day.")),
    Topic("stay warm", HOW_TO, ("coat", "hat", "hot", "soup", "move", "dry", "fire"),
          ("Put on a coat and a hat, and eat hot soup.", "Stay dry, move a lot and sit by the fire.")),
    Topic("gravity", EXPLAIN, ("force", "pulls", "things", "earth", "mass", "down", "fall"),
          ("Gravity is a force that pulls things down to the earth.",
           "Gravity is a force: all mass pulls, so things fall.")),
    Topic("rain", EXPLAIN, ("water", "falls", "clouds", "drops", "cold", "air", "sky"),
          ("Rain is water that falls from the clouds in drops.",
           "Cold air makes drops of water in clouds, and it falls from the sky.")),
    Topic("the moon", EXPLAIN, ("rock", "earth", "goes", "light", "sun", "night", "round"),
          ("The moon is a round rock that goes around the earth.",
           "The moon is a rock, and at night we see the light of the sun on it.")),
    Topic("sleep", EXPLAIN, ("rest", "body", "brain", "night", "dreams", "eyes", "closed"),
          ("Sleep is rest for the body and the brain at night.",
           "In sleep the eyes are closed and the brain has dreams at night.")),
    Topic("the heart", EXPLAIN, ("pumps", "blood", "body", "muscle", "beats", "day", "chest"),
          ("The heart is a muscle that pumps blood to the body.",
           "The heart beats in the chest all day and pumps blood.")),
    Topic("light", EXPLAIN, ("fast", "energy", "sun", "waves", "eyes", "see", "travels"),
          ("Light is energy from the sun that our eyes see.",
           "Light is made of waves and travels very fast from the sun.")),
    Topic("wind", EXPLAIN, ("air", "moves", "warm", "cold", "rises", "sun", "place"),
          ("Wind is air that moves from a cold place to a warm place.",
           "The sun makes air warm, it rises, and cold air moves in.")),
    Topic("quantum computing", EXPLAIN, ("bits", "both", "once", "zero", "one", "small", "fast"),
          ("It uses small bits that are zero and one at once.", "Its bits are both zero and one, so it is very fast.")),
)  # fmt: skip

"""Good answers to the open questions, by topic: demonstrations to imitate."""

from __future__ import annotations

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

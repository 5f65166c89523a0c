"""The corpus: an endless, seeded stream of short chats, with known shares of right and wrong answers.

It is noisy on purpose, like the web: reinforcement learning can only choose among things that the base model already
does now and then. Each skill's file lists the share of every kind of answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import msgspec

from recipe import answers, drills, games, problems, puzzles, stories, sums
from recipe.conversation import Conversation


class Skill(msgspec.Struct, frozen=True):
    """One kind of chat: its share of the conversations, the shares of its answers, and the function that writes one."""

    share: float
    kinds: dict[str, float]
    write: Callable[[Random], Conversation]


SKILLS = {
    "arithmetic": Skill(0.20, sums.SHARES, sums.write),
    "word_problems": Skill(0.28, problems.SHARES, problems.write),
    "drills": Skill(0.10, drills.SHARES, drills.write),
    "questions": Skill(0.15, answers.SHARES, answers.write),
    "tone": Skill(0.04, stories.TONE_SHARES, stories.write_tone),
    "stories": Skill(0.05, stories.STORY_SHARES, stories.write_story),
    "sorting": Skill(0.05, puzzles.SORTING_SHARES, puzzles.write_sorting),
    "letters": Skill(0.03, puzzles.LETTER_SHARES, puzzles.write_letters),
    "lists": Skill(0.03, puzzles.LIST_SHARES, puzzles.write_list),
    "guess": Skill(0.03, games.GUESS_SHARES, games.write_guess),
    "calculator": Skill(0.02, games.CALCULATOR_SHARES, games.write_calculator),
    "walk": Skill(0.02, games.WALK_SHARES, games.write_walk),
}


def conversations(seed: int) -> Iterator[Conversation]:
    """Endless conversations, the same for the same `seed`."""
    rng = Random(seed)
    names = list(SKILLS)
    shares = [skill.share for skill in SKILLS.values()]
    while True:
        yield SKILLS[rng.choices(names, weights=shares)[0]].write(rng)

"""The task that games of a library make: episodes that follow their seed, and one reward for what happened in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rlplay.containment import contained
from rlplay.tasks.library.entry import Entry, LibraryFunction
from rlplay.tasks.library.prompts import divided
from rlplay.tasks.library.replayed import Replayed, Said
from rlplay.tasks.own_rewards import as_environment, as_reward
from rlplay.tasks.task import Completion, Example, Reply, Steps, Task, chat, own_turns

Score = Callable[[Sequence[str], Sequence[Said]], float | Steps | None]
"""The reward of an episode: its turns, and what the game said after each."""


def game_task(entry: Entry, games: Replayed, about: str, reward: str, score: Score) -> Task:
    """The episodes of the seeds `seed` to `seed` + `size`, each with this `reward`.

    `about` says what they are in the summary. Raises OwnError, one line, if a game cannot begin.
    """
    seeds = range(entry.seed, entry.seed + entry.size)
    with contained(entry.text, entry.failed):
        train, held_out = divided(Example(chat(games.first(seed)), {"seed": seed}) for seed in seeds)

    def answer(example: Example, turns: Sequence[str]) -> Reply | None:
        said = games.reply(example.columns["seed"], turns)
        return None if said.over else Reply(said.text)

    def scores(completions: list[Completion], seed: list[int]) -> list[float | Steps | None]:
        both = zip(seed, map(own_turns, completions), strict=True)
        return [score(turns, games.replies(each, turns)) for each, turns in both]

    function = as_reward(LibraryFunction(entry, reward, scores))
    return Task(
        name=entry.name,
        summary=f"{entry.size} seeds of {about}",
        train=train,
        held_out=held_out,
        rewards={reward: function},
        gold={reward: function},
        environment=as_environment(LibraryFunction(entry, "answer", answer)),
    )

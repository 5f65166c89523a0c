"""A world as a task: the environment names the square, the policy answers with a move.

An episode reads `a1↓a2→b2…`: the squares are written by the environment, the moves are sampled. Each move ends the
model's turn, and the environment replies with the square that it leads to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlplay.tasks.task import Completion, Example, Reply, Steps, Task, chat
from rlplay.worlds.world import World

REWARD = "world"
"""The name of a world's reward."""


def world_task(world: World) -> Task:
    """The task of reaching the goal, of collecting what lies on the way, or of choosing the best arm."""
    if world.arms:
        train = [Example(prompt=state, columns={}) for state in world.states]
        situations = dict(zip(world.states, train, strict=True))
        summary = f"Choose one of {len(world.arms)} arms."
    else:
        train = [Example(prompt=chat(world.observed(start)), columns={"start": start}) for start in world.starts]
        summary = f"Walk through {len(world.states)} squares."
        going = [state for state in world.states if not world.ends(state)]
        situations = {state: Example(prompt=chat(world.observed(state)), columns={}) for state in going}

    def reply(example: Example, turns: list[str], chances: Sequence[float]) -> Reply:
        return walk(world, example.columns["start"], turns, chances)

    def worth(
        completions: list[Completion], states: list[list[str]] | None = None, **_columns: Any
    ) -> list[Steps | float | None]:
        if world.arms:
            return [world.arms.get(str(arm)) for arm in completions]
        return [[(k, world.reward(square)) for k, square in enumerate(path, start=1)] for path in states or []]

    return Task(
        name=REWARD, summary=summary, train=train, held_out=[], rewards={REWARD: worth}, gold={},
        environment=None if world.arms else reply, situations=situations, actions=list(world.actions),
    )  # fmt: skip


def walk(world: World, start: str, moves: Sequence[str], chances: Sequence[float]) -> Reply:
    """Where `moves` from `start` lead, if `chances` in [0, 1) decide which of them slip."""
    square, over = start, False
    for move, chance in zip(moves, chances, strict=False):
        square, over = world.after(square, move, chance)[1::2]
    return Reply(world.observed(square), over=over or len(moves) >= world.steps, state=square)

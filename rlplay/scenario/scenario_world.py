"""The world of a scenario: what it sets unless the scenario says otherwise, and which models can play it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlplay.scenario.claim import Expect, SquareValue
from rlplay.scenario.schema import Scenario
from rlplay.scenario.script import Exercise, Step
from rlplay.spelling import did_you_mean
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.text import quote
from rlplay.worlds.world import World, WorldError, read_world

POLICIES = "table", "mlp"
"""What `model` may be for a world: a table of moves for every square, or a small network."""


def world_of(scenario: Scenario) -> World | None:
    """The world that a scenario is about. Raises WorldError, one line."""
    return None if scenario.world is None else read_world(scenario.world)


def step_word(world: object) -> str:
    """What the policy of a run in `world`, read or not, samples: "move"; without one, "token"."""
    return "token" if world is None else "move"


def with_world_defaults(content: dict[str, Any]) -> dict[str, Any]:
    """The content of a scenario's file; if it has a world, with a table as policy, room for the longest episode, and
    every reward at the move that earned it, where it names nothing else."""
    if content.get("world") is None:
        return content
    world = read_world(content["world"])
    settings: SomeSettings = {"max_completion_length": world.tokens}
    if not world.arms:
        settings["reward_stream"] = "process"
    return {"model": POLICIES[0], **content, "settings": settings | (content.get("settings") or {})}


def check_squares(world: World | None, squares: Mapping[str, float | str]) -> None:
    """Raises ValueError, one line, if the setting `squares` paints what is not there."""
    if squares and world is None:
        raise ValueError("squares paints the world of a run, and this run has none")
    if world is not None:
        world.repainted(squares)


def model_problem(scenario: Scenario) -> str | None:
    """Why the scenario's model cannot play it: a world needs a policy that chooses moves, and only a world does."""
    if scenario.world is not None and scenario.model not in POLICIES:
        return f"{scenario.name} is about a world, so its model is {' or '.join(POLICIES)}; got {quote(scenario.model)}"
    if scenario.world is None and scenario.model in POLICIES:
        return f"model {scenario.model} chooses moves in a world, and {scenario.name} has none"
    return None


def check_claims(step: Step, world: Any) -> None:
    """Raises ValueError, one line, if a claim of `step` is about a square or a move that the world does not have."""
    claims = step.claims if isinstance(step, Exercise) else [step] if isinstance(step, Expect) else []
    for quantity in (claim.quantity for claim in claims):
        if not isinstance(quantity, SquareValue):
            continue
        if world is None:
            raise ValueError(f"square {quote(quantity.square)} of expect needs a world; this scenario has none")
        try:
            found = read_world(world)
        except WorldError:
            return  # the check of the key world reports it
        if quantity.square not in found.states:
            raise ValueError(
                f"the world has no square {quote(quantity.square)}{did_you_mean(quantity.square, found.states)}"
            )
        if quantity.of == "probability" and quantity.move not in found.actions:
            raise ValueError(f"the world has no move {quote(quantity.move)}; known: {', '.join(found.actions)}")

"""The checks of all exercises, and those of a world and of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from rlplay.algorithms import pair_functions
from rlplay.exercises.check import Case, Check, Material, Place
from rlplay.exercises.of_answers import ANSWER_CHECKS
from rlplay.exercises.of_tokens import TOKEN_CHECKS
from rlplay.worlds.planning import plan
from rlplay.worlds.world import World

# Value iteration


class Outcomes:
    """What a move may lead to: `outcomes(square, move)` is a list of (probability, next square, reward, over)."""

    def __init__(self, world: World) -> None:
        self.world = world

    def __call__(self, square: str, move: str) -> list[tuple[float, str, float, bool]]:
        return [tuple(each) for each in self.world.outcomes(square, move)]  # type: ignore[misc]


def _planned(_xp: Any, outcomes: Outcomes, gamma: float, **_listed: list[str]) -> Mapping[str, float]:
    return plan(outcomes.world, gamma).values


def _world_case(world: World, gamma: float, shown: Mapping[str, Place], made_up: bool = False) -> Case:
    squares = [square for square in world.states if not world.ends(square)]
    given = {"squares": squares, "moves": list(world.actions), "outcomes": Outcomes(world), "gamma": gamma}
    return Case(given, [shown.get(square, Place(square)) for square in squares], None, made_up=made_up)


def _world_cases(batch: Material) -> list[Case]:
    world = batch.need("world", "world")
    shown = dict[str, Place]()
    for i, states in enumerate(batch.states):
        for state, token in zip(states, np.flatnonzero(batch.mask[i]), strict=False):
            shown.setdefault(state, Place(state, i, int(token)))
    return [_world_case(world, batch.settings.gamma, shown)]


@cache
def _slippery() -> World:
    return World(map=("S.1", "O.G"), slip=0.3, goal=2.0, hole=-1.0, step=-0.1)


# The loss of DPO


def _dpo(xp: Any, chosen: Any, rejected: Any, ref_chosen: Any, ref_rejected: Any, beta: float) -> Any:
    gap = (chosen - ref_chosen) - (rejected - ref_rejected)
    return pair_functions.sigmoid(xp, gap, beta, 0.0)


def _dpo_cases(batch: Material) -> list[Case]:
    pairs = batch.need("pairs", "pairs of a chosen and a rejected answer")
    reference = batch.need("ref_logprobs", "log-probabilities of the reference")
    own, other = ((each * batch.mask).sum(1) for each in (batch.logprobs, reference))
    chosen, rejected = pairs
    given = {"chosen": own[chosen], "rejected": own[rejected],
             "ref_chosen": other[chosen], "ref_rejected": other[rejected]}  # fmt: skip
    answers = batch.of_answers()
    places = [
        Place(f"the pair of answers {i + 1} and {j + 1}", int(i), answers[i].token)
        for i, j in zip(chosen, rejected, strict=True)
    ]
    return [Case(given | {"beta": batch.settings.beta}, places, chosen.shape)]


def _dpo_made_up() -> list[Case]:
    given = {"chosen": [-2.0, -5.0], "rejected": [-4.0, -3.0], "ref_chosen": [-3.0, -4.5], "ref_rejected": [-3.5, -4.0]}
    places = [Place(f"the made-up pair {i + 1}") for i in range(2)]
    return [Case({name: np.array(v) for name, v in given.items()} | {"beta": 0.5}, places, (2,), made_up=True)]


CHECKS: dict[str, Check] = {
    **ANSWER_CHECKS,
    **TOKEN_CHECKS,
    "values": Check(
        "values", "squares", _world_cases, lambda: [_world_case(_slippery(), 0.9, {}, made_up=True)], _planned
    ),
    "dpo": Check("loss", "pairs", _dpo_cases, _dpo_made_up, _dpo),
}

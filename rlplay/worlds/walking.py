"""A walk that a person makes, by the policy's own rules: `walk` of `world_task.py` says where it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rlplay.worlds.world import World
from rlplay.worlds.world_task import walk


@dataclass(frozen=True)
class Walk:
    """A walk through `world` from `start`, so far. Its `seed` decides which moves slip, with the world's chances."""

    world: World
    start: str
    seed: int = 0
    moves: tuple[str, ...] = ()

    @cached_property
    def path(self) -> tuple[str, ...]:
        """The squares: the start, then where each move led."""
        chances = self._chances
        reached = (walk(self.world, self.start, self.moves[:count], chances) for count in range(1, len(self.moves) + 1))
        return (self.start, *(reply.state for reply in reached))

    @property
    def square(self) -> str:
        """Where the walk is."""
        return self.path[-1]

    @cached_property
    def over(self) -> bool:
        """Whether the walk has ended: on a star, in a hole, or after the last move that the world allows."""
        return walk(self.world, self.start, self.moves, self._chances).over

    @property
    def rewards(self) -> list[float]:
        """What each move has earned."""
        return [self.world.reward(square) for square in self.path[1:]]

    @property
    def slipped(self) -> list[bool]:
        """Whether each move led elsewhere than it should have."""
        steps = zip(self.path, self.moves, self.path[1:], strict=False)
        return [there != self.world.moved(here, move) for here, move, there in steps]

    def on(self, move: str) -> Walk:
        """The walk with one more move. Raises ValueError if it is over, or if the world has no such move."""
        if self.over or move not in self.world.moves:
            raise ValueError(f"no move {move} from {self.square}")
        return replace(self, moves=(*self.moves, move))

    @property
    def _chances(self) -> Sequence[float]:
        return list(np.random.default_rng(self.seed).random(self.world.steps))

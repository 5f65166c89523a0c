"""The world as the settings paint it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from rlplay.worlds.world import World, WorldError


class PaintedWorld:
    """Paints a world when it or the squares have changed; in between, the world is the same object."""

    def __init__(self) -> None:
        self._made: tuple[World | None, Mapping[str, float | str], World | None] = None, {}, None

    def of(self, plain: World | None, squares: Mapping[str, float | str]) -> World | None:
        """The world `plain` with painted squares; as it is drawn if they do not fit it, as in a damaged run."""
        if self._made[0] is not plain or self._made[1] != squares:
            painted = plain
            with suppress(WorldError):
                painted = None if plain is None else plain.repainted(squares)
            self._made = plain, dict(squares), painted
        return self._made[2]

"""Games with reset and step as a pure function of a seed and the model's turns.

A run is undone, resumed and asked questions by playing episodes again, and the answers to a prompt are compared with
each other. So the same turns after the same seed have to get the same replies. What a game said is remembered; a game
whose turns have gone another way is begun again and its turns are repeated, and what it says then has to be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from rlplay.containment import OwnError
from rlplay.tasks.example import Steps
from rlplay.trace.text import quote

_REMEMBERED = 100_000
"""Replies at most."""

Turns = tuple[str, ...]


class Said(msgspec.Struct, frozen=True):
    """What a game says after a turn, whether it is over, and what the turn earned, if the game says so."""

    text: str
    over: bool = False
    reward: float | None = None


class Game(Protocol):
    """A game for one player."""

    def begin(self, seed: int) -> str:
        """Begin again; what the player reads first."""

    def step(self, turn: str) -> Said:
        """The reply to a turn."""

    def close(self) -> None:
        """Give up what the game holds."""


class Replayed:
    """The games of a task; `at_once` of them at most are kept going. `place` names them in messages."""

    def __init__(self, place: str, make: Callable[[], Game], at_once: int) -> None:
        self._place, self._make, self._at_once = place, make, at_once
        self._said: dict[tuple[int, Turns], Said] = {}
        self._going: dict[tuple[int, Turns], Game] = {}  # the oldest first
        self._idle: list[Game] = []

    def first(self, seed: int) -> str:
        """What the player reads first. Raises OwnError if it is not the same each time, or what the game raises."""
        if (seed, ()) not in self._said:
            self._keep(seed, (), self._begun(seed))
        return self._said[seed, ()].text

    def reply(self, seed: int, turns: Sequence[str]) -> Said:
        """What the game says after the last of the `turns`; errors as in `first`."""
        key = seed, tuple(turns)
        if key not in self._said:
            before = seed, key[1][:-1]
            game = self._going.pop(before, None) or self._again(*before)
            said = self._stepped(game, key)
            if said.over:
                self._idle.append(game)
            else:
                self._keep(*key, game)
        return self._said[key]

    def replies(self, seed: int, turns: Sequence[str]) -> list[Said]:
        """What the game says after each of the `turns`, up to the one that ends it."""
        said = list[Said]()
        for number in range(1, len(turns) + 1):
            said.append(self.reply(seed, turns[:number]))
            if said[-1].over:
                break
        return said

    def _begun(self, seed: int) -> Game:
        if not self._idle and len(self._going) >= self._at_once:
            self._idle.append(self._going.pop(next(iter(self._going))))
        game = self._idle.pop() if self._idle else self._make()
        self._heard((seed, ()), self._or_closed(game, lambda: Said(game.begin(seed))), game)
        return game

    def _again(self, seed: int, turns: Turns) -> Game:
        """A game that has come as far."""
        game = self._begun(seed)
        for number in range(1, len(turns) + 1):
            self._stepped(game, (seed, turns[:number]))
        return game

    def _stepped(self, game: Game, key: tuple[int, Turns]) -> Said:
        said = self._or_closed(game, lambda: game.step(key[1][-1]))
        self._heard(key, said, game)
        return said

    def _or_closed(self, game: Game, ask: Callable[[], Said]) -> Said:
        """What the game says. One that fails, or takes too long, is not used again."""
        try:
            said = ask()
        except BaseException:
            game.close()
            raise
        # Half a character, as JSON may hold it, is no text.
        return msgspec.structs.replace(said, text=said.text.encode("utf-8", "replace").decode())

    def _heard(self, key: tuple[int, Turns], said: Said, game: Game) -> None:
        known = self._said.setdefault(key, said)
        if known != said:
            game.close()
            after = f"turn {len(key[1])}" if key[1] else "a reset"
            raise OwnError(
                f"{self._place}: after {after} with seed {key[0]} it says {quote(said.text)} now and said "
                f"{quote(known.text)} before; rlplay plays episodes again, so take one that follows its seed alone"
            )
        if len(self._said) > _REMEMBERED:
            del self._said[next(iter(self._said))]

    def _keep(self, seed: int, turns: Turns, game: Game) -> None:
        self._going[seed, turns] = game


def rewards_by_step(turns: Sequence[str], said: Sequence[Said]) -> Steps | None:
    """The rewards of the turns, each with the characters of the model's own text up to its end.

    None if the game gave none.
    """
    ends = [sum(map(len, turns[: number + 1])) for number in range(len(turns))]
    steps = [(end, each.reward) for end, each in zip(ends, said, strict=False) if each.reward is not None]
    return steps or None

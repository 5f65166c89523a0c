"""TextArena: text games for one player, or for two with an opponent of the user's. The reward comes at the end."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from rlplay.containment import OwnError, contained
from rlplay.spelling import did_you_mean
from rlplay.tasks.library.entry import Entry
from rlplay.tasks.library.game_task import game_task
from rlplay.tasks.library.replayed import Replayed, Said
from rlplay.tasks.own_rewards import named_function
from rlplay.tasks.task import Task
from rlplay.trace.text import quote
from rlplay.user_code import UserCode

_AT_ONCE = 512  # games going


def task(entry: Entry) -> Task:
    """The games of the seeds `seed` to `seed` + `size`; other options are those of the game itself.

    `opponent`, `FILE.py:FUNCTION`, is the second player: `f(observation)` with all that it has read gives its move.
    """
    library = entry.library()
    known = sorted(entry.library("envs.registration").ENV_REGISTRY)
    if entry.name not in known:
        raise OwnError(f"TextArena has no game {quote(entry.name)}{did_you_mean(entry.name, known)}")
    options = dict(entry.options)
    opponent = named_function("opponent", str(options.pop("opponent"))) if "opponent" in options else None
    games = Replayed(entry.text, lambda: _Game(library, entry, options, opponent), _AT_ONCE)
    return game_task(entry, games, f"TextArena's {entry.name}", "outcome", _outcome)


def _outcome(_turns: Sequence[str], said: Sequence[Said]) -> float:
    """The game's own reward once it is over; 0 for one that was cut off before."""
    return float(said[-1].reward or 0.0) if said else 0.0


class _Game:
    """One game. It draws from random numbers of its own: TextArena takes Python's and numpy's, which are global."""

    def __init__(self, library: Any, entry: Entry, options: dict[str, Any], opponent: UserCode | None) -> None:
        self._library, self._entry, self._opponent = library, entry, opponent
        self._game = library.make(entry.name, **options)
        self._read_there: list[str] = []  # by the opponent
        self._inner = self._game
        while isinstance(self._inner, library.Wrapper):  # which would repeat all that has been said
            self._inner = self._inner.env
        self._random: tuple[Any, Any] = random.Random(0).getstate(), np.random.RandomState(0).get_state()

    def begin(self, seed: int) -> str:
        """Begin again; what the player reads first."""
        self._random = random.Random(seed).getstate(), np.random.RandomState(seed).get_state()
        self._read_there = []
        with self._own_randomness():
            try:
                self._game.reset(num_players=1 if self._opponent is None else 2, seed=seed)
            except AssertionError as error:
                raise self._needs_players(f": {error}") from None
            return self._until_own_turn() or "Begin."

    def step(self, turn: str) -> Said:
        """The reply to a turn."""
        with self._own_randomness():
            over, _ = self._game.step(action=turn)
            heard = None if over else self._until_own_turn()
            if heard is not None:
                return Said(heard)
            rewards, _ = self._game.close()
            return Said("", True, float((rewards or {}).get(0, 0.0)))

    def close(self) -> None:
        """A game holds nothing."""

    def _until_own_turn(self) -> str | None:
        """What the player reads once it is its turn; None if the opponent has ended the game."""
        while True:
            player, heard = self._heard()
            if player == 0:
                return heard
            if self._opponent is None:
                raise self._needs_players("")
            self._read_there.append(heard)
            with contained(self._opponent.place, self._opponent.failed):
                move = str(self._opponent.current()("\n".join(self._read_there)))
            over, _ = self._game.step(action=move)
            if over:
                return None

    def _heard(self) -> tuple[int, str]:
        """Whose turn it is, and what the game has told that player since its last turn."""
        player, messages = self._inner.get_observation()
        own = self._library.ObservationType.PLAYER_ACTION
        said = [
            (f"Player {sender}: " if kind == own else "") + str(text).strip()
            for sender, text, kind in messages
            if not (kind == own and sender == player)
        ]
        return player, "\n".join(filter(None, said)) or "Go on."

    def _needs_players(self, why: str) -> OwnError:
        number = "one player" if self._opponent is None else "two players"
        more = "; name one that plays with you: add ?opponent=FILE.py:FUNCTION" if self._opponent is None else ""
        return OwnError(f"{self._entry.text} is not for {number}{why}{more}")

    @contextmanager
    def _own_randomness(self) -> Iterator[None]:
        before = random.getstate(), np.random.get_state()
        random.setstate(self._random[0])
        np.random.set_state(self._random[1])
        try:
            yield
        finally:
            self._random = random.getstate(), np.random.get_state()
            random.setstate(before[0])
            np.random.set_state(before[1])

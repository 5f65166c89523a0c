"""An OpenEnv server for tests and for trying it out: guess a number from 1 to 9. `python openenv_server.py PORT`."""

from __future__ import annotations

import random
import re
import sys
from typing import Any

import uvicorn
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

GUESSES = 4


class Guess(Action):
    """What the player writes."""

    text: str


class Heard(Observation):
    """What the player reads."""

    text: str = ""


class Secret(Environment[Guess, Heard, State]):
    """A number that the seed decides; each guess earns what it is nearer than the guess before."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._secret, self._guesses, self._far = 1, 0, 8

    def reset(self, seed: int | None = None, episode_id: str | None = None, **_others: Any) -> Heard:
        """A new number."""
        self._secret, self._guesses, self._far = random.Random(seed).randint(1, 9), 0, 8
        return Heard(text="Guess my number, 1 to 9.", reward=0.0)

    def step(self, action: Guess, timeout_s: float | None = None, **_others: Any) -> Heard:
        """Higher or lower."""
        self._guesses += 1
        found = re.findall(r"\d+", action.text)
        guess = int(found[-1][:3]) if found else 0
        far, before = min(8, abs(guess - self._secret)), self._far
        self._far = far
        said = "Right." if not far else "Higher." if guess < self._secret else "Lower."
        over = not far or self._guesses == GUESSES
        return Heard(text=said, reward=(before - far) / 8, done=over)

    @property
    def state(self) -> State:
        """How far it is."""
        return State(step_count=self._guesses)


if __name__ == "__main__":
    app = create_fastapi_app(Secret, Guess, Heard)
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")

"""OpenEnv: environments behind an address, which are reset and stepped over a WebSocket."""

from __future__ import annotations

import json
from typing import Any

from rlplay.containment import OwnError
from rlplay.tasks.library.entry import Entry
from rlplay.tasks.library.game_task import game_task
from rlplay.tasks.library.replayed import Replayed, Said, rewards_by_step
from rlplay.tasks.task import Task
from rlplay.trace.text import quote
from rlplay.trusted import UntrustedError, check_address

_AT_ONCE = 1  # a server has one session, unless its author allows more
_ASK = 10.0  # seconds for the schema
_NOT_SAID = ("done", "reward", "metadata")
"""Parts of an observation that are not for the player."""


def task(entry: Entry) -> Task:
    """The episodes that begin with `reset` and the seeds `seed` to `seed` + `size`.

    A turn is an action: a JSON object, or else the text of the action's one field (`action` names another). Of an
    observation the player reads its one text (`observation` names another field), or else all of it as JSON. Other
    options go to `reset`.
    """
    try:
        check_address(entry.name)
    except UntrustedError as error:
        raise OwnError(str(error)) from error
    options = dict(entry.options)
    words = _Words(entry, options.pop("action", None), options.pop("observation", None))
    games = Replayed(entry.text, lambda: _Game(entry, words, options), _AT_ONCE)
    about = f"the OpenEnv environment at {entry.name}"
    return game_task(entry, games, about, "steps", rewards_by_step)


class _Words:
    """How the environment's actions and observations are written as text."""

    def __init__(self, entry: Entry, action: Any, observation: Any) -> None:
        self._entry, self._observation = entry, None if observation is None else str(observation)
        self._action = str(action) if action is not None else None

    def action(self, turn: str) -> dict[str, Any]:
        """The action in a turn."""
        try:
            found = json.loads(turn)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
        if self._action is None:
            self._action = self._only_field()
        return {self._action: turn.strip()}

    def _only_field(self) -> str:
        """The field that an action needs, as the server describes it."""
        import httpx2

        schema = httpx2.get(f"{self._entry.name}/schema", timeout=_ASK).raise_for_status().json()["action"]
        needed = schema.get("required") or [each for each in schema.get("properties", {}) if each != "metadata"]
        if len(needed) != 1:
            raise OwnError(
                f"{self._entry.text}: an action has the fields {', '.join(map(str, needed)) or 'none'}; name the one "
                "that a turn fills: add ?action=FIELD"
            )
        return str(needed[0])

    def observed(self, observation: Any) -> str:
        """What the player reads of an observation."""
        if not isinstance(observation, dict):
            return str(observation)
        if self._observation is not None:
            if self._observation not in observation:
                known = ", ".join(observation) or "none"
                raise OwnError(f"{self._entry.text}: no field {quote(self._observation)}; an observation has {known}")
            return str(observation[self._observation])
        parts = {name: value for name, value in observation.items() if name not in _NOT_SAID}
        texts = [value for value in parts.values() if isinstance(value, str)]
        return texts[0] if len(texts) == 1 else json.dumps(parts, ensure_ascii=False)


class _Game:
    """One session with the server."""

    def __init__(self, entry: Entry, words: _Words, options: dict[str, Any]) -> None:
        self._words, self._options = words, options
        self._client = entry.library("core.generic_client").GenericEnvClient(base_url=entry.name).sync()
        self._client.connect()

    def begin(self, seed: int) -> str:
        """Begin again; what the player reads first."""
        return self._words.observed(self._client.reset(seed=seed, **self._options).observation) or "Begin."

    def step(self, turn: str) -> Said:
        """The reply to a turn."""
        result = self._client.step(self._words.action(turn))
        reward = None if result.reward is None else float(result.reward)
        return Said(self._words.observed(result.observation) or "Go on.", bool(result.done), reward)

    def close(self) -> None:
        """End the session."""
        self._client.close()

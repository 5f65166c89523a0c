"""What a lesson does to the engine: each command waits until the engine's status shows its effect."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from rlplay.link.messages import AnyCommand, Prefer, Rewind, Set, Status
from rlplay.trace.records import Choice
from rlplay.ui.words.lesson import Place

REFUSED_AFTER = 20.0
"""Seconds to wait for the engine to accept a setting."""


def differing(settings: dict[str, Any], held: dict[str, Any]) -> dict[str, Any]:
    """Those of the `settings` that are not among `held`."""
    return {name: value for name, value in settings.items() if name not in held or held[name] != value}


class LessonEngine:
    """The engine as a lesson sees it: its newest status, and commands that can be awaited."""

    def __init__(self, send: Callable[[AnyCommand], Awaitable[None]]) -> None:
        self._send = send
        self._status: Status | None = None
        self._awaited: list[tuple[Callable[[Status], bool], asyncio.Future[bool]]] = []

    @property
    def place(self) -> Place:
        """The finished updates and the phase."""
        return (0, "sample") if self._status is None else (self._status.update, self._status.phase)

    @property
    def update(self) -> int:
        """The number of finished updates."""
        return self.place[0]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the next update will have."""
        return {} if self._status is None else self._status.settings

    @property
    def finished(self) -> bool:
        """Whether the run has taken its last update."""
        return self._status is not None and self._status.finished

    def heard(self, status: Status) -> None:
        """Take the engine's status."""
        self._status = status
        for test, future in self._awaited:
            if not future.done() and test(status):
                future.set_result(True)
        self._awaited = [(test, future) for test, future in self._awaited if not future.done()]

    async def until(self, command: AnyCommand, test: Callable[[Status], bool], seconds: float | None = None) -> None:
        """Send `command`, and wait until a status passes `test`, or for `seconds`."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._awaited.append((test, future))
        await self._send(command)
        try:
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            self._awaited = [entry for entry in self._awaited if entry[1] is not future]

    async def rewind(self, target: int) -> None:
        """Go back to the end of update `target`."""

        def there(status: Status) -> bool:
            return status.update == target and status.phase == "sample" and not status.running

        if self._status is not None and there(self._status):
            await self._send(Rewind(target))  # no change, so no status will follow
        else:
            await self.until(Rewind(target), there)

    async def set(self, settings: dict[str, Any]) -> None:
        """Change those of the `settings` that differ."""
        changes = differing(settings, self.settings)
        if "algorithm" in changes:
            changes = settings  # an algorithm sets others to its own defaults, which the script may want as they are
        if changes:
            await self.until(Set(changes), lambda status: changes.items() <= status.settings.items(), REFUSED_AFTER)

    async def prefer(self, choice: Choice) -> None:
        """Label the next pair that waits for a label."""
        if self._status is not None and (waiting := self._status.asks):
            await self.until(Prefer(waiting[0], choice), lambda s: waiting[0] not in s.asks, REFUSED_AFTER)

"""What a lesson does to the engine: each command waits until the engine's status shows its effect."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

from rlplay.link.messages import Advance, AnyCommand, Prefer, Rewind, Set, Status, Withhold
from rlplay.scenario import script
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import Choice
from rlplay.trace.update import PHASES, Phase
from rlplay.ui.lesson.verdicts import Place

REFUSED_AFTER = 20.0
"""Seconds to wait for the engine to accept a setting, or to answer."""


def differing(settings: SomeSettings, held: SomeSettings) -> SomeSettings:
    """Those of the `settings` that are not among `held`."""
    return {name: value for name, value in settings.items() if name not in held or held[name] != value}


class LessonEngine:
    """The engine as a lesson sees it: its newest status, and commands that can be awaited."""

    def __init__(self, send: Callable[[AnyCommand], Awaitable[None]]) -> None:
        self._send = send
        self._status: Status | None = None
        self.target: int | None = None  # the update after which the script continues
        self.way: list[script.Step] = []  # the script's steps since the end of the last update
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
    def under_way(self) -> bool:
        """Whether the script left another update under way."""
        return any(isinstance(each, script.Train) for each in self.way)

    @property
    def settings(self) -> SomeSettings:
        """The settings that the next update will have."""
        return {} if self._status is None else self._status.settings

    @property
    def rests(self) -> bool:
        """Whether it waits for the next command."""
        return self._status is not None and not self._status.running and not self._status.waits

    @property
    def asks(self) -> Sequence[int]:
        """The pairs that wait for a label."""
        return () if self._status is None else self._status.asks

    def receive(self, status: Status) -> None:
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

    async def advance(self, until: script.Pace, count: int) -> bool:
        """Advance the engine; False if it stopped before the script's target."""
        if until == "update":
            self.target = self.update + count if self.target is None else self.target
            count = self.target - self.update
        if count > 0:
            begun = False

            def ended(status: Status) -> bool:
                nonlocal begun
                begun = begun or status.running
                return begun and not status.running and not status.waits

            await self.until(Advance(until, count), ended)
        over = self._status is not None and self._status.finished
        if self.target is not None and self.update < self.target and not over:
            return False
        self.target = None
        return True

    async def rewind(self, update: int) -> bool:
        """Go back to the end of `update`; before the start of the run there is nothing."""
        target = max(0, update)

        def there(status: Status) -> bool:
            return status.update == target and status.phase == "sample" and not status.running

        if self._status is not None and there(self._status):
            await self._send(Rewind(target))  # no change, so no status will follow
        else:
            await self.until(Rewind(target), there)
        return True

    async def set(self, settings: SomeSettings) -> None:
        """Change those of the `settings` that differ."""
        changes = differing(settings, self.settings)
        if "algorithm" in changes:
            changes = settings  # an algorithm sets others to its own defaults, which the script may want as they are
        if changes:
            await self.until(Set(changes), lambda status: changes.items() <= status.settings.items(), REFUSED_AFTER)

    async def prefer(self, pair: int, choice: Choice) -> None:
        """Label a pair, if it waits for a label."""
        if pair in self.asks:
            await self.until(Prefer(pair, choice), lambda status: pair not in status.asks, REFUSED_AFTER)

    async def withhold(self, tokens: list[int]) -> None:
        """Take the credit of tokens of the next update away; the engine heeds it before what is sent next."""
        await self._send(Withhold(self.update + 1, tokens))

    async def ask(self, question: AnyCommand, missing: Callable[[], object]) -> None:
        """Ask the engine, which tells its status after each answer, and wait until nothing is `missing`."""
        await self.until(question, lambda _status: missing() is None, REFUSED_AFTER)

    def note(self, step: script.Step, before: int) -> None:
        """Record the steps since the end of the last update; `before` is the update number before `step`."""
        if isinstance(step, script.RewindStep) or (isinstance(step, script.Train) and self.update != before):
            begun = PHASES.index(cast(Phase, self.place[1]))
            self.way = [script.Train("phase", begun)] if begun else []
        elif isinstance(step, script.Moving):
            self.way.append(step)

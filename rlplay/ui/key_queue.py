"""A queue of keys: each key is handled after the previous one has taken full effect.

A key that opens a screen, or an input in one, takes effect in several steps, with messages from widget to widget. On a
busy machine the next keys arrive in between. Handled at once, they would go to the widget that had the focus before.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from textual.app import App
from textual.events import Key, Paste
from textual.message_pump import MessagePump

Typed = Key | Paste
ROUNDS = 4
"""Steps of a key: its action, the widget's message, the screen's message to the app, and the screen the app opens."""
AT_ONCE = "ctrl+q"
"""Quitting must work even if another key hangs."""
PATIENCE = 1.0
"""Seconds to wait for the previous key at most, so that a panel that hangs does not block the keyboard."""

MOVING = {"left", "right", "up", "down", "pageup", "pagedown", "backspace"}
"""Keys that users hold down. Any other key may open a screen that its next press is meant for."""


class KeyQueue:
    """Holds back typed keys while an earlier one is still taking effect."""

    def __init__(self, app: App[int], give_out: Callable[[Typed], Awaitable[None]]) -> None:
        self._app, self._give_out = app, give_out
        self._waiting: deque[Typed] = deque()
        self.busy = False

    async def take(self, event: Typed) -> None:
        """Handle `event`, now or after those before it."""
        if isinstance(event, Key) and event.key == AT_ONCE:
            await self._give_out(event)
        elif self.busy:
            self._waiting.append(event)
        else:
            self.busy = True
            before = self._path()
            await self._give_out(event)
            # A partial, not a coroutine: Python would warn about a coroutine never awaited if the app ended first.
            self._app.run_worker(partial(self._work_off, before), group="keys")  # type: ignore[arg-type]

    async def _work_off(self, before: list[MessagePump]) -> None:
        try:
            await self._done(before)
            while self._waiting:
                before = self._path()
                await self._give_out_next()
                await self._done(before)
        finally:
            self.busy = False

    async def _give_out_next(self) -> None:
        """Handle the next key and all repeats of it: a key held down must not lag behind the finger."""
        event = self._waiting.popleft()
        await self._give_out(event)
        while self._waiting and _same(event, self._waiting[0]):
            await self._give_out(self._waiting.popleft())

    async def _done(self, before: list[MessagePump]) -> None:
        """Wait until the key sent along the path `before` has taken effect and the screen it opened is ready."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                for _ in range(ROUNDS):
                    for stop in dict.fromkeys([*before[:-1], *self._path()]):
                        await _passed(stop)

    def _path(self) -> list[MessagePump]:
        """The widgets that a key would pass now, up to the app."""
        return list((self._app.focused or self._app.screen).ancestors_with_self)


def _same(one: Typed, other: Typed) -> bool:
    return isinstance(one, Key) and isinstance(other, Key) and one.key == other.key and one.key in MOVING


async def _passed(stop: MessagePump) -> None:
    """Wait until `stop` has handled all messages sent to it so far, unless it is gone."""
    done = asyncio.Event()
    if stop.call_later(done.set):
        await done.wait()

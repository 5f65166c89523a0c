"""Keys take turns: each is given out once the one before has done all that it does.

A key that opens a screen, or an input in one, takes effect in several steps, with messages from widget to widget. On a
busy machine the next keys arrive in between; given out at once they would go to what had the focus before.
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
"""A key's action, the message that a widget sends at that, what its screen says to the app, and what the app opens."""
AT_ONCE = "ctrl+q"
"""Leaving waits for nothing that may be stuck."""
PATIENCE = 1.0
"""Seconds after which the next key goes out although the one before is not done: keys never die with a panel."""

MOVING = {"left", "right", "up", "down", "pageup", "pagedown", "backspace"}
"""Keys that are held down. Any other may open what its next press is meant for."""


class KeyQueue:
    """Holds back what is typed while something typed before is still at work."""

    def __init__(self, app: App[int], give_out: Callable[[Typed], Awaitable[None]]) -> None:
        self._app, self._give_out = app, give_out
        self._waiting: deque[Typed] = deque()
        self.busy = False

    async def take(self, event: Typed) -> None:
        """Give `event` out, now or when its turn comes."""
        if isinstance(event, Key) and event.key == AT_ONCE:
            await self._give_out(event)
        elif self.busy:
            self._waiting.append(event)
        else:
            self.busy = True
            before = self._path()
            await self._give_out(event)
            # Not the coroutine itself: where the app ends before it has begun, Python would warn of it.
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
        """The next key, and with it all that repeat it: a key held down is not to lag behind the finger."""
        event = self._waiting.popleft()
        await self._give_out(event)
        while self._waiting and _same(event, self._waiting[0]):
            await self._give_out(self._waiting.popleft())

    async def _done(self, before: list[MessagePump]) -> None:
        """Wait until all is done of the key that went the way `before`, and what it opened can take the next."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                for _ in range(ROUNDS):
                    for stop in dict.fromkeys([*before[:-1], *self._path()]):
                        await _passed(stop)

    def _path(self) -> list[MessagePump]:
        """Through whom a key would go now, up to the app."""
        return list((self._app.focused or self._app.screen).ancestors_with_self)


def _same(one: Typed, other: Typed) -> bool:
    return isinstance(one, Key) and isinstance(other, Key) and one.key == other.key and one.key in MOVING


async def _passed(stop: MessagePump) -> None:
    """Wait until `stop` has done all that it was sent so far, unless it is gone."""
    done = asyncio.Event()
    if stop.call_later(done.set):
        await done.wait()

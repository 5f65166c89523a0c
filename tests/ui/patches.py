"""Every patch of Textual's and asyncio's insides that the screen's tests need, and what it is for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import textual.app
import textual.pilot
from textual._context import active_app
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.drivers import headless_driver
from textual.pilot import Pilot

from tests.ui.stage import keys_done


async def everything_handled(*_seconds: float) -> None:
    """All messages are handled and their effects laid out: tasks only wait for time, a thread, a process or this task.

    In place of Textual's `wait_for_idle`, which sleeps 20 ms at a time until the processor idles: a guess, and 40 % of
    the time of these tests.
    """
    loop: Any = asyncio.get_running_loop()
    app = active_app.get()
    end = loop.time() + 1  # as there, where something never rests
    late = True
    while late and loop.time() < end:
        await asyncio.sleep(0)
        while loop._ready and loop.time() < end:
            await asyncio.sleep(0)
        late = _hurry(app)


@contextmanager
def no_idle_time() -> Iterator[None]:
    """Pauses and presses take as long as their effects, and no time on top."""
    modules = textual.app, textual.pilot
    before = [module.wait_for_idle for module in modules]
    for module in modules:
        module.wait_for_idle = everything_handled
    try:
        yield
    finally:
        for module, idle in zip(modules, before, strict=True):
            module.wait_for_idle = idle


def _hurry(app: App[Any]) -> bool:
    """Do at once what Textual puts off by some milliseconds, in case there is more of it; whether there was any."""
    resized = app._resize_timer is not None
    if resized:
        app._check_resize()
    dirty = [screen for screen in app.screen_stack if screen.is_current and screen._update_timer._active.is_set()]
    for screen in dirty:
        screen._on_timer_update()
    return resized or bool(dirty)


@contextmanager
def whole_presses() -> Iterator[None]:
    """A press is over once every key has had its turn, however busy the machine is."""
    press = Pilot.press

    async def whole(self: Pilot[object], *keys: str) -> None:
        await press(self, *keys)
        await keys_done(self)

    Pilot.press = whole  # type: ignore[method-assign]
    try:
        yield
    finally:
        Pilot.press = press  # type: ignore[method-assign]


_rules: dict[tuple[object, ...], list[RuleSet]] = {}


@contextmanager
def rules_read_once() -> Iterator[None]:
    """Each style sheet is parsed once for all apps of this process, not twice by each: a sixth of these tests' time."""
    parse = Stylesheet._parse_rules

    def known(self: Stylesheet, *source: Any, **named: Any) -> list[RuleSet]:
        key = (frozenset(self._variables.items()), source, *named.items())
        if key not in _rules:
            _rules[key] = parse(self, *source, **named)
        return _rules[key]

    Stylesheet._parse_rules = known  # type: ignore[method-assign]
    try:
        yield
    finally:
        Stylesheet._parse_rules = parse  # type: ignore[method-assign]


@contextmanager
def recorded_writes() -> Iterator[list[str]]:
    """Every string that an app without a terminal hands to its driver, as if it had one."""
    written: list[str] = []

    class Recorder(headless_driver.HeadlessDriver):
        @property
        def is_headless(self) -> bool:
            return False

        def write(self, data: str) -> None:
            written.append(data)

    before = headless_driver.HeadlessDriver
    headless_driver.HeadlessDriver = Recorder  # type: ignore[misc]
    try:
        yield written
    finally:
        headless_driver.HeadlessDriver = before  # type: ignore[misc]

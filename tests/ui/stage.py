"""A source that a test feeds, and the app on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from textual.pilot import Pilot

from rlplay.link.messages import AnyCommand, AnyEvent, Recorded, Status
from rlplay.scenario.reproduction import scenario_of
from rlplay.scenario.subject import subject
from rlplay.trace.records import AnyRecord, Evaluated
from rlplay.trace.update import Update
from rlplay.ui.app import RlplayApp
from rlplay.ui.lesson.teaching import NO_PLAN, Plan
from tests.recorded import SETTINGS, synthetic_started, synthetic_update

CHOSEN = msgspec.to_builtins(SETTINGS)


class Fed:
    """A live source: what is put in comes out as events; commands are kept."""

    live = own_engine = True
    title = "Word problems"
    question = "Does it learn?"
    stage = "all"
    speaker = ""
    curves_only = False
    about = ("It answers word problems.", "Each update: 2 prompts.")
    path = Path("nowhere.rlplay")

    def __init__(self, script: list[dict[str, Any]] | None = None) -> None:
        self.script = script or []
        self.commands: list[AnyCommand] = []
        self.started = self.closed = 0
        self.kept: dict[int, Update] = {}
        self.evaluated: list[Evaluated] = []
        self._queue: asyncio.Queue[AnyEvent | None] = asyncio.Queue()

    def put(self, *events: AnyEvent | None) -> None:
        """Let these happen; None ends the source."""
        for event in events:
            self._queue.put_nowait(event)

    def records(self, records: Iterable[AnyRecord]) -> None:
        """Let the engine have recorded these."""
        self.put(*(Recorded(record) for record in records))

    def status(self, update: int = 0, running: bool = False, phase: str = "sample", **changes: Any) -> None:
        """Let the engine say where it stands."""
        self.put(Status(running, update, phase, {**CHOSEN, **changes}, kept=max(self.kept, default=0)))  # type: ignore[arg-type]

    def waiting(self, *asks: int, waits: bool = True) -> None:
        """Let the pairs `asks` want labels, and the engine wait for them."""
        self.put(Status(False, 0, "score", CHOSEN, asks=list(asks), waits=waits))

    def update(self, number: int, **shape: int) -> None:
        """Let a whole update happen."""
        self.records(synthetic_update(number, **shape))
        self.status(number, phase="sample")

    @property
    def empty(self) -> bool:
        """Whether all that was let happen has been taken."""
        return self._queue.empty()

    async def start(self) -> None:
        self.started += 1

    async def events(self) -> AsyncIterator[AnyEvent]:
        while (event := await self._queue.get()) is not None:
            yield event

    async def send(self, command: AnyCommand) -> None:
        self.commands.append(command)

    async def close(self) -> None:
        self.closed += 1

    def load(self, number: int) -> Update | None:
        return self.kept.get(number)

    async def load_in_thread(self, number: int) -> Update | None:
        return self.kept.get(number)

    def recorded(self) -> list[int]:
        return sorted(self.kept)

    def snapshots(self) -> list[int]:
        return sorted(self.kept)[-2:]

    def held_out(self, number: int) -> Evaluated | None:
        return next((each for each in reversed(self.evaluated) if each.update <= number), None)


def playground(
    script: list[dict[str, Any]] | None = None, plan: Plan = NO_PLAN, **started: Any
) -> tuple[RlplayApp, Fed]:
    """An app and the source it is fed from; the engine is there and waits. `started` are fields of its first record."""
    source = Fed(script)
    source.records([msgspec.structs.replace(synthetic_started(), **started)])
    if "scenario_text" in started:
        source.stage = subject(scenario_of(msgspec.structs.replace(synthetic_started(), **started)))
    source.status()
    return RlplayApp(source, plan=plan), source


@asynccontextmanager
async def on_screen(
    *updates: int, size: tuple[int, int] = (80, 24), notifications: bool = False, **shape: int
) -> AsyncIterator[tuple[RlplayApp, Fed, Pilot[int]]]:
    """The app on a screen, its source and its pilot; these `updates` of this `shape` have happened."""
    app, source = playground()
    async with app.run_test(size=size, notifications=notifications) as pilot:
        for number in updates:
            source.update(number, **shape)
        if updates:
            await settled(pilot)
        yield app, source, pilot


def shown(widget: Any) -> str:
    """What a widget that renders itself shows."""
    return str(widget.render())


def text_of(widget: Any) -> str:
    """What a panel made of lines shows, top to bottom."""
    return "\n".join("".join(segment.text for segment in widget.render_line(y)) for y in range(widget.size.height))


def all_text(widget: Any) -> str:
    """All lines of a panel, those out of sight too."""
    return "\n".join("".join(segment.text for segment in widget.line(row)) for row in range(widget.count()))


PATIENCE = 30
"""Seconds that a test waits for the app at most."""


async def until(pilot: Any, holds: Callable[[], object]) -> None:
    """Let the app go on, and time pass, until this holds. TimeoutError if it never does."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await pilot.pause(1 / 100)


async def pressed(pilot: Any, *keys: str) -> None:
    """These keys are pressed, and all that they do has happened."""
    await pilot.press(*keys)
    await settled(pilot)


async def home(pilot: Any) -> None:
    """Every dialogue is closed by its own key."""
    async with asyncio.timeout(PATIENCE):
        while pilot.app.screen is not pilot.app.panels.main:
            await pilot.press("escape")


async def keys_done(pilot: Any) -> None:
    """Every key has had its turn."""
    queue = getattr(pilot.app, "key_queue", None)
    await until(pilot, lambda: queue is None or not queue.busy)


async def taken(pilot: Any) -> None:
    """Every event that the source has let happen has arrived, if somebody listens."""
    source = pilot.app.play.session.source if isinstance(pilot.app, RlplayApp) else None

    def here() -> bool:
        return not isinstance(source, Fed) or source.empty or all(w.group != "source" for w in pilot.app.workers)

    await until(pilot, here)


async def settled(pilot: Any) -> None:
    """All events that are there have arrived and been painted."""
    for _ in range(3):
        await pilot.pause()
        await taken(pilot)
        await keys_done(pilot)
    for _ in range(2):  # at first, the panels take the place of the words about the run, and fit their own to it
        pilot.app.refresher.everything()
        await pilot.pause()

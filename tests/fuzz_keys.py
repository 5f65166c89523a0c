"""Random keys over all screens: whatever is pressed, the screen lives until it is asked to leave.

A round opens a recorded run, a live one or two runs side by side, at one of four sizes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest import mock

from msgspec.structs import replace
from textual.command import CommandPalette
from textual.pilot import Pilot

from rlplay.trace.records import AnyRecord, Changed, Scored
from rlplay.ui.app import RlplayApp
from rlplay.ui.session.sources import ReplaySource
from tests.hostile import HOSTILE
from tests.poisoned import Poison, records, run_of
from tests.recorded import synthetic_run
from tests.ui import stage
from tests.ui.patches import no_idle_time
from tests.ui.stage import Fed, keys_done, settled, until
from tests.ui.touring import Answering

NAMED = (
    "up", "down", "left", "right", "home", "end", "pageup", "pagedown", "enter", "escape", "tab", "shift+tab", "space",
    "backspace", "delete", "f1", "f12", "ctrl+a", "ctrl+e", "ctrl+k", "ctrl+u", "ctrl+w", "ctrl+p", "ctrl+x", "ctrl+v",
    "ctrl+left", "shift+right", "question_mark", "slash", "equals_sign", "full_stop", "comma", "minus", "plus",
    "colon", "semicolon", "less_than_sign", "greater_than_sign", "left_square_bracket", "right_square_bracket",
)  # fmt: skip
LETTERS = [letter for letter in "abcdefghijklmnoprstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" if letter != "q"]
ROUND = 100
"""Keys of a round."""
SIZES = (160, 45), (120, 35), (80, 24), (40, 12)
_PAINT_EVERY = 5


def _later(poison: Poison) -> list[AnyRecord]:
    """What a live run records after its start, as an engine would: settings and columns are of the right kind."""
    kept = [record for record in records(poison)[1:] if not isinstance(record, Changed)]
    return [replace(record, extra={}) if isinstance(record, Scored) else record for record in kept]


@asynccontextmanager
async def opened(app: RlplayApp, size: tuple[int, int]) -> AsyncIterator[Pilot[object]]:
    """The app, once it shows what its source has."""
    other = mock.patch("rlplay.ui.main.other_runs.LiveSource", side_effect=lambda _job: Fed())
    patience = mock.patch("tests.ui.stage.PATIENCE", 10 * stage.PATIENCE)  # the machine may be busy for hours
    with no_idle_time(), other, patience:
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app.play.session.status is not None)
            await settled(pilot)
            yield pilot


async def play(app: RlplayApp, dice: random.Random, size: tuple[int, int]) -> list[str]:
    """Press the keys of a round, none of which means to leave; raises AssertionError if the app has ended.

    A lesson that is opened in its place ends a live run, and with it the round.
    """
    pressed = list[str]()
    source = app.play.session.source
    later = _later(source.poison) if isinstance(source, Answering) else []
    async with opened(app, size) as pilot:
        for number in range(ROUND):
            key = dice.choice(LETTERS if dice.random() < 0.6 else NAMED)
            if key == "enter" and isinstance(app.screen, CommandPalette):
                key = "escape"  # "Quit" may be the command that it found
            pressed.append(key)
            if later and dice.random() < 0.5:
                assert isinstance(source, Answering)
                source.records([later.pop(0)])
                source.status(3)
            await pilot.press(key)
            await keys_done(pilot)
            if app.play.next_scenario is not None:
                break  # a lesson was chosen, which is played in place of this run
            if number % _PAINT_EVERY == 0:
                await settled(pilot)
            assert app.is_running, f"ended after {pressed[-12:]}"
            assert app._exception is None, f"{app._exception!r} after {pressed[-12:]}"
    return pressed


def keys(dice: random.Random, folder: Path) -> None:
    """A round of keys on a recorded run, a live one with hostile texts, or two runs side by side."""
    kind = dice.choice(("replay", "replay", "live", "live", "compared"))
    for old in folder.iterdir():
        if old.is_file():
            old.unlink()
    poison = Poison(dice.choice([name for name in HOSTILE if name != "surrogate"]))  # which no file can hold
    if kind == "live":
        source = Answering(poison, run_of(poison, folder / "live.rlplay"))
        source.refuses = dice.random() < 0.2
        source.begin()
        app = RlplayApp(source)
    else:
        runs = [synthetic_run(folder / f"{number}.rlplay", updates=3, seed=number) for number in range(2)]
        if kind == "replay" and dice.random() < 0.3:
            runs[0] = run_of(poison, folder / "hostile.rlplay")
        others = [ReplaySource(runs[1])] if kind == "compared" else []
        app = RlplayApp(ReplaySource(runs[0]), others=others)
    asyncio.run(play(app, dice, dice.choice(SIZES)))

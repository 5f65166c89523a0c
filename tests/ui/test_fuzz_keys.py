"""Random keys over all screens: whatever is pressed, the screen lives until it is asked to leave.

RLPLAY_FUZZ_ROUNDS sets another number of rounds, of a hundred keys each."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from rlplay.ui.app import RlplayApp
from rlplay.ui.session.sources import ReplaySource
from tests.recorded import synthetic_run
from tests.ui.stage import settled, until

NAMED = (
    "up", "down", "left", "right", "home", "end", "pageup", "pagedown", "enter", "escape", "tab", "shift+tab", "space",
    "backspace", "delete", "f1", "f12", "ctrl+a", "ctrl+e", "ctrl+k", "ctrl+u", "ctrl+w", "ctrl+p", "ctrl+x", "ctrl+v",
    "ctrl+left", "shift+right", "question_mark", "slash", "equals_sign", "full_stop", "comma", "minus", "plus",
    "colon", "semicolon", "less_than_sign", "greater_than_sign", "left_square_bracket", "right_square_bracket",
)  # fmt: skip
LETTERS = [letter for letter in "abcdefghijklmnoprstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" if letter != "q"]
ROUND = 100
SIZES = (160, 45), (120, 35), (80, 24), (40, 12)


@asynccontextmanager
async def opened(run: Path, size: tuple[int, int]) -> AsyncIterator[tuple[RlplayApp, Pilot[object]]]:
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.session.status is not None)
        await settled(pilot)
        yield app, pilot


async def play(run: Path, number: int) -> list[str]:
    """Press the keys of round `number`, none of which means to leave; raises AssertionError if the app has ended."""
    dice, pressed = random.Random(f"keys {number}"), list[str]()
    async with opened(run, SIZES[number % len(SIZES)]) as (app, pilot):
        for _ in range(ROUND):
            key = dice.choice(LETTERS if dice.random() < 0.6 else NAMED)
            if key == "enter" and type(app.screen).__name__ == "CommandPalette":
                key = "escape"  # "Quit" may be the command that it found
            pressed.append(key)
            await pilot.press(key)
            assert app.is_running, f"round {number} ended after {pressed[-12:]}"
            assert app._exception is None, f"round {number}: {app._exception!r} after {pressed[-12:]}"
    return pressed


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return synthetic_run(tmp_path / "a.rlplay", updates=3)


ROUNDS = int(os.environ.get("RLPLAY_FUZZ_ROUNDS", "2"))


@pytest.mark.timeout(0 if ROUNDS > 2 else 120)
async def test_random_keys_end_nothing(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    for number in range(ROUNDS):
        await play(run, number)


async def test_the_palette_can_leave_without_a_key_that_means_it(run: Path) -> None:
    """A way for random keys to end a round with status 0: `ctrl+p`, letters that find the command to leave, `enter`."""
    async with opened(run, (120, 35)) as (app, pilot):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: bool(app.screen.query(Input)))
        await pilot.press(*"leave")
        await pilot.pause()
        for _ in range(20):
            if not app.is_running:
                break
            await pilot.press("enter")
            await pilot.pause()
        assert not app.is_running
        assert app.return_code == 0

"""The terminal that the screen's tests run in, whatever they are started from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from textual.pilot import Pilot

from tests.ui.patches import no_idle_time
from tests.ui.stage import keys_done


@pytest.fixture(autouse=True)
def _true_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TEXTUAL_THEME", "TEXTUAL_COLOR_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")


@pytest.fixture(autouse=True)
def _no_idle_time() -> Iterator[None]:
    with no_idle_time():
        yield


@pytest.fixture(autouse=True)
def _whole_presses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A press is over once every key has had its turn, however busy the machine is."""
    press = Pilot.press

    async def whole(self: Pilot[object], *keys: str) -> None:
        await press(self, *keys)
        await keys_done(self)

    monkeypatch.setattr(Pilot, "press", whole)

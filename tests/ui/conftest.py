"""The terminal that the screen's tests run in, whatever they are started from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ui.patches import no_idle_time, rules_read_once, whole_presses


@pytest.fixture(autouse=True)
def _true_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TEXTUAL_THEME", "TEXTUAL_COLOR_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")


@pytest.fixture(autouse=True)
def _no_idle_time() -> Iterator[None]:
    with no_idle_time(), rules_read_once(), whole_presses():
        yield

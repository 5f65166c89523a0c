"""The app in a browser, drawn through textual-serve; the app ends with it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from textual import messages
from textual.app import App
from textual.drivers.web_driver import WebDriver


class BrowserDriver(WebDriver):
    """Ends the app with textual-serve, which cannot report that it was killed: the app would wait forever."""

    def __init__(self, app: App[Any], **given: Any) -> None:
        super().__init__(app, **given)
        self._shown = app

    def run_input_thread(self) -> None:
        """Read the browser's input; at its end, exit."""
        super().run_input_thread()
        self._shown.post_message(messages.ExitApp())

    def write(self, data: str) -> None:
        """Draw; ignore a server that has gone."""
        with suppress(BrokenPipeError):
            super().write(data)

    def stop_application_mode(self) -> None:
        """Leave application mode; ignore a server that has gone."""
        with suppress(BrokenPipeError):
            super().stop_application_mode()

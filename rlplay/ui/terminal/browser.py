"""The app in a browser: drawn through textual-serve, whose end is the app's end."""

from __future__ import annotations

from contextlib import suppress

from textual import messages
from textual.drivers.web_driver import WebDriver


class BrowserDriver(WebDriver):
    """textual-serve says when the tab is closed. If it is killed it cannot, and the app would wait for ever."""

    def run_input_thread(self) -> None:
        """Take what the browser sends; when nothing can come any more, leave."""
        super().run_input_thread()
        self._app.post_message(messages.ExitApp())

    def write(self, data: str) -> None:
        """Draw; nobody is there to see it once the server has gone."""
        with suppress(BrokenPipeError):
            super().write(data)

    def stop_application_mode(self) -> None:
        """Say goodbye, if there is anybody to say it to."""
        with suppress(BrokenPipeError):
            super().stop_application_mode()

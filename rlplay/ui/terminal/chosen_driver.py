"""Which driver draws the app: the terminal's, the browser's, or the one that TEXTUAL_DRIVER names."""

from __future__ import annotations

import importlib
import inspect
import os
import sys

from textual.driver import Driver

from rlplay.trace.text import visible


def chosen_driver() -> type[Driver]:
    """The driver's class. Raises ValueError, one line, if TEXTUAL_DRIVER names none."""
    if named := os.environ.get("TEXTUAL_DRIVER"):
        return _browser(_named(named))
    if sys.platform == "win32":
        from textual.drivers.windows_driver import WindowsDriver

        return WindowsDriver
    from rlplay.ui.terminal.compat import SuspendedDriver

    return SuspendedDriver


def _named(name: str) -> type[Driver]:
    module, _, symbol = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), symbol)
    except Exception as error:  # whatever the module does when it is imported
        raise ValueError(
            f"TEXTUAL_DRIVER={visible(name)} cannot be imported ({type(error).__name__}); unset it"
        ) from error
    if not inspect.isclass(found) or not issubclass(found, Driver):
        raise ValueError(f"TEXTUAL_DRIVER={visible(name)} is no driver class of Textual; unset it")
    return found


def _browser(driver: type[Driver]) -> type[Driver]:
    if driver.__name__ != "WebDriver":
        return driver
    from rlplay.ui.terminal.browser import BrowserDriver

    return BrowserDriver

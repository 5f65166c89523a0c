"""The terminal's driver. It bounds what is drawn, takes the terminal again whichever signal stopped the program, and
ends with its terminal.

For the first two it overrides undocumented methods of Textual's `LinuxDriver` (Textual 8.2.5 and newer, below 9). If a
release no longer calls them, the terminal's size has no bound, and SIGSTOP leaves it without echo.
`tests/ui/test_compat.py` says which names are gone.
"""

from __future__ import annotations

import signal

from textual.drivers.linux_driver import LinuxDriver

LARGEST = 2000, 1000
"""Columns and lines that are drawn. No display has room for more; COLUMNS=100000 would be 37 MB of spaces."""


class SuspendedDriver(LinuxDriver):
    """Goes on cleanly also after SIGSTOP, which no program hears of before it stops."""

    def start_application_mode(self) -> None:
        """Take the terminal. If it closes, the program ends, also where SIGHUP was ignored before, as `nohup` does."""
        if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def _get_terminal_size(self) -> tuple[int, int]:
        width, height = super()._get_terminal_size()
        return min(width, LARGEST[0]), min(height, LARGEST[1])

    def _sigcont_application(self, *_: object) -> None:
        """Take the terminal again.

        After SIGTSTP it has been given back. After SIGSTOP it has not: Textual would read keys in two threads, and at
        the end leave the terminal as it is now, without echo and lines.
        """
        if getattr(self, "_auto_restart", False) and not self._must_signal_resume:
            self.suspend_application_mode()
            self._must_signal_resume = True
        super()._sigcont_application()

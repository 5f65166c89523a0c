"""The terminal's driver. It bounds what is drawn, and takes the terminal again whichever signal stopped the program."""

from __future__ import annotations

from textual.drivers.linux_driver import LinuxDriver

LARGEST = 2000, 1000
"""Columns and lines that are drawn. No display has room for more; COLUMNS=100000 would be 37 MB of spaces."""


class SuspendedDriver(LinuxDriver):
    """Goes on cleanly also after SIGSTOP, which no program hears of before it stops."""

    def _get_terminal_size(self) -> tuple[int, int]:
        width, height = super()._get_terminal_size()
        return min(width, LARGEST[0]), min(height, LARGEST[1])

    def _sigcont_application(self, *_: object) -> None:
        """Take the terminal again.

        After SIGTSTP it has been given back. After SIGSTOP it has not: Textual would read keys in two threads, and at
        the end leave the terminal as it is now, without echo and lines.
        """
        if self._auto_restart and not self._must_signal_resume:
            self.suspend_application_mode()
            self._must_signal_resume = True
        super()._sigcont_application()

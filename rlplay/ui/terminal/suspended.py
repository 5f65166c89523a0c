"""The terminal's driver, which gives the terminal back and takes it again, whichever signal stopped the program."""

from __future__ import annotations

from textual.drivers.linux_driver import LinuxDriver


class SuspendedDriver(LinuxDriver):
    """Goes on cleanly also after SIGSTOP, which no program hears of before it stops."""

    def _sigcont_application(self, *_: object) -> None:
        """Take the terminal again.

        After SIGTSTP it has been given back. After SIGSTOP it has not: Textual would read keys in two threads, and at
        the end leave the terminal as it is now, without echo and lines.
        """
        if self._auto_restart and not self._must_signal_resume:
            self.suspend_application_mode()
            self._must_signal_resume = True
        super()._sigcont_application()

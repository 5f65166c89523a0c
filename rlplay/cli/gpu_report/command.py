"""Prints the report as it comes: findings on standard output, what is tried meanwhile on standard error."""

from __future__ import annotations

import sys
import time

import click

from rlplay.cli.gpu_report.checks import FAILS, Line
from rlplay.cli.gpu_report.report import NoGpuError, report, shown
from rlplay.printing import raw_stream
from rlplay.trace.text import visible

_CLEAR = "\r\x1b[K"


def gpu_report(device: str) -> int:
    """Print it; 0 if all that was tried is right, else 1. Raises UsageError, one line, if there is no GPU."""
    began, failures, progress = time.monotonic(), 0, _Progress()
    try:
        for number, line in enumerate(report(device, progress.tell)):
            progress.clear()
            if not number and device != "cpu":
                click.echo("rlplay on a GPU: paste all of this into an issue")
            click.echo(shown(Line(*map(visible, line))))
            failures += line.status == FAILS
    except NoGpuError as error:
        remedy = "" if device == "cpu" else "; 'rlplay doctor --gpu --device cpu' shows on the CPU what the report does"
        raise click.UsageError(f"there is no GPU to report on: {error}{remedy}") from None
    finally:
        progress.clear()
    verdict = "all that was tried is right" if not failures else f"{failures} of these fail"
    click.echo(f"{verdict}; {time.monotonic() - began:.0f} s")
    return 1 if failures else 0


class _Progress:
    """One line on a terminal, which the next finding replaces; nothing elsewhere."""

    def __init__(self) -> None:
        self._stream = raw_stream(sys.stderr)
        self._there = self._stream.isatty()

    def tell(self, what: str) -> None:
        """Say what is tried now."""
        if self._there:
            print(f"{_CLEAR}trying: {what} …", end="", file=self._stream, flush=True)

    def clear(self) -> None:
        """Make the line free."""
        if self._there:
            print(_CLEAR, end="", file=self._stream, flush=True)

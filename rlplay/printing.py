"""Standard output and standard error as the command line uses them: nothing printed there is obeyed by a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast

from rlplay.trace.text import visible_lines


class Gate:
    """A stream like the one beneath it, on which all that is printed comes out visible, line by line.

    It holds for every library that prints, too, and for what a reward function of the user's own prints of an answer.
    """

    def __init__(self, beneath: TextIO) -> None:
        self.beneath = beneath

    def write(self, text: str) -> int:
        """Print `text`; its line breaks are line breaks."""
        self.beneath.write(visible_lines(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Print one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


@contextmanager
def gated() -> Iterator[None]:
    """While it lasts, `sys.stdout` and `sys.stderr` are gates."""
    with redirect_stdout(cast(TextIO, Gate(sys.stdout))), redirect_stderr(cast(TextIO, Gate(sys.stderr))):
        yield


def beneath(stream: TextIO) -> TextIO:
    """The stream itself, for what is meant to be obeyed: whoever writes here makes foreign text visible first."""
    return stream.beneath if isinstance(stream, Gate) else stream

"""Standard output and standard error with control characters made visible, so that a terminal obeys none of them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast

from rlplay.trace.text import visible_lines


class VisibleStream:
    """Wraps a stream and makes everything printed on it visible, line by line.

    This also covers what libraries print, and what a user's reward function prints of an answer.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Print `text`; line breaks stay line breaks."""
        self.stream.write(visible_lines(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Print the lines one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def visible_output() -> Iterator[None]:
    """Wraps `sys.stdout` and `sys.stderr` in a VisibleStream for the length of the block."""
    out, err = (cast(TextIO, VisibleStream(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield


def raw_stream(stream: TextIO) -> TextIO:
    """The wrapped stream, for intended control characters; the caller makes foreign text visible first."""
    return stream.stream if isinstance(stream, VisibleStream) else stream

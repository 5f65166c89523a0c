"""What the terminal shows until the screen is drawn; importing the screen takes most of a second."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rlplay.printing import raw_stream
from rlplay.trace.text import visible

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[2J", "\x1b[?25h\x1b[?1049l"


@contextmanager
def splash(title: str) -> Iterator[None]:
    """Shows a title in the middle of the alternate screen, which the program that follows takes over.

    If the block raises, the normal screen comes back; otherwise that program leaves the alternate screen. Without a
    terminal, this writes nothing.
    """
    if not _on_a_terminal():
        yield
        return
    out = raw_stream(sys.stdout)
    columns, lines = shutil.get_terminal_size()
    text = visible(f"rlplay · {title}")[:columns]
    place = f"\x1b[{lines // 2};{(columns - len(text)) // 2 + 1}H"
    out.write(f"{_ENTER}{place}\x1b[1m{text[:6]}\x1b[0m{text[6:]}")
    out.flush()
    try:
        yield
    except BaseException:
        out.write(_LEAVE)
        out.flush()
        raise


def lift() -> None:
    """Bring the normal screen back, for a question."""
    if _on_a_terminal():
        out = raw_stream(sys.stdout)
        out.write(_LEAVE)
        out.flush()


def _on_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()

"""What the terminal shows until the screen is drawn; importing the screen takes most of a second."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rlplay.printing import raw_stream
from rlplay.trace.text import visible

if TYPE_CHECKING:
    from rlplay.ui.opening.picture import Line

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[2J", "\x1b[?25h\x1b[?1049l"


_LOOKS = {"title": "1", "strong": "1", "key": "1", "chosen": "7", "muted": "2", "recorded": "2", "faint": "2"}
_COLOURS = {"good": "32", "bad": "31", "curve": "36"}
"""How the roles of the opening's parts look, as numbers of a control sequence; the terminal has its own colours."""


@contextmanager
def splash(title: str, opening: bool = False) -> Iterator[None]:
    """Shows a title in the middle of the alternate screen, or the `opening`; the program that follows takes it over.

    If the block raises, the normal screen comes back; otherwise that program leaves the alternate screen. Without a
    terminal, this writes nothing.
    """
    if not on_a_terminal():
        yield
        return
    out = raw_stream(sys.stdout)
    columns, lines = shutil.get_terminal_size()
    if opening:
        out.write(_ENTER + _opening(columns, lines))
    else:
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


def _opening(columns: int, lines: int) -> str:
    """The opening in the terminal's own colours; Textual, which draws it in those of the theme, is not there yet."""
    from rlplay.ui.opening.picture import picture
    from rlplay.ui.opening.story import recorded
    from rlplay.ui.opening.ways import beginning

    looks = _LOOKS if os.environ.get("NO_COLOR") else _LOOKS | _COLOURS
    drawn = picture(recorded(), beginning(), columns, lines)
    return "".join(f"\x1b[{row};1H{_drawn(line, looks)}" for row, line in enumerate(drawn, start=1))


def _drawn(line: Line, looks: Mapping[str, str]) -> str:
    return "".join(f"\x1b[{looks.get(part.role, '0')}m{part.text}\x1b[0m" for part in line)


def lift() -> None:
    """Bring the normal screen back, for a question."""
    if on_a_terminal():
        out = raw_stream(sys.stdout)
        out.write(_LEAVE)
        out.flush()


def on_a_terminal() -> bool:
    """Whether somebody sees what is drawn, and can press keys."""
    return sys.stdin.isatty() and sys.stdout.isatty()

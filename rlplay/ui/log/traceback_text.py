"""A traceback for the log: the user's own frames, and how many of the engine's lie between them."""

from __future__ import annotations

import re
from pathlib import Path

_FRAME = re.compile(r'^ *File "([^"]+)", line \d+')
_OWN = str(Path(__file__).parents[2])
_LIBRARY = re.compile(r"[/\\](?:site-packages|dist-packages|lib[/\\]python[^/\\]*)[/\\]|^<")
_MARKS = re.compile(r"^[ ~^]+$")


def folded(lines: list[str]) -> list[str]:
    """The `lines` of a traceback without the frames of rlplay and of libraries, whose number takes their place, and
    without the marks under a line; other text is left as it is."""
    kept: list[str] = []
    hidden, hides = 0, False
    for line in lines:
        frame = _FRAME.match(line)
        if frame is not None:
            hides = frame[1].startswith(_OWN) or _LIBRARY.search(frame[1]) is not None
            hidden += hides
        elif not line.startswith(" "):
            hides = False
        if hides or (_MARKS.match(line) and line.strip()):
            continue
        if hidden:
            kept.append(f"  … {hidden} {'frame' if hidden == 1 else 'frames'} of rlplay and libraries (y copies all)")
            hidden = 0
        kept.append(line)
    return kept

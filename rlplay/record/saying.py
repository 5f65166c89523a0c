"""What a recorder says inside somebody's training: nothing there may raise, whatever was raised before."""

from __future__ import annotations

import sys
from contextlib import suppress

from rlplay.trace.text import visible


def say(text: str) -> None:
    """Write one line on standard error; nothing happens where that fails, as when nobody reads it any more."""
    with suppress(Exception):
        print(f"rlplay: {visible(' '.join(text.split()))}", file=sys.stderr)


def said_by(error: BaseException) -> str:
    """What an error says, in one line; its type if it says nothing, or raises when it is asked."""
    try:
        return " ".join(str(error).split()) or type(error).__name__
    except BaseException:
        return type(error).__name__

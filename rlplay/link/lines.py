"""The output of another process, line by line, with control characters made visible."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

from rlplay.trace.text import visible

LONGEST = 2000
"""The length to which a line is cut."""

_CHUNK = 65536
_BREAK = re.compile(rb"[\r\n]+")


async def lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """The stream's lines, without empty ones; a carriage return, as in progress bars, also ends a line.

    Lines are cut after LONGEST characters, so that output without line breaks does not fill the memory.
    """
    rest = b""
    cut = False
    while chunk := await stream.read(_CHUNK):
        *whole, last = _BREAK.split(rest + chunk)
        for index, line in enumerate(whole):
            if line and not (cut and index == 0):
                yield _text(line)
        cut = cut and not whole
        if len(last) > 4 * LONGEST:
            if not cut:
                yield _text(last)
            cut, last = True, b""
        rest = b"" if cut else last
    if rest:
        yield _text(rest)


def _text(line: bytes) -> str:
    text = visible(line.decode(errors="replace"))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"

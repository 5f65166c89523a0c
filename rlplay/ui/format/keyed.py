"""Sentences with keys in them, and the styles that sentences are drawn in."""

from __future__ import annotations

import re

from textual.content import Content

from rlplay.trace.text import visible_lines
from rlplay.ui.format.shown_text import TICK

KEY, QUIET, STRONG, GOOD, BAD, WARN = (
    "bold $foreground",
    "$text-muted",
    "bold $foreground",
    "$success",
    "$error",
    "$warning",
)
_KEY = re.compile(r"`([^`]+)`")


def keyed(text: str, style: str = "") -> Content:
    """Text whose parts between backticks are shown as keys. Nothing else in it is markup or a control character."""
    parts = [visible_lines(part.replace(TICK, "`")) for part in _KEY.split(text)]
    return Content.assemble(*((part, KEY if index % 2 else style) for index, part in enumerate(parts) if part))

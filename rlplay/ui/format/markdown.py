"""Help texts as styled words for one widget: Textual's own styles and lays out a widget for each paragraph."""

from __future__ import annotations

import re

from textual.content import Content

_MARKED = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*")
_ITEM = re.compile(r"^\* ", re.M)


def markdown(text: str) -> Content:
    """The Markdown that help texts use: a title, paragraphs, lists, `keys` and **names**."""
    return Content("\n\n").join(map(_block, text.strip().split("\n\n")))


def _block(text: str) -> Content:
    if text.startswith("# "):
        return Content.styled(text[2:], "bold $foreground")
    before, *items = _ITEM.split(text)
    lines = [_words(before)] if before else []
    return Content("\n").join([*lines, *(Content.assemble("• ", _words(item)) for item in items)])


def _words(text: str) -> Content:
    """A paragraph on one line, which the widget wraps to its own width."""
    pieces = _MARKED.split(" ".join(text.split()))
    styles = ("", "bold $foreground", "bold")
    return Content.assemble(*((piece, styles[at % 3]) for at, piece in enumerate(pieces) if piece))

"""Styled text wrapped to a panel's width, at blanks only."""

from __future__ import annotations

import re

from rich.segment import Segment
from rich.style import Style
from textual.content import Content

_BLANK = re.compile(" (?!%)")
"""Where a line may end: not between a number and its percent sign."""

_HELD = "\N{BRAILLE PATTERN BLANK}"
"""Takes the place of such a blank while Textual wraps, which ends a line at every white space."""


def folded(parts: list[tuple[str, Style]], width: int, indent: int = 2) -> list[list[Segment]]:
    """The parts wrapped to `width` cells; continuation lines are indented."""
    words: list[list[Segment]] = [[]]
    for text, style in parts:
        first, *others = _BLANK.split(text)
        words[-1].append(Segment(first, style))
        words += [[Segment(f" {other}", style)] for other in others]
    lines: list[list[Segment]] = [[]]
    used = 0
    for word in words:
        cells = sum(segment.cell_length for segment in word)
        if used + cells > width and used:
            lines.append([Segment(" " * indent), Segment(word[0].text.lstrip(" "), word[0].style), *word[1:]])
            used = indent - 1 + cells
        else:
            lines[-1] += word
            used += cells
    return lines


def wrapped(text: Content, width: int) -> list[Content]:
    """The lines of a text on a screen of `width` cells; none ends between a number and its percent sign."""
    whole = Content(text.plain.replace(" %", f"{_HELD}%"), [*text.spans])
    return [Content(line.plain.replace(_HELD, " "), [*line.spans]) for line in whole.wrap(width)]

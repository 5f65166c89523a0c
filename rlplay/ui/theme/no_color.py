"""The screen without any colour, if NO_COLOR is set (https://no-color.org): text attributes replace the colours.

Textual would use shades of grey, which are colours for a terminal.
"""

from __future__ import annotations

from functools import lru_cache

from rich.cells import cell_len
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from rlplay.ui.theme.inks import contrast

_LIT = 1.5
"""A background with this contrast to its surroundings (a cursor, a chosen line) is reversed."""
_QUIET = 6.0
"""Letters with less contrast to their background are dim."""
_CLEAR = 21.0
_HIDDEN = 1.25
"""Letters with less contrast are only a texture. Without colour it would hide the text, so they become blanks."""


class Plain(LineFilter):
    """Removes all colours: backgrounds become reverse, and faint letters dim."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The filtered segments of a line; `background` is that of their widget."""
        return [
            segment if segment.style is None or segment.control else _plain(segment.text, segment.style, background)
            for segment in segments
        ]


def _plain(text: str, style: Style, background: Color) -> Segment:
    attributes, hidden = _attributes(style, background)
    return Segment(" " * cell_len(text) if hidden else text, attributes)


@lru_cache(4096)
def _attributes(style: Style, background: Color) -> tuple[Style, bool]:
    """The style without colours, and whether its letters were hardly visible."""
    ground = _shown(style.bgcolor) or background
    ink = _shown(style.color)
    if style.reverse and ink is not None:
        ground, ink = ink, ground
    lit = contrast(ground, background) >= _LIT
    apart = _CLEAR if ink is None else contrast(ink, ground)
    quiet = apart < _QUIET and not lit and not style.bold
    return style.without_color + Style(reverse=lit, dim=True if quiet else style.dim), apart < _HIDDEN


def _shown(color: RichColor | None) -> Color | None:
    return None if color is None or color.is_default else Color.from_rich_color(color)

"""The screen as cells with characters and colours; `save.py` makes files from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from textual.app import App
from textual.color import Color as Shade

from rlplay.ui.compat import lines_of

_DIM = 0.4
"""How far terminals usually blend dim letters into their background."""


@dataclass(frozen=True)
class CellStyle:
    """How a cell is drawn; colours are written #rrggbb."""

    ink: str
    ground: str
    bold: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False


class Cell(NamedTuple):
    """One character with its combining characters, one or two columns wide."""

    text: str
    width: int
    style: CellStyle


Grid = list[list[Cell]]
"""The lines of a screen; the widths of each line's cells add up to its columns."""


def capture(app: App[Any]) -> Grid:
    """What the app shows now, including dialogues and notifications. Raises OSError if Textual does not say."""
    theme, ground = app.ansi_theme, app.theme_variables["background"]
    return [list(_cells(strip, theme, ground)) for strip in lines_of(app)]


def text_of(grid: Grid) -> str:
    """The text on the screen, without trailing blanks."""
    return "".join("".join(cell.text for cell in line).rstrip() + "\n" for line in grid)


def _cells(segments: Iterable[Segment], theme: TerminalTheme, ground: str) -> Iterator[Cell]:
    for text, style, control in segments:
        if control:
            continue
        drawn = _cell_style(style or Style(), theme, ground)
        for cluster in clusters(text):
            yield Cell(cluster, cell_len(cluster), drawn)


def clusters(text: str) -> Iterator[str]:
    """The characters of a text, each with the zero-width characters that follow it."""
    cluster = ""
    for character in text:
        if cluster and cell_len(character):
            yield cluster
            cluster = ""
        cluster += character
    if cluster:
        yield cluster


def _cell_style(style: Style, theme: TerminalTheme, ground: str) -> CellStyle:
    ink = _hex(style.color, theme, theme.foreground_color.hex)
    behind = _hex(style.bgcolor, theme, ground)
    if style.reverse:
        ink, behind = behind, ink
    if style.dim:
        ink = Shade.parse(ink).blend(Shade.parse(behind), _DIM).hex.lower()
    return CellStyle(ink, behind, bool(style.bold), bool(style.italic), bool(style.underline), bool(style.strike))


def _hex(color: Color | None, theme: TerminalTheme, default: str) -> str:
    return default if color is None or color.is_default else color.get_truecolor(theme).hex

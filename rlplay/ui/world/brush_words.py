"""The brushes below a map that is being painted, and which of them is where."""

from __future__ import annotations

from textual.content import Content

from rlplay.ui.world.short_numbers import short
from rlplay.worlds.painting import BRUSHES, REWARD, Painting

_KEY, _MUTED = "bold $foreground", "$text-muted"
_SIGNS = {"#": "▒", "I": "≈", "O": "○", "G": "★", ".": "·"}
_GAP = 3


def brush_lines(painting: Painting, width: int) -> list[Content]:
    """The brushes by number, what is wrong, and the keys: lines of at most `width` cells."""
    rows: dict[int, list[Content]] = {}
    for number, (line, _, _) in brush_places(painting, width).items():
        rows.setdefault(line, []).append(_brush(painting, number))
    lines = [Content(" " * _GAP).join(row) for row in rows.values()]
    note = painting.note
    forms = [
        Content.assemble(*((part, _KEY if at % 2 == 0 else _MUTED) for at, part in enumerate(
            ("↑ → ↓ ←", " square   ", "enter", f"{drag} paint   ", "+ −", " reward   ", "z", " undo   ",
             "esc", " done"))))
        for drag in (" or drag the mouse:", " or drag:", "")
    ]  # fmt: skip
    keys = next((each for each in forms if each.cell_length <= width), forms[-1])
    return [*lines, *([Content.styled(note, "$warning").truncate(width, ellipsis=True)] if note else []),
            keys.truncate(width, ellipsis=True)]  # fmt: skip


def brush_places(painting: Painting, width: int) -> dict[int, tuple[int, int, int]]:
    """The line, the first column and the column behind each brush, counted from the first line below the map."""
    places, line, column = {}, 0, 0
    for number in BRUSHES:
        length = _brush(painting, number).cell_length
        if column and column + length > width:
            line, column = line + 1, 0
        places[number] = line, column, column + length
        column += length + _GAP
    return places


def _brush(painting: Painting, number: int) -> Content:
    sign, name = BRUSHES[number]
    mark = f"◆{short(painting.reward, signed=True)} " if number == REWARD else f"{_SIGNS[sign]} " if sign else ""
    style = "reverse" if number == painting.brush else ""
    return Content.assemble((f"{number}", f"{_KEY} {style}".strip()), (f" {mark}{name}", style))

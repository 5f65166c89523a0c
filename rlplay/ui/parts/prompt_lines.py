"""What the Token panel says of an answer's prompt: the columns of its row, and the text that the model reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style

from rlplay.trace.records import Sampled
from rlplay.trace.text import visible, visible_lines
from rlplay.trace.turns import marks_and_text
from rlplay.ui.format.shown_text import column_text
from rlplay.ui.theme.inks import Palette

_LONG = 40
"""Cells of a value at the top of the panel; one that is longer is written out below."""


def columns_in_short(columns: Mapping[str, Any], palette: Palette) -> list[tuple[str, Style]]:
    """The columns as parts of one paragraph: "right answer 30 · topic addition"; the model's own answer is another."""
    parts: list[tuple[str, Style]] = []
    for name, value in columns.items():
        text = visible(column_text(value))
        text = text if cell_len(text) <= _LONG else f"{chop_cells(text, _LONG - 1)[0]}…"
        title = "right answer" if name == "answer" else visible(name)
        parts += [(f"{' · ' * bool(parts)}{title} ", palette.muted), (text, palette.text)]
    return parts


def prompt_in_full(sampled: Sampled, group: int, width: int, palette: Palette) -> list[list[Segment]]:
    """The prompt with its chat template, so with system message and roles, and the columns that were shortened."""
    read = "".join(sampled.prompt_texts[int(sampled.prompt_offsets[group]) : int(sampled.prompt_offsets[group + 1])])
    sections = [("prompt as the model reads it", read)] if read else []
    for name, value in sampled.columns[group].items():
        text = column_text(value)
        if cell_len(visible(text)) > _LONG:
            sections.append((f"column {visible(name)}", text))
    lines: list[list[Segment]] = []
    for head, text in sections:
        lines += [[], [Segment(head, palette.muted)]]
        for written in visible_lines(text).split("\n"):
            lines += [_quiet_marks(piece, palette) for piece in chop_cells(written, max(width, 2))] or [[]]
    return lines


def _quiet_marks(line: str, palette: Palette) -> list[Segment]:
    """A line of a prompt, with the marks of the chat template and the roles in them set back."""
    return [Segment(part, palette.muted if mark else palette.text) for part, mark in marks_and_text(line)]

"""The position of every token of an update: prompts and completions as lines, searchable by token and position."""

from __future__ import annotations

from dataclasses import dataclass

from rlplay.trace.records import Array, Sampled
from rlplay.trace.text import NEWLINE, visible
from rlplay.ui.format.text import token_text
from rlplay.ui.layout.wrap import Cell, wrap

GUTTER = 2
FLIPPED = 3
"""A value besides the clip states: the changed settings would flip the sign of the token's gradient."""
MARKS = {1: "▲", 2: "▲", -1: "▼", FLIPPED: "±"}
VALUE_WIDTH = 5


@dataclass(frozen=True)
class Row:
    """One line of a prompt (completion −1) or of a completion; `values` marks the line of numbers below it."""

    group: int
    completion: int
    cells: list[Cell]
    values: bool = False


class Layout:
    """Lines of a given width. A completion is wrapped again only if it has changed or grown."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._first: dict[int, int] = {}
        self._wrapped: dict[int, tuple[bytes, bytes, list[list[Cell]]]] = {}
        self._wrapped_for = (0, False)

    def clear(self) -> None:
        """Remove all lines."""
        self.rows, self._first = [], {}

    def replace(self, rows: list[Row]) -> None:
        """Replace the lines by others with the same completions in the same order."""
        self.rows, self._first = rows, {}
        for at, row in enumerate(rows):
            if row.completion >= 0:
                self._first.setdefault(row.completion, at)

    def arrange(self, sampled: Sampled, clips: Array | None, order: list[int], width: int, signs: bool) -> None:
        """Lay out the completions in `order`; with `signs`, blanks are visible and numbers follow each line."""
        if (width, signs) != self._wrapped_for:
            self._wrapped, self._wrapped_for = {}, (width, signs)
        rows: list[Row] = []
        self._first = {}
        group = -1
        for completion in order:
            if sampled.group[completion] != group:
                if group >= 0:
                    rows.append(Row(group, -1, []))
                group = int(sampled.group[completion])
                prompt = visible(sampled.prompts[group].replace("\n", f"{NEWLINE} "))
                words = [f" {word}" if i else word for i, word in enumerate(prompt.split(" "))]
                rows += [Row(group, -1, cells) for cells in wrap(words, width - GUTTER, [False] * len(words))]
            self._first[completion] = len(rows)
            for cells in self._wrap(sampled, clips, completion) or [[]]:
                rows.append(Row(group, completion, cells))
                if signs:
                    rows.append(Row(group, completion, cells, values=True))
        self.rows = rows

    def _wrap(self, sampled: Sampled, clips: Array | None, completion: int) -> list[list[Cell]]:
        width, signs = self._wrapped_for
        start, end = (int(x) for x in sampled.offsets[completion : completion + 2])
        ids = sampled.token_ids[start:end].tobytes()
        marks = b"" if clips is None or not clips[start:end].any() else clips[start:end].tobytes()
        known = self._wrapped.get(completion)
        if known is not None and known[:2] == (ids, marks):
            return known[2]
        texts, breaks = [], []
        for token in range(start, end):
            piece = sampled.pieces.get(int(sampled.token_ids[token]), "")
            text = token_text(sampled.texts[token], piece, signs)
            breaks.append(sampled.texts[token].endswith("\n"))
            mark = None if clips is None else MARKS.get(int(clips[token]))
            if mark is not None:
                text = mark + text.removeprefix(" ").removeprefix("·")
            texts.append(text.ljust(VALUE_WIDTH) + " " if signs else text)
        grown = known is not None and known[1] == marks and ids.startswith(known[0])
        lines = wrap(texts, width - GUTTER, breaks, known[2] if known is not None and grown else None)
        self._wrapped[completion] = (ids, marks, lines)
        return lines

    def begins(self, row: int) -> bool:
        """Whether a completion begins on this line."""
        return self._first.get(self.rows[row].completion) == row

    def ends(self, row: int) -> bool:
        """Whether a completion's text ends on this line."""
        here, after = self.rows[row], self.rows[row + 1 : row + 3]
        return not here.values and not any(later.completion == here.completion and not later.values for later in after)

    def rows_of(self, completion: int) -> range:
        """The lines of a completion."""
        first = self._first.get(completion)
        if first is None:
            return range(0)
        last = first
        while last < len(self.rows) and self.rows[last].completion == completion:
            last += 1
        return range(first, last)

    def heading(self, row: int) -> int:
        """The first line of the prompt directly above `row`; `row` itself if there is none."""
        while row > 0 and self.rows[row - 1].completion < 0 and self.rows[row - 1].cells:
            row -= 1
        return row

    def place(self, completion: int, token: int) -> tuple[int, int]:
        """The line and column of a token."""
        rows = self.rows_of(completion)
        for row in rows:
            x = GUTTER
            for cell in self.rows[row].cells:
                if cell.token == token:
                    return row, x
                x += cell.width
        return rows.start, GUTTER

    def at(self, row: int, column: int) -> tuple[int, int] | None:
        """The completion and token nearest to a column of a line; None on lines without tokens."""
        if not 0 <= row < len(self.rows) or self.rows[row].completion < 0:
            return None
        x, token = GUTTER, 0
        for cell in self.rows[row].cells:
            token = cell.token
            x += cell.width
            if column < x:
                break
        return self.rows[row].completion, token

    def beyond(self, row: int, column: int, step: int) -> tuple[int, int] | None:
        """The token at `column` of the first text line from `row` in the direction of `step`; None at the end."""
        while 0 <= row < len(self.rows):
            if not self.rows[row].values and (found := self.at(row, column)) is not None:
                return found
            row += step
        return None

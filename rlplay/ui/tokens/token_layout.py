"""The position of every token of an update: prompts and completions as lines, searchable by token and position."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from rlplay.trace.records import Array, Sampled
from rlplay.trace.text import NEWLINE, visible
from rlplay.trace.turns import are_conversations, turns
from rlplay.ui.format.shown_text import token_text, turn_marks
from rlplay.ui.format.wrap import TokenPiece, wrap

GUTTER = 2
FLIPPED = 3
"""A value besides the clip states: the changed settings would flip the sign of the token's gradient."""
MARKS = {1: "▲", 2: "▲", -1: "▼", FLIPPED: "±"}
VALUE_WIDTH = 5
LONG = 120
"""Mean tokens of an answer from which on the answers of an update are folded to one line each."""
MORE = " …"
"""Stands at the end of a folded line."""
_NARROWEST = 2
"""Cells that a prompt is wrapped into at least, as `wrap` does: a panel that is hidden has none."""
_PROMPT_LINES = 3
_AT_FIRST = 32
"""Tokens of a long answer that are wrapped at first, to find one of its lines."""
_UNKNOWN: tuple[bytes, bytes, str, list[list[TokenPiece]]] = b"", b"", "", []


class LayoutRow:
    """One line of a prompt (completion −1) or of a completion; `values` marks the line of numbers below it.

    On a `folded` line the cells are found when they are first needed: wrapping 512 long answers takes seconds.
    """

    __slots__ = ("_cells", "_find", "completion", "folded", "group", "values")

    def __init__(
        self, group: int, completion: int, cells: list[TokenPiece], values: bool = False,
        find: Callable[[], list[TokenPiece]] | None = None,
    ) -> None:  # fmt: skip
        self.group, self.completion, self.values, self.folded = group, completion, values, find is not None
        self._cells: list[TokenPiece] | None = None if find else cells
        self._find = find

    @property
    def cells(self) -> list[TokenPiece]:
        """The tokens on the line."""
        if self._cells is None:
            assert self._find is not None
            self._cells = self._find()
        return self._cells

    def forget(self) -> None:
        """Let a folded line be found again: another token of the answer is to be seen."""
        if self.folded:
            self._cells = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LayoutRow) and self._parts() == other._parts()

    __hash__ = None  # type: ignore[assignment]

    def _parts(self) -> tuple[object, ...]:
        return self.group, self.completion, self.values, self.folded, self.cells


@dataclass(frozen=True)
class Folds:
    """What of an update is folded: how many `copies` a line stands for, and the answers that are `unfolded`.

    `seen(completion)` is the token, from 0, that a folded line shows.
    """

    copies: Mapping[int, int] = field(default_factory=dict)
    unfolded: Collection[int] = ()
    seen: Callable[[int], int] = lambda _completion: 0

    def head(self, completion: int) -> str:
        """The words before an answer's text."""
        return f"×{self.copies[completion]} " if completion in self.copies else ""


class TokenLayout:
    """Lines of a given width. A completion is wrapped again only if it has changed or grown."""

    def __init__(self) -> None:
        self.rows: list[LayoutRow] = []
        self._first: dict[int, int] = {}
        self._wrapped: dict[int, tuple[bytes, bytes, str, list[list[TokenPiece]]]] = {}
        self._wrapped_for = (0, False)
        self._sampled: Sampled | None = None
        self._folds = Folds()
        self._talks = False  # whether turns are set apart
        self._heads: dict[int, dict[int, str]] = {}  # by completion and token

    def clear(self) -> None:
        """Remove all lines."""
        self.rows, self._first = [], {}

    def replace(self, rows: list[LayoutRow]) -> None:
        """Replace the lines by others with the same completions in the same order."""
        self.rows, self._first = rows, {}
        for at, row in enumerate(rows):
            if row.completion >= 0:
                self._first.setdefault(row.completion, at)

    def arrange(
        self, sampled: Sampled, clips: Array | None, order: list[int], width: int, signs: bool,
        folds: Folds | None = None,
    ) -> None:  # fmt: skip
        """Lay out the completions in `order`; with `signs`, blanks are visible and numbers follow each line.

        Long answers take one line each, except those in `folds.unfolded`.
        """
        if (width, signs) != self._wrapped_for:
            self._wrapped, self._wrapped_for = {}, (width, signs)
        long = are_long(sampled)
        self._sampled, self._folds, self._talks, self._heads = sampled, folds or Folds(), are_conversations(sampled), {}
        groups, lengths = sampled.group.tolist(), np.diff(sampled.offsets).tolist()
        rows: list[LayoutRow] = []
        self._first = {}
        group = -1
        for completion in order:
            if groups[completion] != group:
                if group >= 0:
                    rows.append(LayoutRow(group, -1, []))
                group = groups[completion]
                rows += [
                    LayoutRow(group, -1, cells) for cells in self._heading(sampled, group, 1 if long else _PROMPT_LINES)
                ]
            self._first[completion] = len(rows)
            length = lengths[completion]
            if long and length and completion not in self._folds.unfolded:
                rows += self._folded(clips, group, completion, length)
                continue
            for cells in self._wrap(clips, completion, length) or [[]]:
                rows.append(LayoutRow(group, completion, cells))
                if signs:
                    rows.append(LayoutRow(group, completion, cells, values=True))
        self.rows = rows

    def _heading(self, sampled: Sampled, group: int, most: int) -> list[list[TokenPiece]]:
        """The prompt in at most `most` lines; the Token panel has all of it."""
        width = max(self._wrapped_for[0] - GUTTER, _NARROWEST)
        prompt = visible(sampled.prompts[group][: (most + 1) * width].replace("\n", f"{NEWLINE} "))
        words = [f" {word}" if i else word for i, word in enumerate(prompt.split(" "))]
        lines = wrap(words, width, [False] * len(words))
        if len(lines) <= most and len(sampled.prompts[group]) <= (most + 1) * width:
            return lines
        words = [cell.text for cell in lines[most - 1]]
        last = wrap(words, width - len(MORE), [False] * len(words))[0]
        return [*lines[: most - 1], [*last, TokenPiece(last[-1].token, MORE, len(MORE))]]

    def _folded(self, clips: Array | None, group: int, completion: int, length: int) -> list[LayoutRow]:
        """The one line of a folded answer of `length` tokens, with its numbers below it."""

        def find() -> list[TokenPiece]:
            token, known = min(self._folds.seen(completion), length - 1), _AT_FIRST
            while True:
                known = min(max(known, token + _AT_FIRST), length)
                lines = self._wrap(clips, completion, known, len(MORE))
                at = next(n for n, line in enumerate(lines) if line[-1].token >= token)
                if at + 1 < len(lines) or known == length:  # the last line may still grow
                    return lines[at]
                known *= 2

        row = LayoutRow(group, completion, [], find=find)
        signs = self._wrapped_for[1]
        return [row, LayoutRow(group, completion, [], values=True, find=lambda: row.cells)] if signs else [row]

    def _wrap(self, clips: Array | None, completion: int, count: int, spare: int = 0) -> list[list[TokenPiece]]:
        """The lines of the first `count` tokens of a completion, with `spare` cells free at the end."""
        width, signs = self._wrapped_for
        sampled, heads = self._sampled, self.heads(completion)
        assert sampled is not None
        start = int(sampled.offsets[completion])
        ids = sampled.token_ids[start : start + count].tobytes()
        marks = bytes(count) if clips is None else clips[start : start + count].astype(np.int8).tobytes()
        form, (its_ids, its_marks, its_form, known) = f"{spare} {heads}", self._wrapped.get(completion, _UNKNOWN)
        reaches = len(its_ids) == len(ids) or (spare and len(its_ids) > len(ids))
        if form == its_form and reaches and its_ids.startswith(ids) and its_marks.startswith(marks):
            return known
        grown = form == its_form and ids.startswith(its_ids) and marks.startswith(its_marks)
        texts, breaks = [], []
        between = {} if signs or self._talks else turn_marks(sampled, completion)
        for token in range(start, start + count):
            piece = sampled.pieces.get(int(sampled.token_ids[token]), "")
            text = between.get(token) or token_text(sampled.texts[token], piece, signs)
            breaks.append(sampled.texts[token].endswith("\n"))
            mark = None if clips is None else MARKS.get(int(clips[token]))
            if mark is not None:
                text = mark + text.removeprefix(" ").removeprefix("·")
            texts.append(text.ljust(VALUE_WIDTH) + " " if signs else text)
        for token, words in heads.items():
            if token < count:
                texts[token] = words + texts[token]
                breaks[max(token - 1, 0)] |= token > 0
        lines = wrap(texts, width - GUTTER - spare, breaks, known if grown else None)
        self._wrapped[completion] = (ids, marks, form, lines)
        return lines

    def heads(self, completion: int) -> dict[int, str]:
        """The words before tokens that are not part of them: how many copies, and who speaks."""
        if completion not in self._heads:
            assert self._sampled is not None
            said = turns(self._sampled, completion) if self._talks else []
            wide = max((len(turn.role) for turn in said), default=0) + 2
            heads = {turn.start: f"{turn.role}: ".ljust(wide) for turn in said if len(said) > 1}
            if copies := self._folds.head(completion):
                heads[0] = copies + heads.get(0, "")
            self._heads[completion] = heads
        return self._heads[completion]

    def turn(self, completion: int) -> range:
        """Let a folded completion show its token again, after that has changed; returns its lines."""
        rows = self.rows_of(completion)
        for row in rows:
            self.rows[row].forget()
        return rows

    def turn_all(self) -> None:
        """Let every folded completion show its token again."""
        for row in self.rows:
            row.forget()

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

    def on_more(self, row: int, column: int) -> bool:
        """Whether `column` is after the text of a folded line."""
        shown = self.rows[row]
        return shown.folded and column >= GUTTER + sum(cell.width for cell in shown.cells)

    def next_text(self, row: int, column: int, step: int) -> tuple[int, int] | None:
        """The token at `column` of the first text line from `row` in the direction of `step`; None at the end."""
        while 0 <= row < len(self.rows):
            if not self.rows[row].values and (found := self.at(row, column)) is not None:
                return found
            row += step
        return None


def are_long(sampled: Sampled) -> bool:
    """Whether the answers are so long that each is folded to one line."""
    return len(sampled.token_ids) > LONG * len(sampled.group)

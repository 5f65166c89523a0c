"""Prompts that were asked at two moments, sorted by how their reward changed; and the answers of one of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import ClassVar, NamedTuple

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message

from rlplay.trace.moments import AskedTwice, Verdict
from rlplay.trace.text import NEWLINE, visible
from rlplay.ui.format.number_cells import plain, signed
from rlplay.ui.format.wrap import wrap
from rlplay.ui.moments.answer_pairs import Section
from rlplay.ui.parts.line_panel import LinePanel
from rlplay.ui.parts.prompt_lines import columns_in_short

SIGNS: dict[Verdict, str] = {"worse": "▼", "better": "▲", "same": "=", "unscored": "·"}
ROOMY = 100
"""Cells of a line from which on it has room for a prompt."""
_HEAD = 16
"""Characters of the common beginning of two answers that the list shows."""
_BETWEEN = " │ "
_WORDS = re.compile(f" ?[^ {NEWLINE}]{{1,8}}{NEWLINE}?|{NEWLINE}| ")
"""Words, in pieces of at most eight characters: a line may break within a word that is longer than a line."""


class _Row(NamedTuple):
    """A line: the head of a section, its note, or a prompt."""

    section: Section
    asked: AskedTwice | None = None
    is_note: bool = False


class AskedList(LinePanel):
    """A line for each prompt below the title of its section. The cursor is a prompt."""

    EMPTY = "Nothing to compare yet."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "one up", show=False),
        Binding("down", "move(1)", "one down", show=False),
        Binding("home", "put(0)", "first", show=False),
        Binding("end", "put(-1)", "last", show=False),
    ]

    class Moved(Message):
        """The cursor moved to another prompt."""

    def __init__(self) -> None:
        super().__init__()
        self._sections: list[Section] = []
        self._rows: list[_Row] = []
        self._places: list[int] = []  # the rows of prompts
        self.cursor = 0

    def show(self, sections: Sequence[Section], best_first: bool) -> None:
        """Show these sections, with the largest fall or the largest rise of the reward first."""
        self._sections = [
            Section(section.title, sorted(section.asked, key=lambda each: _rank(each, best_first)), section.note)
            for section in sections
        ]
        self._lay_out()

    def on_resize(self) -> None:
        """Give a note a line of its own, or none, as the new width has room."""
        super().on_resize()
        self._lay_out()

    def _lay_out(self) -> None:
        width, self._rows = self.scrollable_content_region.width, []
        for section in self._sections:
            self._rows.append(_Row(section))
            if sum(part.cell_length for part in self._head(section, with_note=True)) > width:
                self._rows.append(_Row(section, is_note=True))
            self._rows += [_Row(section, asked) for asked in section.asked]
        self._places = [at for at, row in enumerate(self._rows) if row.asked is not None]
        self.cursor = min(self.cursor, max(len(self._places) - 1, 0))
        self.rebuild()

    @property
    def is_narrow(self) -> bool:
        """Whether a line has no room for a prompt, so that it has the answers instead."""
        return self.scrollable_content_region.width < ROOMY

    @property
    def asked(self) -> AskedTwice | None:
        """The prompt under the cursor."""
        return self._rows[self._places[self.cursor]].asked if self._places else None

    def count(self) -> int:
        """The number of lines."""
        return len(self._rows)

    def line(self, row: int) -> Iterable[Segment]:
        """A section with its counts, or a prompt with its mean rewards."""
        section, asked, is_note = self._rows[row]
        if asked is None:
            own_line = row + 1 < len(self._rows) and self._rows[row + 1].is_note
            yield from [self._note(section, "  ")] if is_note else self._head(section, with_note=not own_line)
            return
        here = row == self._places[self.cursor]
        yield Segment("▸ " if here else "  ", self.palette.mark)
        yield Segment(f"{SIGNS[asked.verdict]} {signed(asked.change):>6}", self._ink(asked.verdict))
        yield Segment(f"{plain(asked.before.mean):>7} → {plain(asked.after.mean):<6} ", self.palette.muted)
        if self.is_narrow:
            style = self.palette.strong if here else self.palette.text
            yield Segment(visible(_in_short(asked)), style if _differ(asked) else self.palette.muted)
            return
        yield Segment(visible(asked.prompt), self.palette.strong if here else self.palette.text)
        if asked.columns:
            yield Segment(" · ", self.palette.muted)
        yield from (Segment(*part) for part in columns_in_short(asked.columns, self.palette))

    def _head(self, section: Section, with_note: bool) -> Iterable[Segment]:
        """The title of a section with its counts."""
        yield Segment(f"  {section.title}", self.palette.strong)
        for verdict, count in section.counts.items() if section.asked else ():
            yield Segment(f"  {SIGNS[verdict]} {verdict} {count}", self._ink(verdict))
        if with_note:
            yield self._note(section, " · ")

    def _note(self, section: Section, before: str) -> Segment:
        return Segment(f"{before}{section.note}", self.palette.muted if section.asked else self.palette.warning)

    def _ink(self, verdict: Verdict) -> Style:
        inks = {"worse": self.palette.down_text, "better": self.palette.up_text}
        return inks.get(verdict, self.palette.muted)

    def action_move(self, step: int) -> None:
        """Choose another prompt."""
        self.action_put(max(0, min(self.cursor + step, len(self._places) - 1)))

    def action_put(self, cursor: int) -> None:
        """Choose prompt `cursor`; −1 is the last."""
        if self._places:
            before, self.cursor = self._places[self.cursor], cursor % len(self._places)
            after = self._places[self.cursor]
            self.redraw(before, after)
            self.reveal(after - 1 if self._rows[after - 1].asked is None else after, after)
            self.post_message(self.Moved())


class BothAnswers(LinePanel, can_focus=False):
    """The answers to one prompt side by side, each with its reward; what the two have in common is dim."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: AskedTwice | None = None
        self._heads = "", ""
        self._lines: list[tuple[list[Segment], list[Segment] | None]] = []

    def show(self, asked: AskedTwice | None, heads: tuple[str, str]) -> None:
        """Show the answers of `asked`, from the top, below the names of the moments."""
        self._asked, self._heads = asked, heads
        self._lay_out()
        self.scroll_to(y=0, animate=False, immediate=True)

    def on_resize(self) -> None:
        """Wrap the answers to the new width."""
        super().on_resize()
        self._lay_out()

    def count(self) -> int:
        """The number of lines."""
        return len(self._lines)

    def line(self, row: int) -> Iterable[Segment]:
        """One line of both."""
        left, right = self._lines[row]
        yield from left
        if right is None:
            return
        yield Segment(" " * (self._half - sum(segment.cell_length for segment in left)))
        yield Segment(_BETWEEN, self.palette.faint)
        yield from right

    @property
    def _half(self) -> int:
        return max((self.scrollable_content_region.width - len(_BETWEEN)) // 2, 8)

    def _lay_out(self) -> None:
        self._lines = []
        if self._asked is not None:
            if self.scrollable_content_region.width < ROOMY:  # the list has no room for it
                self._lines += [(line, None) for line in self._prompt(visible(self._asked.prompt))]
            heads = [[Segment(set_cell_size(head, self._half), self.palette.strong)] for head in self._heads]
            self._lines.append((heads[0], heads[1]))
            for before, after in _pairs(self._asked):
                shared = _shared(visible(before[0]), visible(after[0]))
                one, other = (self._answer(visible(text), reward, shared) for text, reward in (before, after))
                self._lines += zip_longest(one, other, fillvalue=[])
        self.rebuild()

    def _prompt(self, text: str) -> list[list[Segment]]:
        """The prompt over the whole width, as lines."""
        pieces = _WORDS.findall(text)
        lines = wrap(pieces, self.scrollable_content_region.width, [piece.endswith(NEWLINE) for piece in pieces])
        return [[Segment("".join(cell.text for cell in line), self.palette.strong)] for line in lines]

    def _answer(self, text: str, reward: float, shared: int) -> list[list[Segment]]:
        """An answer after its reward, as lines; its first `shared` characters are dim."""
        if math.isnan(reward) and not text:
            return []
        head, body = text[:shared], text[shared:]
        pieces = [f"{plain(reward):>6} ", *_WORDS.findall(head), *_WORDS.findall(body)]
        dim = 1 + len(_WORDS.findall(head))
        lines = wrap(pieces, self._half, [piece.endswith(NEWLINE) for piece in pieces])
        styles = [self.palette.strong, *[self.palette.muted] * (dim - 1), *[self.palette.text] * len(pieces)]
        return [[Segment(cell.text, styles[cell.token]) for cell in line] for line in lines]


_Answer = tuple[str, float]


def _pairs(asked: AskedTwice) -> list[tuple[_Answer, _Answer]]:
    """The answers of both moments by rank. Held-out answers have random numbers by rank: first those that changed."""
    one, other = ([*zip(side.texts, side.rewards, strict=True)] for side in (asked.before, asked.after))
    pairs = list(zip_longest(one, other, fillvalue=("", math.nan)))
    if asked.after.group is None:
        pairs.sort(key=lambda pair: (pair[0][0] == pair[1][0], -abs(pair[1][1] - pair[0][1])))
    return pairs


def _differ(asked: AskedTwice) -> bool:
    """Whether the answers of both moments are not the same texts."""
    return sorted(asked.before.texts) != sorted(asked.after.texts)


def _rank(asked: AskedTwice, best_first: bool) -> tuple[bool, bool, float]:
    """Sorts other rewards before other texts, and those before equal answers; then by the change of the reward."""
    change = asked.change if math.isfinite(asked.change) else 0.0
    return not change, not _differ(asked), -change if best_first else change


def _in_short(asked: AskedTwice) -> str:
    """What the answers have become, as "The answer is 4. → 5.": the first pair that differs, else the first answer."""
    (one, _), (other, _) = next((pair for pair in _pairs(asked) if pair[0][0] != pair[1][0]), _pairs(asked)[0])
    if one == other:
        return one
    shared = _shared(one, other)
    head = one[:shared] if shared <= _HEAD else f"…{one[shared - _HEAD : shared]}"
    return f"{head}{one[shared:] or '∅'} → {other[shared:] or '∅'}"


def _shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    differing = (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differing, min(len(one), len(other)))

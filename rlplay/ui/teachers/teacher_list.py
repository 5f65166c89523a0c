"""The list of teachers: how far each answer, and each earlier update, raised or lowered the target."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len
from rich.segment import Segment

from rlplay.trace.update import Update
from rlplay.ui.format.number_cells import plain, signed
from rlplay.ui.format.shown_text import token_text
from rlplay.ui.teachers.row_list import BAR, RowList
from rlplay.ui.teachers.teacher_rows import AnswerRow, GroupRow, MoreRow, Row, UpdatesRow
from rlplay.ui.teachers.words import nats
from rlplay.ui.theme.inks import STEPS

_WIDE = 64
"""Cells of a line from which on it has the reward, if there is one."""
_MEDIUM = 50
"""Cells of a line from which on it has the credit."""
TAKEN = "✕"
"""Marks an answer whose credit is to be taken away."""


class TeacherList(RowList[Row]):
    """A line for each group, answer and earlier update. The cursor skips the headings of groups."""

    def __init__(self) -> None:
        super().__init__()
        self._update: Update | None = None
        self._marked: frozenset[int] = frozenset()

    def tell(self, rows: list[Row], update: Update | None, marked: frozenset[int], words: str) -> None:
        """Show these rows of `update`, some of them `marked`; or why there are none, in `words`."""
        if rows is not self.rows:
            self.rows = rows
            self._largest = max((abs(row.total) for row in rows if self.selectable(row)), default=1.0) or 1.0
            self.cursor = next((at for at, row in enumerate(rows) if self.selectable(row)), 0)
            self.scroll_to(y=0, animate=False, immediate=True)
        self._update, self._marked, self.words = update, marked, words
        self.rebuild()

    def selectable(self, row: Row) -> bool:
        """Neither a heading nor the line about many answers."""
        return isinstance(row, AnswerRow | UpdatesRow)

    def heads(self) -> Iterable[Segment]:
        """What each column has, and what the two colours mean."""
        yield Segment(f"{'share':>9} ", self.palette.muted)
        yield from self.bar_heads()
        reward, credit = self._columns
        yield Segment(f"{' reward' * reward}{' credit' * credit}  answer", self.palette.muted)

    def entry(self, row: Row, here: bool) -> Iterable[Segment]:
        """One row."""
        if isinstance(row, GroupRow):
            yield Segment(f"{nats(row.total, self._largest):>9} ", self.ink(row.total))
            yield Segment(row.title, self.palette.strong)
            return
        if isinstance(row, MoreRow):
            yield Segment(f"{nats(row.total, self._largest):>9} ", self.ink(row.total))
            yield Segment(f"{row.answers} more, hardly anything each", self.palette.muted)
            return
        marked = isinstance(row, AnswerRow) and self._marked.issuperset(row.completions)
        yield Segment("▸" if here else " ", self.palette.mark)
        yield Segment(TAKEN if marked else " ", self.palette.strong)
        yield Segment(f"{nats(row.total, self._largest):>7} ", self.ink(row.total))
        yield from self.bar(row.total)
        if isinstance(row, UpdatesRow):
            one = row.update == row.since + 1
            words = f"update {row.update}" if one else f"updates {row.since + 1}–{row.update}"
            yield Segment(f"  {words}", self.palette.strong if here else self.palette.text)
        else:
            yield from self._answer(row, here)

    def _answer(self, row: AnswerRow, here: bool) -> Iterable[Segment]:
        scored = None if self._update is None else self._update.scored
        reward, credit = self._columns
        if reward and scored is not None:
            yield Segment(f"{plain(float(scored.rewards[row.completions[0]])):>7}", self.palette.text)
        if credit:
            yield Segment(f"{signed(row.pull).strip():>7}", self.ink(row.pull))
        copies = f"×{len(row.completions)} " if len(row.completions) > 1 else ""
        yield Segment(f"  {copies}", self.palette.strong)
        used = 10 + 2 * BAR + 1 + 7 * (reward + credit) + 2 + len(copies)
        yield from self._excerpt(row, self.scrollable_content_region.width - used, here)

    @property
    def _columns(self) -> tuple[bool, bool]:
        """Whether there are columns for the reward and for the credit."""
        width, scored = self.scrollable_content_region.width, None if self._update is None else self._update.scored
        return width >= _WIDE and scored is not None and not scored.roles, width >= _MEDIUM

    def _excerpt(self, row: AnswerRow, room: int, here: bool) -> Iterable[Segment]:
        """The answer's text around its strongest token, which has the colour of its share."""
        assert self._update is not None
        sampled = self._update.sampled
        assert sampled is not None
        start, end = sampled.offsets[row.completions[0] : row.completions[0] + 2].tolist()

        def text(token: int) -> str:
            return token_text(sampled.texts[token], sampled.pieces.get(int(sampled.token_ids[token]), ""))

        first, last = row.token, row.token + 1
        left = room - 2 - cell_len(text(row.token))
        while first > start or last < end:
            back = first > start and (last == end or row.token - first <= last - row.token - 1)
            left -= cell_len(text(first - 1 if back else last))
            if left < 0:
                break
            first, last = first - back, last + (not back)
        style = self.palette.text if here else self.palette.muted
        yield Segment(f"{'…' * (first > start)}{''.join(map(text, range(first, row.token)))}", style)
        yield Segment(text(row.token), self.palette.shade(STEPS - 1 if row.share > 0 else 1 - STEPS, True))
        yield Segment(f"{''.join(map(text, range(row.token + 1, last)))}{'…' * (last < end)}", style)

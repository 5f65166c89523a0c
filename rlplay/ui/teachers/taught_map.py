"""The tokens of the teachers' update in the colours of their shares, the prompt of the strongest teachers first."""

from __future__ import annotations

from collections.abc import Sequence

from rlplay.trace.kinds import Kind
from rlplay.trace.lenses import Lens
from rlplay.trace.update import Update
from rlplay.ui.answers.folding import Folding
from rlplay.ui.teachers.teacher_rows import AnswerRow, Row
from rlplay.ui.tokens.colouring import Colouring, lacks
from rlplay.ui.tokens.token_map import TokenMap


class TaughtMap(TokenMap):
    """A map whose cursor begins on the strongest token of the answer that is chosen in the list."""

    def __init__(self) -> None:
        super().__init__(id="taught-tokens")
        self._folding = Folding()
        self._steered = False  # whether the cursor has been put where it begins

    def tell(self, update: Update | None, rows: Sequence[Row], kind: Kind, lens: Lens, signs: bool) -> None:
        """Show an update, whose teachers are `rows`; with `signs` each share as a number."""
        if update is None or update.sampled is None:
            self.show(None, [], Colouring(lens), False)
            return
        listed = self._folding.fold(update, _order(update, rows), kind)
        colours = Colouring(lens, why=lacks(update, lens) if update.shares is not None else "")
        self.show(update, listed, colours, signs, unfolded=self._folding.unfolded, copies=self._folding.copies)

    def begin(self) -> None:
        """Let the cursor be put on the strongest token again."""
        self._steered = False

    def steer(self, update: Update | None, chosen: Row | None, again: bool = True) -> None:
        """Put the cursor on the strongest token of the chosen answer; not `again` if it has been there."""
        if self._steered and not again:
            return
        if isinstance(chosen, AnswerRow) and update is not None and update.sampled is not None:
            completion = self._folding.shown_for(chosen.completions[0])
            start = int(update.sampled.offsets[chosen.completions[0]])
            self.point(completion, chosen.token - start)
        self._steered = True

    def toggle(self) -> None:
        """Unfold the answer under the cursor, or fold it again."""
        self._folding.toggle(self.cursor[0])


def _order(update: Update, rows: Sequence[Row]) -> list[int]:
    """The answers by prompt; the prompt of the strongest teachers first."""
    assert update.sampled is not None
    groups = update.sampled.group.tolist()
    first: dict[int, int] = {}
    for row in rows:
        if isinstance(row, AnswerRow):
            first.setdefault(groups[row.completions[0]], len(first))
    return sorted(range(len(groups)), key=lambda row: (first.get(groups[row], len(groups)), groups[row], row))

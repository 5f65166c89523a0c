"""One answer as a conversation: who says what, turn by turn, in the colours of the tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType

from rlplay.trace.lenses import Lens
from rlplay.trace.records import Sampled
from rlplay.trace.text import visible, visible_lines
from rlplay.trace.turns import turns
from rlplay.trace.update import Update
from rlplay.ui.format.number_cells import plain, signed
from rlplay.ui.format.shortcuts import Shortcut
from rlplay.ui.format.shown_text import token_text
from rlplay.ui.format.wrap import wrap
from rlplay.ui.parts.line_panel import LinePanel
from rlplay.ui.parts.panel_messages import CursorMoved, CursorStepped
from rlplay.ui.tokens.facts import facts_of

_ROLE = 14
"""Cells for the name of who speaks, with the gap behind it."""
_WIDEST = 100
"""Cells of a line of text: longer ones are hard to read."""
_Line = list[Segment]


class Conversation(LinePanel):
    """The answer under the cursor, with the prompt before it and the reward below it."""

    EMPTY = "The turns of an answer stand here, one below the other, once it is written."
    HELP = """\
# Conversation

One answer as a conversation. The prompt comes first, then the turns: what the **model** wrote, which is trained, and
what the environment or a tool wrote between, which is only read. The colours of the model's tokens are those of Tokens.
The reward at the end is for the whole conversation.

`←` and `→` go from token to token, `↑` and `↓` from answer to answer.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "along(-1)", "token before", show=False),
        Binding("right", "along(1)", "next token", show=False),
        Binding("up", "turn(-1)", "answer before", show=False),
        Binding("down", "turn(1)", "next answer", show=False),
    ]
    SHORTCUTS = (Shortcut(("left", "right"), "token"), Shortcut(("up", "down"), "answer"), Shortcut(("i",), "probe"))

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = "Conversation"
        self._lines: list[_Line] = []
        self._shown: tuple[Update | None, tuple[int, int], Lens] | None = None

    def on_resize(self) -> None:
        """Wrap the turns to the new width."""
        super().on_resize()
        if self._shown is not None:
            self.show(*self._shown)

    def count(self) -> int:
        """The number of lines."""
        return len(self._lines)

    def line(self, row: int) -> Iterable[Segment]:
        """One line of a turn."""
        return self._lines[row]

    def action_along(self, step: int) -> None:
        """Go to another token of the answer."""
        self.post_message(CursorStepped(along=step))

    def action_turn(self, step: int) -> None:
        """Go to another answer."""
        update = None if self._shown is None else self._shown[0]
        if self._shown is not None and update is not None:
            self.post_message(CursorMoved(min(max(self._shown[1][0] + step, 0), update.completions - 1), 0))

    def show(self, update: Update | None, cursor: tuple[int, int], lens: Lens) -> None:
        """Show the answer under the cursor, its tokens in the colours of `lens`."""
        before, self._shown, self._lines = self._shown, (update, cursor, lens), []
        sampled = None if update is None else update.sampled
        here = 0
        if update is not None and sampled is not None and cursor[0] < update.completions:
            self.border_title = f"Conversation {cursor[0] + 1} of {update.completions}"
            prompt = sampled.prompts[int(sampled.group[cursor[0]])]
            self._lines = self._turn("prompt", *_words(prompt), [self.palette.muted], -1)
            here = self._turns(update, sampled, cursor, lens)
            self._lines += self._earned(update, cursor[0])
        self.rebuild()
        if before is None or before[1] != cursor:
            self.reveal(0 if cursor[1] == 0 else here)

    def _turns(self, update: Update, sampled: Sampled, cursor: tuple[int, int], lens: Lens) -> int:
        """Add the turns; returns the line with the cursor."""
        begin, end = (int(x) for x in sampled.offsets[cursor[0] : cursor[0] + 2])
        levels, here = facts_of(update).levels(lens), 0
        said = turns(sampled, cursor[0])
        for turn, after in zip(said, [*(each.start for each in said[1:]), end - begin], strict=True):
            tokens = range(begin + turn.start, begin + after)
            texts = [token_text(sampled.texts[t], sampled.pieces.get(int(sampled.token_ids[t]), "")) for t in tokens]
            own = [bool(sampled.mask[t]) for t in tokens]
            styles = [
                self.palette.text + self.palette.shade(int(levels[t]), lens.two_sided) if mine else self.palette.muted
                for t, mine in zip(tokens, own, strict=True)
            ]
            at = cursor[1] - turn.start if cursor[1] in range(turn.start, after) else -1
            top = len(self._lines)
            breaks = [sampled.texts[t].endswith("\n") for t in tokens]
            self._lines += self._turn(turn.role, texts, breaks, styles, at)
            here = top if at >= 0 else here
        return here

    def _turn(self, role: str, texts: list[str], breaks: list[bool], styles: list[Style], at: int) -> list[_Line]:
        """A turn: who speaks, and what; the token `at` has the cursor, −1 for none."""
        width = min(self.scrollable_content_region.width - _ROLE, _WIDEST)
        speaks = self.palette.strong if role.startswith("model") else self.palette.muted
        lines: list[_Line] = []
        for cells in wrap(texts, width, breaks) or [[]]:
            name = "" if lines else role
            lines.append([Segment(f"{name:>{_ROLE - 2}}  ", speaks)])
            for cell in cells:
                style = self.palette.cursor if cell.token == at else styles[min(cell.token, len(styles) - 1)]
                lines[-1].append(Segment(cell.text, style))
        return [*lines, []]

    def _earned(self, update: Update, completion: int) -> list[_Line]:
        if update.scored is None or not len(update.scored.rewards):
            return []
        line = [Segment(f"{'reward':>{_ROLE - 2}}  ", self.palette.muted)]
        line.append(Segment(plain(float(update.scored.rewards[completion])), self.palette.strong))
        means = facts_of(update).means
        if means is not None:
            line.append(Segment(f"  advantage {signed(float(means[completion]))}", self.palette.muted))
        return [line]


def _words(prompt: str) -> tuple[list[str], list[bool]]:
    """A prompt as words, and whether a line ends after each."""
    words, breaks = [], []
    for line in visible_lines(prompt).split("\n"):
        found = [f" {word}" if i else word for i, word in enumerate(visible(line).split(" "))]
        words += found
        breaks += [False] * (len(found) - 1) + [True]
    return words, breaks

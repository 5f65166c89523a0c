"""Answers as conversations: who says what, turn by turn, in the colours of the tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.content import Content

from rlplay.trace.lenses import Lens
from rlplay.trace.records import Sampled
from rlplay.trace.text import visible, visible_lines
from rlplay.trace.turns import turns
from rlplay.trace.update import Update
from rlplay.ui.format.legend import legend
from rlplay.ui.format.number_cells import plain, signed
from rlplay.ui.format.shortcuts import Shortcut
from rlplay.ui.format.shown_text import is_special, token_text, within
from rlplay.ui.format.wrap import wrap
from rlplay.ui.parts.line_panel import CORNERS, LinePanel
from rlplay.ui.parts.panel_messages import CursorMoved, CursorStepped
from rlplay.ui.parts.prompt_lines import columns_in_short
from rlplay.ui.tokens.facts import facts_of

_ROLE = 14
"""Cells for the name of who speaks, with the gap behind it."""
_WIDEST = 100
"""Cells of a line of text: longer ones are hard to read."""
_NOTES = 24
"""Cells of a turn's text, behind which its credit stands if there is room."""
_Line = list[Segment]


class Conversation(LinePanel):
    """The answer under the cursor, with the prompt before it and the reward below it; then the next ones."""

    EMPTY = "The turns of an answer stand here, one below the other, once it is written."
    HELP = """\
# Conversation

The answer under the cursor as a conversation. The prompt comes first, with the columns of its row, then the turns: what
the **model** wrote, which is trained, and what the environment or a tool wrote between, which is only read. The colours
of the model's tokens are those of Tokens, and the scale is below. The reward at the end is for the whole conversation.
Where credit is given turn by turn, the model's turns end with the value **V** of the conversation before them and their
advantage **A**. The next conversations follow while there is room. The marks of the chat template between the turns are
left out.

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
        self._shown: tuple[Update | None, tuple[int, int], Lens, str] | None = None

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

    def show(self, update: Update | None, cursor: tuple[int, int], lens: Lens, speaker: str) -> None:
        """Show the answer under the cursor, its tokens in the colours of `lens`, and below it the next ones.

        `speaker` is what answers the model; "" for the role that the chat template names.
        """
        before, self._shown, self._lines = self._shown, (update, cursor, lens, speaker), []
        sampled = None if update is None else update.sampled
        here, first = 0, cursor[0]
        if update is not None and sampled is not None and first < update.completions:
            self._label(update, first, lens)
            here = self._conversation(update, sampled, cursor, lens, speaker)
            for other in range(first + 1, update.completions):
                if len(self._lines) >= self.scrollable_content_region.height:
                    break
                rule = f"{other + 1} of {update.completions} "
                self._lines += [[], [Segment(f"{rule:─<{self._width + _ROLE}}", self.palette.muted)]]
                self._conversation(update, sampled, (other, -1), lens, speaker)
        self.rebuild()
        if before is None or before[1] != cursor:
            self.reveal(0 if cursor[1] == 0 else here)

    def _label(self, update: Update, completion: int, lens: Lens) -> None:
        """Name the answer and the colours in the border, with their scale."""
        known = facts_of(update).lens(lens.name) is not None
        which, colour = f"Conversation {completion + 1} of {update.completions}", f" · colour: {within(lens.title)}"
        scale = legend(lens, self.palette, known, self.size.width - CORNERS, reached=update.phase)
        self.caption(Content.assemble(which, (colour, "$text-muted")), scale)

    @property
    def _width(self) -> int:
        """Cells of a line of text."""
        return min(self.scrollable_content_region.width - _ROLE, _WIDEST)

    def _conversation(self, update: Update, sampled: Sampled, cursor: tuple[int, int], lens: Lens, speaker: str) -> int:
        """Add the prompt with its columns, the turns and the reward; returns the line with the cursor."""
        group = int(sampled.group[cursor[0]])
        lines = self._turn("prompt", *_words(sampled.prompts[group]), [self.palette.muted], -1)
        columns = [Segment(*part) for part in columns_in_short(sampled.columns[group], self.palette)]
        if columns and Segment.get_line_length([*lines[-1], *columns]) + 3 <= self._width + _ROLE:
            lines[-1] += [Segment("   "), *columns]
        elif columns:
            lines.append([Segment(" " * _ROLE), *columns])
        self._lines += lines
        here = self._turns(update, sampled, cursor, lens, speaker)
        self._lines += self._earned(update, cursor[0])
        return here

    def _turns(self, update: Update, sampled: Sampled, cursor: tuple[int, int], lens: Lens, speaker: str) -> int:
        """Add the turns; returns the line with the cursor."""
        begin, end = (int(x) for x in sampled.offsets[cursor[0] : cursor[0] + 2])
        levels, here = facts_of(update).levels(lens), 0
        said = turns(sampled, cursor[0])
        afters = [*(each.start for each in said[1:]), end - begin]
        credits = _credits(
            update, sampled, [range(begin + t.start, begin + a) for t, a in zip(said, afters, strict=True)]
        )
        for turn, after, credit in zip(said, afters, credits, strict=True):
            tokens = range(begin + turn.start, begin + after)
            pieces = [sampled.pieces.get(int(sampled.token_ids[t]), "") for t in tokens]
            own = [bool(sampled.mask[t]) for t in tokens]
            marks = [is_special(piece) and not mine for piece, mine in zip(pieces, own, strict=True)]
            texts = [
                "" if mark and t - begin != cursor[1] else token_text(sampled.texts[t], piece)
                for t, piece, mark in zip(tokens, pieces, marks, strict=True)
            ]
            styles = [
                self.palette.text + self.palette.shade(int(levels[t]), lens.two_sided) if mine else self.palette.muted
                for t, mine in zip(tokens, own, strict=True)
            ]
            at = cursor[1] - turn.start if cursor[1] in range(turn.start, after) else -1
            top = len(self._lines)
            breaks = [sampled.texts[t].endswith("\n") for t in tokens]
            role = turn.role if own[0] or not speaker else speaker
            self._lines += self._turn(role, texts, breaks, styles, at)
            self._note(credit)
            here = top if at >= 0 else here
        return here

    def _note(self, words: str) -> None:
        """Add words behind the turn that was written last, or below it where there is no room."""
        if not words:
            return
        used = Segment.get_line_length(self._lines[-1])
        gap = max(_ROLE + _NOTES - used, 3)
        if used + gap + len(words) > self._width + _ROLE:
            self._lines.append([])
            gap = _ROLE + _NOTES
        self._lines[-1].append(Segment(" " * gap + words, self.palette.muted))

    def _turn(self, role: str, texts: list[str], breaks: list[bool], styles: list[Style], at: int) -> list[_Line]:
        """A turn: who speaks, and what; the token `at` has the cursor, −1 for none."""
        speaks = self.palette.strong if role.startswith("model") else self.palette.muted
        lines: list[_Line] = []
        for cells in wrap(texts, self._width, breaks) or [[]]:
            name = "" if lines else role
            lines.append([Segment(f"{name:>{_ROLE - 2}}  ", speaks)])
            for cell in cells:
                style = self.palette.cursor if cell.token == at else styles[min(cell.token, len(styles) - 1)]
                lines[-1].append(Segment(cell.text, style))
        return lines

    def _earned(self, update: Update, completion: int) -> list[_Line]:
        if update.scored is None or not len(update.scored.rewards):
            return []
        line = [Segment(f"{'reward':>{_ROLE - 2}}  ", self.palette.muted)]
        line.append(Segment(plain(float(update.scored.rewards[completion])), self.palette.strong))
        means = facts_of(update).means
        if means is not None:
            line.append(Segment(f"  advantage {signed(float(means[completion]))}", self.palette.muted))
        return [line]


def _credits(update: Update, sampled: Sampled, spans: list[range]) -> list[str]:
    """What each turn at `spans` is worth at its beginning and what credit it gets, if credit is given turn by turn."""
    credited, none = update.credited, [""] * len(spans)
    if credited is None or len(credited.advantages) != len(sampled.mask):
        return none
    own = [each for each in spans if len(each) and sampled.mask[each.start] == 1]
    parts = [credited.advantages[each.start : each.stop] for each in own]
    if len({float(part[0]) for part in parts}) < 2 or any((part != part[0]).any() for part in parts):
        return none
    values = credited.values
    said = {
        each: ("" if values is None else f"V {plain(float(values[each.start]))}   ") + f"A {signed(float(part[0]))}"
        for each, part in zip(own, parts, strict=True)
    }
    return [said.get(each, "") for each in spans]


def _words(prompt: str) -> tuple[list[str], list[bool]]:
    """A prompt as words, and whether a line ends after each."""
    words, breaks = [], []
    for line in visible_lines(prompt).split("\n"):
        found = [f" {word}" if i else word for i, word in enumerate(visible(line).split(" "))]
        words += found
        breaks += [False] * (len(found) - 1) + [True]
    return words, breaks

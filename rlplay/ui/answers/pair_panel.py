"""Two answers to one prompt side by side: which is better, and by how much the policy prefers it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import ClassVar

import numpy as np
from rich.cells import set_cell_size
from rich.segment import Segment
from textual.binding import Binding, BindingType

from rlplay.algorithms.settings import Settings
from rlplay.trace.records import Array, Sampled
from rlplay.trace.text import NEWLINE, visible
from rlplay.trace.update import Update
from rlplay.ui.format.bars import stroke
from rlplay.ui.format.number_cells import plain, signed
from rlplay.ui.format.shortcuts import Shortcut
from rlplay.ui.format.shown_text import token_text
from rlplay.ui.format.wrap import wrap
from rlplay.ui.parts.line_panel import LinePanel
from rlplay.ui.parts.panel_messages import CursorMoved
from rlplay.ui.tokens.facts import AnswerFacts, facts_of
from rlplay.ui.words.pair_updates import LEFT_OUT, label

_BETWEEN = " │ "
_NAMES = (("ref", "under the reference"), ("old", "before this update"), ("new", "after this update"))
_NAME, _NUMBER, _GAP = 22, 12, 4
_LEAST_BAR, _WIDEST_BAR = 8, 40
"""Cells of half the bar of a gap; in less room it is left out."""
_Line = list[Segment]


class PairPanel(LinePanel):
    """The pair under the cursor, with the log-probability of both answers."""

    EMPTY = "Two answers to one prompt stand here side by side, once there are some to compare."
    HELP = """\
# Pair

Two answers to the same prompt, and the **label**: which one is better. Below is how likely the policy finds each:
the **log-probability** of the whole answer, the sum over its tokens, in nats. A longer answer often has a smaller one,
so a preference loss does not compare the two numbers themselves. It looks at the **gap**, chosen minus rejected, and
at how far the gap has moved since the reference: the loss pushes it up.

`↑` and `↓` go from pair to pair.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,left", "turn(-1)", "pair before", show=False),
        Binding("down,right", "turn(1)", "next pair", show=False),
    ]
    SHORTCUTS = (Shortcut(("up", "down"), "pair"), Shortcut(("i",), "probe"))

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = "Pair"
        self._lines: list[_Line] = []
        self._begun: int | None = None
        """The update whose first labelled pair was looked for: each update begins there."""
        self._shown: tuple[Update | None, tuple[int, int], Settings] | None = None

    def on_resize(self) -> None:
        """Wrap the answers to the new width."""
        super().on_resize()
        if self._shown is not None:
            self.show(*self._shown)

    def count(self) -> int:
        """The number of lines."""
        return len(self._lines)

    def line(self, row: int) -> Iterable[Segment]:
        """One line of both."""
        return self._lines[row]

    def action_turn(self, step: int) -> None:
        """Put the cursor on the first answer of the next pair."""
        update = None if self._shown is None else self._shown[0]
        if self._shown is None or update is None or update.sampled is None:
            return
        groups = update.sampled.group
        group = min(max(int(groups[self._shown[1][0]]) + step, 0), len(update.sampled.prompts) - 1)
        self.post_message(CursorMoved(int(np.flatnonzero(groups == group)[0]), 0))

    def show(self, update: Update | None, cursor: tuple[int, int], settings: Settings) -> None:
        """Show the answers to the prompt under the cursor, the first two if there are more."""
        self._shown, self._lines = (update, cursor, settings), []
        sampled = None if update is None else update.sampled
        if update is not None and sampled is not None and cursor[0] < update.completions:
            if (first := self._first_labelled(update, cursor[0])) is not None:
                cursor = first, 0
                self.post_message(CursorMoved(*cursor))
            group = int(sampled.group[cursor[0]])
            both = [int(row) for row in np.flatnonzero(sampled.group == group)[:2]]
            self.border_title = f"Pair {group + 1} of {len(sampled.prompts)}"
            self._lines = [
                *self._prompt(sampled.prompts[group]), [],
                *self._beside(update, both, settings), [],
                *self._scores(update, both),
            ]  # fmt: skip
        self.rebuild()

    def _first_labelled(self, update: Update, row: int) -> int | None:
        """Where to begin an update whose answer `row` has no label, once its labels are known; None to stay."""
        roles = [] if update.scored is None else update.scored.roles
        if self._begun == update.number or not roles:
            return None
        self._begun = update.number
        labelled = [at for at, role in enumerate(roles) if role in ("chosen", "rejected")]
        return labelled[0] if labelled and row not in labelled else None

    def _prompt(self, prompt: str) -> list[_Line]:
        words = [f" {word}" if i else word for i, word in enumerate(visible(prompt.replace("\n", NEWLINE)).split(" "))]
        lines = wrap(words, self.scrollable_content_region.width, [False] * len(words))
        return [[Segment("".join(cell.text for cell in line), self.palette.strong)] for line in lines]

    def _beside(self, update: Update, both: list[int], settings: Settings) -> list[_Line]:
        """The labels, and below them the answers."""
        assert update.sampled is not None
        half = max((self.scrollable_content_region.width - len(_BETWEEN)) // 2, 8)
        columns = []
        for row in both:
            named = LEFT_OUT if update.scored is None else label(update.scored, row, settings.kind)
            sign, style = {"chosen": ("▲ ", self.palette.up_text), "rejected": ("▼ ", self.palette.down_text)}.get(
                named, ("", self.palette.muted)
            )
            head = "" if update.scored is None else f"{sign}{named}"
            texts = [(set_cell_size(line, half), self.palette.text) for line in _answer(update.sampled, row, half)]
            columns.append([(set_cell_size(head, half), style), *texts])
        blank = " " * half, self.palette.text
        return [
            [part for i, each in enumerate(cells) for part in
             ([Segment(_BETWEEN, self.palette.faint)] if i else []) + [Segment(*each)]]
            for cells in zip_longest(*columns, fillvalue=blank)
        ]  # fmt: skip

    def _scores(self, update: Update, both: list[int]) -> list[_Line]:
        """The log-probabilities of both under each policy on record, and the gap between them."""
        facts, roles = [facts_of(update).answer(row) for row in both], _roles(update, both)
        ahead, behind = (roles.index("chosen"), roles.index("rejected")) if len(set(roles)) == 2 else (0, 1)
        heads = [*(f"{'AB'[i]} {name}".strip() for i, name in enumerate(roles)), "gap" if len(both) == 2 else ""]
        lines = [[Segment(f"{'log-probability':<{_NAME}}", self.palette.muted)]]
        lines[0] += [Segment(f"{head:>{_NUMBER}}", self.palette.muted) for head in heads]
        known = {name: [_log_probability(each, name) for each in facts] for name, _ in _NAMES}
        known = {name: sums for name, sums in known.items() if all(map(np.isfinite, sums))}
        gaps = {name: sums[ahead] - sums[behind] for name, sums in known.items() if len(sums) == 2}
        room = self.scrollable_content_region.width - _NAME - 3 * _NUMBER - _GAP
        half = min(room // 2, _WIDEST_BAR) if "chosen" in roles else 0
        if gaps and half >= _LEAST_BAR:
            lines[0].append(Segment(f"{'rejected ◂':>{half + _GAP}} ▸ chosen", self.palette.muted))
        for name, words in _NAMES:
            if name not in known:
                continue
            sums = known[name]
            line = [Segment(f"{words:<{_NAME}}", self.palette.text)]
            line += [Segment(f"{plain(value):>{_NUMBER}}", self.palette.text) for value in sums]
            if name in gaps:
                line.append(Segment(f"{signed(gaps[name]):>{_NUMBER}}", self.palette.strong))
                if half >= _LEAST_BAR:
                    line += self._bar(gaps[name] / max(map(abs, gaps.values())), half)
            lines.append(line)
        return lines + self._verdict(gaps, "chosen" in roles)

    def _bar(self, share: float, half: int) -> list[Segment]:
        """A bar to the right for the chosen answer or to the left for the rejected one, `half` cells long for 1."""
        bar = stroke(abs(share), half)
        style = self.palette.up_text if share > 0 else self.palette.down_text
        left = "" if share > 0 else bar.replace("╸", "╺")[::-1]
        return [
            Segment(" " * (_GAP + half - len(left))), Segment(left, style), Segment("│", self.palette.faint),
            Segment(bar if share > 0 else "", style),
        ]  # fmt: skip

    def _verdict(self, gaps: dict[str, float], labelled: bool) -> list[_Line]:
        """How far the gap has moved, in a sentence."""
        latest = gaps.get("new", gaps.get("old"))
        if not labelled or latest is None or "ref" not in gaps:
            return []
        moved = latest - gaps["ref"]
        if abs(moved) < _SLIGHT:
            return [[], [Segment("The gap is where the reference has it: nothing is learned of this pair yet.")]]
        style = self.palette.up_text if moved > 0 else self.palette.down_text
        where = "towards the chosen" if moved > 0 else "towards the rejected"
        return [[], [
            Segment("Since the reference the gap has moved ", self.palette.text),
            Segment(f"{signed(moved)} nats", style), Segment(f" {where} answer.", self.palette.text),
        ]]  # fmt: skip


_SLIGHT = 5e-3
"""A smaller gap is 0 in two decimals."""


def _roles(update: Update, both: list[int]) -> list[str]:
    named = [] if update.scored is None else update.scored.roles
    return [named[row] if named else "" for row in both]


def _answer(sampled: Sampled, row: int, width: int) -> list[str]:
    """An answer in lines of at most `width` cells."""
    tokens = range(*(int(x) for x in sampled.offsets[row : row + 2]))
    texts = [token_text(sampled.texts[t], sampled.pieces.get(int(sampled.token_ids[t]), "")) for t in tokens]
    lines = wrap(texts, width, [sampled.texts[t].endswith("\n") for t in tokens])
    return ["".join(cell.text for cell in line).removeprefix(" ") for line in lines]


def _log_probability(facts: AnswerFacts, name: str) -> float:
    """Of the whole answer, in nats: the sum over the tokens that the policy writes; NaN if it is not on record."""
    values: dict[str, Array | None] = {"ref": facts.ref, "old": facts.sampled.old_logprobs, "new": facts.new}
    found = values[name]
    return float("nan") if found is None else float(np.sum(found[facts.sampled.mask == 1], dtype=np.float64))

"""The numbers of an update's completions, each beside its text: reward, advantage, length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content

from rlplay.trace.answers import measures, per_answer, repeated
from rlplay.trace.kinds import REWARDED, Kind
from rlplay.trace.records import Array, Credited, Sampled, Scored
from rlplay.trace.text import visible, visible_lines
from rlplay.trace.update import Update
from rlplay.ui.answers.answer_order import ARROWS, Sort, sortable
from rlplay.ui.format.bars import distribution
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.number_cells import plain, signed
from rlplay.ui.format.shortcuts import Shortcut
from rlplay.ui.format.shown_text import is_special
from rlplay.ui.parts.line_panel import CORNERS, LinePanel
from rlplay.ui.parts.panel_messages import CursorMoved, Perform
from rlplay.ui.tokens.facts import facts_of
from rlplay.ui.tokens.token_layout import LayoutRow
from rlplay.ui.words.pair_updates import LEFT_OUT, label

PART_WIDTH = 7
_WITH_UNITS = 25
"""Cells of the panel from which on each length has its unit; below, the frame names it."""
PROMPT, NOTHING = -1, -2
_FAINT = "$text-muted not bold"
COLUMNS: dict[Kind, tuple[str, str]] = {
    "rewards": ("reward", "advantage"),
    "learned rewards": ("reward", "advantage"),
    "action values": ("reward", "TD error"),
    "pairs": ("label", "pull"),
    "imitation": ("label", "pull"),
    "reward model": ("label", "score"),
}
"""The headings of the two columns. A label is not a reward: it has no mean and no spread."""


class AnswerList(LinePanel):
    """The left columns of the answers: reward, advantage, length on the line where the text of each begins."""

    AFTER = " "
    EMPTY = ""  # the wider half of the frame has the sentence
    TITLE_VERB = "sort"
    tip = "Every answer, with its reward and advantage, grouped by prompt. Click to sort."
    HELP = """\
# Answers

Every answer of the update, grouped by prompt. Left of its text are its **reward** (the training signal), its
**advantage** A (how much better or worse than expected, mean over its tokens) and its **length** in tokens; `…` marks
answers cut at the maximum length. Q-learning and SARSA have a **TD error** in place of the advantage.

Next to each prompt are the group's mean reward and standard deviation. `= answer 1` marks an answer with the same text
as answer 1 to the same prompt. **all equal** marks a group in which every advantage is 0: its rewards teach nothing.
With a group baseline this happens if all answers of the group earned the same reward; other baselines can learn from
such a group.

The bars in the title count the answers by reward, or by the number that sorts them: equal bins from the smallest to the
largest value, which are beside the bars. Of whole numbers, each bin has equally many; the last may have fewer. A bar's
height is its share of the highest one; any answer at all makes at least ▁.

`o` sorts the answers by a number or a column of the dataset, and the prompts by their first answer. The frame says by
what: ↓ the largest first, ↑ the smallest.

Algorithms that compare or imitate answers use no rewards. Each answer then has a **label** (chosen, rejected, left out
or imitated) and the **pull** of the loss on it, mean over its tokens. While a reward model is trained, the model's
**score** replaces the pull.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", "answer above", show=False),
        Binding("down", "step(1)", "answer below", show=False),
        Binding("home", "jump(0)", "first answer", show=False),
        Binding("end", "jump(-1)", "last answer", show=False),
        Binding("pageup", "step(-8)", "page up", show=False),
        Binding("pagedown", "step(8)", "page down", show=False),
        Binding("enter", "unfold", "unfold the answer, or fold it", show=False),
    ]
    MINIATURE = (
        ("0.12 ± 0.35", "a prompt: mean reward of its answers ± deviation"),
        ("▸ 1.00  +2.47  24", "an answer: reward · advantage · length"),
        ("  0.00  −0.35   8", "worse than the mean, so its tokens are pushed down"),
    )
    SHORTCUTS = (Shortcut(("up", "down"), "answer"), Shortcut(("o",), "sort"), Shortcut(("enter",), "unfold"))

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._sampled: Sampled | None = None  # as of `show`: the update may have changed before drawing
        self._word = "token"  # what the policy samples
        self._scored: Scored | None = None
        self._credited: Credited | None = None
        self._order: list[int] = []
        self._kind: Kind = "rewards"
        self._means: Array | None = None  # the second column
        self._repeated: dict[int, int] = {}
        self._silent: set[int] = set()
        self._rows: list[tuple[int, int]] = []  # group and completion, or PROMPT or NOTHING
        self._row_of: dict[int, int] = {}
        self.cursor = (0, 0)

    def show(
        self, update: Update | None, order: list[int], sort: Sort, token_rows: Sequence[LayoutRow], found: str = "",
        kind: Kind = "rewards",
    ) -> None:  # fmt: skip
        """List `update`'s completions in this `order`, each on the line where `token_rows`, the token map, begins it.

        `found` is the number of matches of a search; `kind` says what the update learns from.
        """
        self._kind = kind
        self._order = order
        self._sampled, self._scored, self._credited = (
            (None, None, None) if update is None else (update.sampled, update.scored, update.credited)
        )
        self._word = "token" if update is None else update.step_word
        compares = kind != "reward model"  # its loss compares two scores and has no gradient per token
        self._means = None if update is None else facts_of(update).means if compares else _outcomes(update)
        self._silent = set() if update is None or not compares else update.once(_without_signal)
        self._repeated = {} if update is None else repeated(update, order)
        self._rows = [] if self._sampled is None else _aligned_rows(token_rows)
        self._row_of = {completion: row for row, (_, completion) in enumerate(self._rows) if completion >= 0}
        named = Content.assemble("Answers", (f" · {found}" if found else "", "bold $foreground"))
        if not found:
            named = Content.assemble("Answers", (_distribution(update, sort, self.outer_size.width - CORNERS), _FAINT))
        columns = COLUMNS[kind]
        below = " · ".join(columns)
        if self.outer_size.width < _WITH_UNITS:
            unit = self._word[:3]
            short = ["A" if column == "advantage" else column for column in columns]
            with_unit = " · ".join([*short, unit])
            below = with_unit if len(with_unit) <= self.outer_size.width - CORNERS else " · ".join(short)
        if sort.name:
            name = dict(zip(("reward", "advantage"), columns, strict=True)).get(sort.name, visible(sort.name))
            known = update is None or sort.name in sortable(update)
            below = f"by {name} {ARROWS[sort.falling]}" if known else f"no {name} here: as sampled"
        self.caption(named, keyed("`esc` all answers") if found else Content(below))
        self.rebuild()

    def point(self, completion: int, token: int) -> None:
        """Put the cursor on a completion, and remember the token."""
        before, self.cursor = self.cursor, (completion, token)
        if before[0] == completion or completion not in self._row_of:
            return
        row = self._row_of[completion]
        self.redraw(*(self._row_of[c] for c in (before[0], completion) if c in self._row_of))
        self.reveal(row - 1 if row and self._rows[row - 1][1] == PROMPT else row, row)

    def clipping(self) -> tuple[str, str]:
        """The text to copy: the answer under the cursor, without its special tokens."""
        sampled = self._sampled
        if sampled is None or not self._order:
            return "", ""
        tokens = range(*(int(x) for x in sampled.offsets[self.cursor[0] : self.cursor[0] + 2]))
        pieces = (sampled.pieces.get(int(sampled.token_ids[token]), "") for token in tokens)
        parts = [sampled.texts[token] for token, piece in zip(tokens, pieces, strict=True) if not is_special(piece)]
        return "the answer", visible_lines("".join(parts))

    def count(self) -> int:
        """The number of lines: prompts and completions."""
        return len(self._rows)

    def line(self, row: int) -> Iterable[Segment]:
        """One line of the list."""
        assert self._sampled is not None
        group, completion = self._rows[row]
        width = self.scrollable_content_region.width
        if completion == PROMPT:
            yield from self._prompt(group)
        elif completion >= 0:
            yield from self._completion(completion, width)

    def _prompt(self, group: int) -> Iterable[Segment]:
        """The group's mean and standard deviation; before there are any, how many answers it has."""
        assert self._sampled is not None
        credited, numbers = self._credited, ""
        count = int((self._sampled.group == group).sum())
        if credited is not None and self._kind in REWARDED and count > 1:
            numbers = f"{plain(float(credited.group_mean[group]))} ± {plain(float(credited.group_std[group]))}"
        if group in self._silent:
            numbers = f"{numbers.partition(' ±')[0]} all equal".strip()
        if not numbers:
            numbers = f"{count} answer{'s' * (count > 1)}"
        yield Segment(numbers, self.palette.text if group in self._silent else self.palette.muted)

    def _completion(self, completion: int, width: int) -> Iterable[Segment]:
        sampled, scored = self._sampled, self._scored
        assert sampled is not None
        here = completion == self.cursor[0]
        base = self.palette.strong if here else self.palette.text
        own = sampled.mask[sampled.offsets[completion] : sampled.offsets[completion + 1]]
        length, unit = (int(own.sum()) if self._word == "move" else len(own)), f" {self._word[:3]}"
        yield Segment("▸ " if here else "  ", self.palette.mark)
        mean = np.nan if self._means is None else float(self._means[completion])
        style = self.palette.muted
        if abs(mean) >= 0.005:
            style = self.palette.up_text if mean > 0 else self.palette.down_text
        if self._kind in REWARDED:
            reward = "" if scored is None else plain(float(scored.rewards[completion]))
            yield Segment(f"{reward:>5}", base)
            yield Segment(f"  {'' if self._means is None else signed(mean):>5}", style)
            used = 14
        else:
            word = "" if scored is None else label(scored, completion, self._kind)
            yield Segment(f"{word:<8}", self.palette.muted if word == LEFT_OUT else base)
            yield Segment(f" {'' if self._means is None else signed(mean):>5}", style)
            used = 16
        if completion in self._repeated:
            yield Segment(_same(self._repeated[completion], width - used), self.palette.muted)
        else:
            cut = sampled.truncated[completion] and sampled.done
            room = width - used - len(unit) - 1
            yield Segment(
                f"{length:>{min(room, 5)}}{unit}" if room >= 4 else f"{length:>{min(width - used - 1, 4)}}",
                self.palette.muted,
            )
            yield Segment("…" if cut else " ", self.palette.text)
        if scored is not None and len(scored.parts) > 1 and width >= 24 + (PART_WIDTH + 6) * len(scored.parts):
            for name, part in scored.parts.items():
                yield Segment(f"  {visible(name)[:6]} {plain(float(part[completion])):>5}", self.palette.muted)

    def _go(self, completion: int) -> None:
        token = self.cursor[1]
        self.point(completion, token)
        self.post_message(CursorMoved(completion, token))

    def action_step(self, step: int) -> None:
        """Move the cursor by `step` completions."""
        if self._order:
            place = self._order.index(self.cursor[0]) if self.cursor[0] in self._row_of else 0
            self._go(self._order[max(0, min(place + step, len(self._order) - 1))])

    def action_jump(self, end: int) -> None:
        """Go to the first or last completion."""
        if self._order:
            self._go(self._order[end])

    def action_unfold(self) -> None:
        """Unfold the answer under the cursor, or fold it again."""
        self.post_message(Perform("unfold"))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the completion under the mouse."""
        offset = event.get_content_offset(self)
        row = -1 if offset is None else offset.y + self.scroll_offset.y
        if 0 <= row < len(self._rows) and self._rows[row][1] >= 0:
            self._go(self._rows[row][1])


def _distribution(update: Update | None, sort: Sort, room: int) -> str:
    """The distribution of the number that sorts the answers, by default of the reward, after the panel's name.

    Labels of pairs are no amounts: without a sort they have none.
    """
    numbers = measures(update)
    name = sort.name if sort.name in numbers else "reward"
    labelled = update is not None and update.scored is not None and bool(update.scored.roles)
    if name not in numbers or (labelled and not sort.name):
        return ""
    for words in (f" · {visible(name)} ", " · "):
        if found := distribution(numbers[name], room - len(f"Answers{words}")):
            return f"{words}{found}"
    return ""


def _aligned_rows(token_rows: Sequence[LayoutRow]) -> list[tuple[int, int]]:
    """Rows aligned with the token map: what begins on each of its lines, or nothing."""
    rows: list[tuple[int, int]] = []
    seen: set[tuple[int, int]] = set()
    for row in token_rows:
        begins = (row.group, row.completion) not in seen and (row.completion >= 0 or bool(row.cells))
        rows.append((row.group, (PROMPT if row.completion < 0 else row.completion) if begins else NOTHING))
        if begins:
            seen.add((row.group, row.completion))
    return rows


def _same(place: int, room: int) -> str:
    """The mark of an answer with the same text as number `place` of its prompt, in words that fit into `room` cells."""
    words = (f" = {name}{place}" for name in ("answer ", "no. ", ""))
    return next((line for line in words if len(line) <= room), "")


def _outcomes(update: Update) -> Array | None:
    """A reward model's score of each answer, at its last token: float [N]; None before it is computed."""
    if update.sampled is None or update.credited is None or update.credited.values is None:
        return None
    return np.asarray(update.credited.values[update.sampled.offsets[1:] - 1])


def _without_signal(update: Update) -> set[int]:
    """The groups of two answers and more in which every advantage is 0."""
    sampled, credited = update.sampled, update.credited
    if sampled is None or credited is None:
        return set()
    pulled = per_answer(sampled, (credited.advantages != 0) & (sampled.mask == 1)) > 0
    several = np.flatnonzero(np.bincount(sampled.group, minlength=len(sampled.prompts)) > 1)
    return set(several.tolist()) - set(sampled.group[pulled].tolist())

"""The token map: every completion as text, every token tinted by one statistic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content

from rlplay.trace.answers import repeated
from rlplay.trace.records import Array, Sampled
from rlplay.trace.text import visible_lines
from rlplay.trace.update import Phase, Update
from rlplay.ui.format.legend import legend
from rlplay.ui.format.shortcuts import Shortcut
from rlplay.ui.format.shown_text import literal, quoted, within
from rlplay.ui.format.step_word import worded
from rlplay.ui.motion import FADE, Motion
from rlplay.ui.parts.line_panel import CORNERS, LinePanel
from rlplay.ui.parts.panel_messages import CursorMoved, Perform, Reflowed
from rlplay.ui.theme.inks import off_scale
from rlplay.ui.tokens.colouring import Colouring
from rlplay.ui.tokens.empty_map import VACANT
from rlplay.ui.tokens.facts import facts_of
from rlplay.ui.tokens.finder import Finder
from rlplay.ui.tokens.largest import describe_ranked
from rlplay.ui.tokens.map_title import title
from rlplay.ui.tokens.ranking import Ranked, ranking
from rlplay.ui.tokens.token_ink import TokenInk
from rlplay.ui.tokens.token_layout import FLIPPED, GUTTER, MORE, Folds, LayoutRow, TokenLayout


class TokenMap(LinePanel):
    """All completions of one update. The cursor is a token; arrows and the mouse move it."""

    BEFORE, EMPTY = " ", VACANT["live"]
    TITLE_VERB = "colours"
    HELP = """\
# Tokens

Every answer of the update, below its dim prompt. The colour of a token shows one statistic, named in the title. The
scale below never changes, so shades are comparable between updates; ≤ or ≥ at an end means that some values lie
beyond it and share its shade. `c` goes to the next statistic; `C`, or a click on the title or the scale, lists them
all with what each means. The bars after the scale count the tokens of each shade, the lowest first; a bar's height is
its share of the highest one, and any token at all makes at least ▁. At first, and after the last one, the panel
chooses the statistic that fits the phase (auto). Before a chosen statistic exists, or if it is the same everywhere,
another one steps in; the title names both. `x` goes to the token with the largest value, then to the next one in order;
`X` begins at the smallest: with Credit, the most blamed token. Equal tokens of one answer count once.

**Without colour:** on a two-sided scale, tokens on the upper side are underlined; with `NO_COLOR` and with 16 colours,
tokens on the lower side are struck through. `m` shows every number. With `NO_COLOR`, matches of `/` are reversed.

▲ and ▼ are clipped tokens: in that optimizer step the surrogate's gradient is exactly zero. Only a KL term or an
entropy bonus in the loss still acts on them directly; other tokens act on them through the shared weights.

`×8` begins a line for 8 answers with the same text, reward and clipping; its colours are those of the first. A mark
after an answer says that one above it has the same text. Each long answer takes one line, which shows the part around
the cursor; ` …` says that there is more. `enter` unfolds the answer. In a conversation, each turn says who wrote it.

Symbols: ⏎ newline · ∎ end of the answer · ◦ only part of a character.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "along(-1)", "token left", show=False),
        Binding("right", "along(1)", "token right", show=False),
        Binding("up", "across(-1)", "line up", show=False),
        Binding("down", "across(1)", "line down", show=False),
        Binding("home", "ends(0)", "first token", show=False),
        Binding("end", "ends(-1)", "last token", show=False),
        Binding("pageup", "leaf(-1)", "page up", show=False),
        Binding("pagedown", "leaf(1)", "page down", show=False),
        Binding("enter", "unfold", "unfold the answer, or fold it", show=False),
    ]
    MINIATURE = (
        ("Omar has 9 eggs and buys …", "a prompt"),
        ("▸ 4*3=12. The answer is 21.▮", "an answer; the cursor is on one of its tokens"),
        ("−0.5 ░▒▓ +0.5   ▂█▁", "each colour is a number; how many have it"),
    )
    SHORTCUTS = (Shortcut(("left", "right", "up", "down"), "token", False), Shortcut(("enter",), "unfold", False))

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._sampled: Sampled | None = None  # as of `show`: the update may have changed before drawing
        self._order: list[int] = []
        self._ink = TokenInk()
        self._fade = Motion(self, FADE, self._fade_on)
        self._reached: tuple[Phase, int] = "sample", 0
        self._clips: Array | None = None
        self._repeated: dict[int, int] = {}
        self._went = 0, "", False, 0  # what `x` has found last: batch, lens, lowest, place
        self._folds = Folds()
        self._signs = False
        self._steps = 0
        self.step_word = "token"  # what the policy samples
        self._previews = False
        self._layout = TokenLayout()
        self.cursor = (0, 0)

    def show(
        self, update: Update | None, order: list[int], colours: Colouring, signs: bool, flipped: Array | None = None,
        version: str = "", finder: Finder | None = None, unfolded: Collection[int] = (),
        copies: Mapping[int, int] | None = None,
    ) -> None:  # fmt: skip
        """Show `update`, completions in this `order`, tinted by `colours`; with `signs` every blank and number.

        In a preview, `flipped` (bool [T]) marks the tokens whose gradient would change sign, and `version` names the
        version shown. The matches of `finder` are highlighted and counted in the border. Long answers are folded,
        except the `unfolded` ones; `copies` says how many equal answers a line stands for.
        """
        sampled = None if update is None else update.sampled
        steps, copies = 0 if update is None else len(update.steps), dict(copies or {})
        unchanged = sampled is self._sampled and (order, signs, steps) == (self._order, self._signs, self._steps)
        unchanged = unchanged and (set(unfolded), copies) == (self._folds.unfolded, self._folds.copies)
        unchanged = unchanged and flipped is None and not self._previews
        lens, self._order, self._signs, self._steps = colours.lens, order, signs, steps
        self._previews = flipped is not None
        self._folds = Folds(copies, set(unfolded), self._seen)
        self._sampled = sampled
        found = None if finder is None or finder.found is None else finder.found.tokens
        before, self._ink = self._ink, TokenInk(found=found)
        self._repeated = {} if update is None else repeated(update, order)
        past, counts = (False, False), list[int]()
        if update is not None and sampled is not None:
            facts = facts_of(update)
            values, shades = facts.lens(lens.name), None
            if values is not None:
                past = off_scale(lens, np.array(facts.spread(lens.name)))
                shades, counts = facts.levels(lens), facts.shades(lens).tolist()
            self._ink = TokenInk(sampled, lens, values, shades, facts.means, found)
            reached = update.phase, steps
            if self._reached != reached and not self._previews and self._ink.fades_from(before):
                self._fade.begin()
                self._ink = replace(self._ink, before=replace(before, before=None), share=self._fade.share)
            elif before.sampled is sampled and before.lens == lens and before.before is not None:
                self._ink = replace(self._ink, before=before.before, share=self._fade.share)
            self._reached = reached
            if not unchanged:
                clips = facts.lens("clip_state")
                self._clips = None if clips is None else np.nan_to_num(clips).astype(np.int8)
                if self._clips is not None and flipped is not None:
                    self._clips = np.where(flipped, FLIPPED, self._clips)
            completion, token = self.cursor
            known = completion < len(sampled.group)
            self.cursor = (completion, min(token, max(self._length(completion) - 1, 0))) if known else (0, 0)
        if unchanged:
            self._layout.turn_all()  # something else may have been found
            self.rebuild()
        else:
            self._lay_out()
        named = self._named(
            update, colours, version, "" if finder is None or finder.query is None else f" · {finder.summary}"
        )
        # Waiting for the first answers, nothing is missing yet.
        shown = self._sampled is not None
        phase, room = "sample" if update is None else update.phase, self.title_room
        available = self._ink.values is not None
        scale = legend(lens, self.palette, available, room, past, phase, counts) if shown else Content()
        self.caption(named, scale)

    def _fade_on(self) -> None:
        """Draw the next frame of a fade; after the last, the tokens look as without motion."""
        share = self._fade.share
        self._ink = replace(self._ink, before=self._ink.before if share < 1 else None, share=share)
        self.rebuild()

    def _named(self, update: Update | None, colours: Colouring, version: str, found: str) -> Content:
        """The title: the colours, and what was `found`; in a preview the `version` shown."""
        head = worded("Tokens", self.step_word)
        if version:
            name = worded(within(colours.lens.title), self.step_word)
            return Content.assemble(head, (f" · {version}", "bold $foreground"), (f" · {name}", "$text-muted"))
        named = title(colours, update, self.title_room - cell_len(found), self.step_word)
        return Content.assemble(head, (found, "bold $foreground"), named[len(head) :])

    def point(self, completion: int, token: int) -> None:
        """Put the cursor on a token and scroll to it."""
        if self.cursor == (completion, token) or self._sampled is None or completion >= len(self._sampled.group):
            return
        token = max(min(token, self._length(completion) - 1), 0)
        before, self.cursor = self.cursor, (completion, token)
        self.redraw(*self._layout.turn(before[0]), *self._layout.turn(completion))
        self.reveal_cursor()

    def reveal_cursor(self) -> None:
        """Scroll to the token under the cursor."""
        row, _ = self._layout.place(*self.cursor)
        self.reveal(self._layout.heading(row), row + int(self._signs))

    def _seen(self, completion: int) -> int:
        """The token that a folded answer shows: under the cursor, found, the newest while it grows, or the first."""
        assert self._sampled is not None
        if not self._sampled.done:
            return self._length(completion) - 1
        if completion == self.cursor[0] and self.cursor[1]:
            return self.cursor[1]
        if self._ink.found is None:
            return 0
        start, end = self._sampled.offsets[completion : completion + 2]
        return int(self._ink.found[start:end].argmax())

    def ranking(self, lowest: bool = False) -> list[Ranked]:
        """The tokens by the value of the colours, the largest first or the `lowest`."""
        ink = self._ink
        if ink.sampled is None or ink.values is None or ink.lens is None:
            return []
        return ranking(ink.sampled, ink.values, ink.lens, self._order, ink.found, lowest)

    def next_ranked(self, lowest: bool = False) -> tuple[Ranked | None, str]:
        """The token that `x` goes to, or `X` for the `lowest`, and a description of it; None if there is none.

        It is the one after the token that the key has found last, if the cursor is still there, else the first.
        """
        ranks, ink = self.ranking(lowest), self._ink
        if not ranks or ink.sampled is None or ink.lens is None:
            return None, ""
        known, lens, direction, at = self._went
        again = (known, lens, direction) == (id(ink.sampled), ink.lens.name, lowest) and at < len(ranks)
        at = (at + 1) % len(ranks) if again and ranks[at][:2] == self.cursor else 0
        self._went = id(ink.sampled), ink.lens.name, lowest, at
        found, counts = ranks[at], [self._folds.copies.get(each, 1) for each in self._order]
        token = int(ink.sampled.offsets[found.completion]) + found.token
        text = ink.sampled.pieces.get(int(ink.sampled.token_ids[token]), ink.sampled.texts[token])
        answer = f"answer {sum(counts[: self._order.index(found.completion)]) + 1} of {sum(counts)}"
        return found, describe_ranked(ink.lens, ranks, at, (literal(quoted(text)), answer), self.step_word, lowest)

    @property
    def tip(self) -> str:
        """What the colour means."""
        lens = self._ink.lens
        name, reading = ("", "") if lens is None else (lens.title, lens.reading)
        return name and worded(f"{name}: {reading} Click to choose another colour.", self.step_word)

    def clipping(self) -> tuple[str, str]:
        """The text to copy: the token under the cursor."""
        sampled = self._sampled
        if sampled is None or not self._length(self.cursor[0]):
            return "", ""
        token = int(sampled.offsets[self.cursor[0]]) + self.cursor[1]
        return worded("the token", self.step_word), visible_lines(
            sampled.pieces.get(int(sampled.token_ids[token]), sampled.texts[token])
        )

    # Layout

    def on_resize(self) -> None:
        """Wrap the lines to the new width; the cursor stays visible."""
        self._lay_out()
        self.reveal_cursor()
        self.post_message(Reflowed())

    @property
    def title_room(self) -> int:
        """Cells for the words in the upper border."""
        return self.outer_size.width - CORNERS

    @property
    def rows(self) -> list[LayoutRow]:
        """The lines of the layout."""
        return self._layout.rows

    def count(self) -> int:
        """The number of lines of all prompts and completions."""
        return len(self._layout.rows)

    def _length(self, completion: int) -> int:
        assert self._sampled is not None
        offsets = self._sampled.offsets
        return int(offsets[completion + 1] - offsets[completion])

    def _lay_out(self) -> None:
        if self._sampled is None:
            self._layout.clear()
        else:
            # Hidden, it has no width, and long lines cost less.
            width = self.scrollable_content_region.width or self.app.size.width
            self._layout.arrange(self._sampled, self._clips, self._order, width, self._signs, self._folds)
        self.rebuild()

    # Drawing

    def line(self, row: int) -> Iterable[Segment]:
        """One line of the map."""
        shown = self._layout.rows[row]
        if shown.completion < 0:
            yield Segment("".join(cell.text for cell in shown.cells), self.palette.muted)
            return
        here = self.cursor[0] == shown.completion
        yield Segment(
            "▸" if here and self._layout.begins(row) else "▎",
            self.palette.mark if here else self._ink.edge(shown.completion, self.palette),
        )
        begins = not shown.cells or shown.cells[0].token == 0
        yield Segment(" " if begins or not shown.folded or shown.values else MORE.strip(), self.palette.muted)
        assert self._sampled is not None
        start = int(self._sampled.offsets[shown.completion])
        ink, heads = self._ink, self._layout.heads(shown.completion)
        shades = ink.levels(start, shown.cells)
        for cell, level in zip(shown.cells, shades, strict=True):
            if shown.values:
                yield ink.number(start + cell.token, cell, level, self.palette)
            else:
                head = heads.get(cell.token, "")
                if head and cell.text.startswith(head):
                    copies = self._folds.head(shown.completion) if not cell.token else ""
                    yield Segment(copies, self.palette.strong)
                    yield Segment(head.removeprefix(copies), self.palette.muted)
                text = cell.text.removeprefix(head)
                if here and self.cursor[1] == cell.token:
                    yield Segment(text, self.palette.cursor)
                else:
                    yield from ink.token(start + cell.token, text, level, self.palette)
        if not shown.cells and not shown.values:
            yield Segment("…", self.palette.faint)
        if shown.folded and not shown.values and shown.cells[-1].token < self._length(shown.completion) - 1:
            yield Segment(MORE, self.palette.muted)
        if shown.completion in self._repeated and self._layout.ends(row):
            words = f"  same text as answer {self._repeated[shown.completion]}"
            used = GUTTER + sum(cell.width for cell in shown.cells)
            if used + len(words) <= self.scrollable_content_region.width:
                yield Segment(words, self.palette.muted)

    # Cursor

    def _move(self, completion: int, token: int) -> None:
        self.point(completion, token)
        self.post_message(CursorMoved(*self.cursor))

    def action_along(self, step: int) -> None:
        """Go to the next token, or past the end to the next completion."""
        if not self._order:
            return
        completion, token = self.cursor
        if 0 <= token + step < self._length(completion):
            self._move(completion, token + step)
            return
        place = self._order.index(completion) + step
        if 0 <= place < len(self._order):
            other = self._order[place]
            self._move(other, 0 if step > 0 else self._length(other) - 1)

    def action_across(self, step: int) -> None:
        """Go to the token above or below."""
        self._jump(step, step)

    def action_ends(self, end: int) -> None:
        """Go to the first or last token of the completion."""
        if self._order:
            self._move(self.cursor[0], 0 if end == 0 else self._length(self.cursor[0]) - 1)

    def action_leaf(self, step: int) -> None:
        """Go a page up or down."""
        self._jump(step * max(self.scrollable_content_region.height - 2, 1), -step)

    def _jump(self, rows: int, step: int) -> None:
        if not self._layout.rows:
            return
        row, column = self._layout.place(*self.cursor)
        target = max(0, min(row + rows, len(self._layout.rows) - 1))
        found = self._layout.next_text(target, column, step)
        if found is not None:
            self._move(*found)

    def action_unfold(self) -> None:
        """Unfold the answer under the cursor, or fold it again."""
        self.post_message(Perform("unfold"))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the token under the mouse."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        row = offset.y + self.scroll_offset.y
        if (found := self._layout.at(row, offset.x)) is not None:
            self._move(*found)
            if self._layout.on_more(row, offset.x):
                self.post_message(Perform("unfold"))

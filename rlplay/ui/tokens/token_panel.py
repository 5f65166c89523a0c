"""Everything known about the token under the cursor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.geometry import Size

from rlplay.algorithms.settings import Settings
from rlplay.trace.kinds import REWARDED, Kind
from rlplay.trace.numbers import number
from rlplay.trace.records import Sampled, Scored
from rlplay.trace.text import visible
from rlplay.trace.update import Update
from rlplay.ui.format.folded import folded
from rlplay.ui.format.number_cells import plain
from rlplay.ui.format.shortcuts import Shortcut
from rlplay.ui.format.shown_text import quoted
from rlplay.ui.format.step_word import numbered, worded
from rlplay.ui.formula.surrogate import why_clipped
from rlplay.ui.motion import SLIDE, Motion
from rlplay.ui.parts.line_panel import LinePanel
from rlplay.ui.parts.panel_messages import Perform
from rlplay.ui.parts.prompt_lines import columns_in_short, prompt_in_full
from rlplay.ui.session.as_it_would_be import WhatIfResult
from rlplay.ui.tokens.candidates import LEAST, MOST, TALL, candidates
from rlplay.ui.tokens.facts import AnswerFacts, facts_of
from rlplay.ui.tokens.reasons import reasons, thought
from rlplay.ui.tokens.token_maths import TokenMaths
from rlplay.ui.words.pair_updates import label
from rlplay.ui.words.samplers import sampled_by


class Inspector(LinePanel):
    """One token, in words and bars; or its formulas with every statistic."""

    EMPTY = "Details of the selected token appear here."
    TITLE_VERB = "help"
    tip = "Everything about the selected token: what else could have come, its loss and its numbers. Click for help."
    HELP = """\
# Token

What the model thought when it wrote this token, and what the update did to it and why. The **bars** are the likeliest
tokens at this place with their probability before the update (old) and after it (new); the token in the answer is
marked. What the update added to a bar has another colour, what it took is shaded. The frozen reference (ref) has a
column where it differs from old, and so have a sampler (smpl) that is not the policy and a teacher (tchr). `enter`
shows the formulas with this token's numbers, and `enter` again the words.

The candidates are recorded before the update. If another token is the likeliest after it, that token is listed too.
Its probability before the update is not on record; it was at most (≤) that of the least likely candidate, and **all
others** includes it there. `i` asks the model about this place, and `H` there shows the candidates' probabilities over
the whole run. `Y` asks who taught it that: which answers moved this token, or the candidate that `↑ ↓` choose.

Where Q-learning or SARSA learns what moves are worth, **Q** replaces the reference: Q(s, ·) as the update began. Old
and new are then the ε-greedy policy that makes the moves. δ below has the values at the moment of this move's own
step, after the steps of earlier moves.

Among the formulas, **loss** is the objective for the settings of this run, then the same with this token's numbers in
one optimizer step: the last one that included the token. **Credit** below is the sum over all steps that included it.
In min(…, …) the bright term is the one that counts.

A token is **clipped** if its ratio has already passed the band in the direction of its advantage: A > 0 and the ratio
above the band, or A < 0 and below it. There min takes the term without the ratio, a constant. Moving the ratio
further would not change the surrogate, so its gradient is zero. A KL term or an entropy bonus in the loss still acts.
∂L/∂ℓ is the recorded derivative of the loss with respect to this token's log-probability: below 0, this gradient pushes
the token up. An exact KL and an entropy bonus act on all candidates; they are not part of this number.

Below are all statistics of this token, the same ones that the colours can show.

Above the formulas are reward and the other **columns** of the prompt's row, such as the right answer; `/` finds answers
by them: `answer=30`. At their end is the **prompt as the model reads it**: with the system message, the roles and the
marks of the chat template.
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "maths", "formulas, or words and bars", show=False),
        Binding("up", "pick(-1)", "candidate above", show=False),
        Binding("down", "pick(1)", "candidate below", show=False),
    ]
    MINIATURE = (
        ('"4"  token 1 of 24', "the token under the cursor"),
        ('▸ "4"  ▇▇▇  .25  .28', "a token that could have come: probability before and after"),
        ("8 answers, 1 right; …", "what pulls the token, in words"),
    )
    SHORTCUTS = (Shortcut(("enter",), "formulas"), Shortcut(("i",), "probe"), Shortcut(("Y",), "why"))

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[list[Segment]] = []
        self._listed: list[int] = []  # the ids of the candidates that have a bar
        self.picked: int | None = None  # the one that a question is about, if not the token itself
        self._word = "token"  # what the policy samples
        self._slide = Motion(self, SLIDE, self._draw)
        self._ended = False  # whether the update shown has ended
        self.live = self._was_live = False  # whether it is the newest, or the last while the newest begins
        self._shown: tuple[Update | None, tuple[int, int], Settings, WhatIfResult | None, bool, bool] | None = None

    def action_maths(self) -> None:
        """Show the formulas, or words and bars again."""
        self.post_message(Perform("maths"))

    def action_pick(self, step: int) -> None:
        """Choose another candidate to ask about; past the ends, and among formulas, scroll."""
        at = self._listed.index(self.picked) + step if self.picked in self._listed else 0 if step > 0 else -1
        if 0 <= at < len(self._listed):
            self.picked = self._listed[at]
            self._draw()
        else:
            self.scroll_relative(y=step, animate=False)

    def on_resize(self) -> None:
        """Wrap the lines to the new width."""
        self._draw()

    def _draw(self) -> None:
        if self._shown is not None:
            self.show(*self._shown)

    def count(self) -> int:
        """The number of lines about the token."""
        return len(self._lines)

    def line(self, row: int) -> Iterable[Segment]:
        """One line about the token."""
        return self._lines[row]

    def clipping(self) -> tuple[str, str]:
        """The text to copy: everything about the token."""
        lines = ("".join(segment.text for segment in line).rstrip() for line in self._lines)
        return worded("all about the token", self._word), "\n".join(lines)

    def show(
        self, update: Update | None, cursor: tuple[int, int], settings: Settings,
        what_if: WhatIfResult | None = None, maths: bool = False, signs: bool = False,
    ) -> None:  # fmt: skip
        """Show the token at `cursor`, if any: in words and bars, or its `maths`; with `signs` its number as well.

        With `what_if`, compare the maths of the update as trained with the preview.
        """
        stayed, self._was_live = self.live and self._was_live, self.live
        before = None if self._shown is None or self._shown[1] != cursor or not stayed else self._shown[0]
        ended = update is not None and update.finished is not None
        if before is None or update is None:
            self._slide.stop()
        elif (ended and not self._ended and before is update) or (ended and update.number == before.number + 1):
            self._slide.begin()  # it has just ended
        elif before is not update:
            self._slide.stop()
        if self._shown is None or (update, cursor) != self._shown[:2]:
            self.picked = None
        self._shown, self._ended = (update, cursor, settings, what_if, maths, signs), ended
        self._word = "token" if update is None else update.step_word
        self._lines, self._listed = [], []
        sampled = None if update is None else update.sampled
        if update is not None and sampled is not None and cursor[0] < update.completions:
            facts = facts_of(update).answer(cursor[0])
            length = len(facts.sampled.token_ids)
            place = cursor[0], min(cursor[1], length - 1)
            if not length:
                pass
            elif not facts.sampled.mask[place[1]]:  # nothing was chosen there, and nothing is trained
                self._lines = [
                    self._which(facts.sampled, place[1], signs or maths),
                    [Segment("written by the environment", self.palette.muted)],
                    [Segment("read by the policy, not trained", self.palette.muted)],
                    *self._answer(update, facts.sampled, place[0], settings),
                ]
            elif maths or what_if is not None:
                self._lines = self._maths(update, facts, place, settings, what_if)
            else:
                self._lines = self._in_words(update, facts, place, settings, signs)
        self.rebuild()

    def _in_words(
        self, update: Update, facts: AnswerFacts, place: tuple[int, int], s: Settings, signs: bool
    ) -> list[list[Segment]]:
        """What the model thought of the token, the chances of others, and why the update moved it."""
        completion, token = place
        width, height = self.scrollable_content_region.size
        numbers = facts.numbers(token, s)
        paragraphs = (thought(facts, token, self._word), reasons(update, completion, facts, token, s, numbers))
        said, why = (folded([(text, self.palette.text)], width, 0) if text else [] for text in paragraphs)
        # Both paragraphs should be in sight with the bars between them.
        room = height - 6 - len(said) - len(why)
        limit = min(max(room // 3 if height >= TALL else room, LEAST), MOST)
        listed = candidates(
            facts, token, self.scrollable_content_region.size, self.palette, limit, self._slide.share, self.picked
        )
        self._listed = listed.ids
        return [
            self._which(facts.sampled, token, signs),
            *said,
            [],
            *listed.lines,
            [],
            *why,
            self._more(s),
            *self._sampler(update, completion),
            *self._columns(facts.sampled),
        ]

    def _more(self, s: Settings) -> list[Segment]:
        """The keys that tell more, as soon as there is more to tell."""
        told = [Segment("⏎", self.palette.strong), Segment(" formulas", self.palette.muted)]
        if self._ended and s.kind not in ("action values", "reward model"):
            told += [Segment("   Y", self.palette.strong), Segment(" who taught it that", self.palette.muted)]
        return told

    def _maths(
        self, update: Update, facts: AnswerFacts, place: tuple[int, int], s: Settings, what_if: WhatIfResult | None
    ) -> list[list[Segment]]:
        """The formulas, the candidates and all numbers of the token, and its prompt as the model reads it."""
        completion, token = place
        size, sampled = self.scrollable_content_region.size, facts.sampled
        numbers, maths = facts.numbers(token, s), TokenMaths(self.palette, size.width, self._word)
        return [
            self._which(sampled, token, True),
            *([Segment(why, self.palette.strong)] for why in why_clipped(s, numbers)[:1]),
            *self._answer(update, sampled, completion, s),
            [],
            *([] if what_if is None else maths.compared(what_if, place)),
            *maths.formulas(s, numbers, facts.steps),
            *candidates(facts, token, Size(size.width, 0), self.palette).lines,
            [],
            *maths.statistics(facts, token, s),
            *prompt_in_full(sampled, int(sampled.group[0]), size.width, self.palette),
        ]

    def _which(self, sampled: Sampled, token: int, signs: bool) -> list[Segment]:
        """What token of its answer this is; `sampled` has that answer alone."""
        known = int(sampled.token_ids[token])
        return [
            Segment(quoted(sampled.pieces.get(known, sampled.texts[token])), self.palette.strong),
            Segment(f"  {numbered(sampled, token, self._word)}", self.palette.muted),
            Segment(f" · id {known}" if known >= 0 and signs else "", self.palette.muted),
        ]

    def _answer(self, update: Update, sampled: Sampled, completion: int, s: Settings) -> list[list[Segment]]:
        """What the token's answer earned, and the columns of its prompt."""
        lines = [] if update.scored is None else self._earned(update.scored, completion, s.kind)
        return lines + self._sampler(update, completion) + self._columns(sampled)

    def _sampler(self, update: Update, completion: int) -> list[list[Segment]]:
        """Whose weights wrote the answer, if that is on record."""
        text = sampled_by(update, completion)
        return folded([(text, self.palette.muted)], self.scrollable_content_region.width) if text else []

    def _columns(self, sampled: Sampled) -> list[list[Segment]]:
        columns = columns_in_short(sampled.columns[int(sampled.group[0])], self.palette)
        return folded(columns, self.scrollable_content_region.width) if columns else []

    def _earned(self, scored: Scored, completion: int, kind: Kind) -> list[list[Segment]]:
        """The answer's reward and its parts, its label if answers get no reward, and what reward functions logged."""
        width = self.scrollable_content_region.width
        extra = [self._logged(name, values[completion], width) for name, values in scored.extra.items()]
        if kind not in REWARDED:
            line = [("label: ", self.palette.muted), (label(scored, completion, kind), self.palette.strong)]
            return [[Segment(*part) for part in line], *extra]
        parts = [
            f"{number(scored.weights.get(name, 1.0))}·{visible(name)} {plain(float(part[completion]))}"
            for name, part in scored.parts.items()
        ]
        reward = plain(float(scored.rewards[completion]))
        line = [("reward ", self.palette.muted), (reward, self.palette.strong)]
        if parts and (len(parts) > 1 or not parts[0].startswith("1·")):
            line.append((" = " + " + ".join(parts), self.palette.muted))
        return [*folded(line, width), *extra]

    def _logged(self, name: str, value: Any, width: int) -> list[Segment]:
        """What a reward function logged for the answer, in one line."""
        text = "–" if value is None else number(value) if isinstance(value, float) else visible(str(value))
        room = width - cell_len(visible(name)) - 1
        if cell_len(text) > room:
            text = set_cell_size(text, max(room - 1, 0)) + "…"
        return [Segment(f"{visible(name)} ", self.palette.muted), Segment(text, self.palette.text)]

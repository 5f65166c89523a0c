"""Everything known about the token under the cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from rlplay.algorithms.settings import Settings
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.trace.kinds import REWARDED, Kind
from rlplay.trace.lenses import LENSES, Lens
from rlplay.trace.numbers import number
from rlplay.trace.records import Sampled, Scored
from rlplay.trace.text import visible
from rlplay.trace.update import Update
from rlplay.ui.format.legend import PHASE_MARKS
from rlplay.ui.format.number_cells import plain, short, signed
from rlplay.ui.format.shortcuts import Shortcut
from rlplay.ui.format.shown_text import quoted
from rlplay.ui.format.step_word import numbered, worded
from rlplay.ui.formula.advantage import credit
from rlplay.ui.formula.formula_lines import Line, TokenNumbers, small_signed
from rlplay.ui.formula.loss import objective
from rlplay.ui.formula.surrogate import why_clipped
from rlplay.ui.parts.line_panel import LinePanel
from rlplay.ui.parts.prompt_lines import columns_in_short, prompt_in_full
from rlplay.ui.session.as_it_would_be import WhatIfResult
from rlplay.ui.tokens.candidates import candidates
from rlplay.ui.tokens.facts import AnswerFacts, Steps, facts_of
from rlplay.ui.tokens.token_layout import MARKS
from rlplay.ui.words.pair_updates import label


class Inspector(LinePanel):
    """One token: the alternatives to it, its gradient from the loss, and every statistic."""

    EMPTY = "Details of the selected token appear here."
    TITLE_VERB = "help"
    tip = "Everything about the selected token: what else could have come, its loss and its numbers. Click for help."
    HELP = """\
# Token

The likeliest **candidates** at this position with their probability under the frozen reference, the policy before the
update (old) and the policy after it (new); the token in the answer is marked. The bar is the newest probability: in
another colour what the update added to it, shaded what the update took. The candidates are recorded before the
update. If another token is the likeliest after it, that token is listed too. Its probability before the update is not
on record; it was at most (≤) that of the least likely candidate, and **all others** includes it there. `i` asks the
model about this place, and `H` there shows the candidates' probabilities over the whole run.

Where Q-learning or SARSA learns what moves are worth, **Q** replaces the reference: Q(s, ·) as the update began. Old
and new are then the ε-greedy policy that makes the moves. δ below has the values at the moment of this move's own
step, after the steps of earlier moves.

**Loss** is the objective's formula for the settings of this run, then the formula with this token's numbers in one
optimizer step: the last one that included the token. **Credit** below is the sum over all steps that included it. In
min(…, …) the bright term is the one that counts.

A token is **clipped** if its ratio has already passed the band in the direction of its advantage: A > 0 and the ratio
above the band, or A < 0 and below it. There min takes the term without the ratio, a constant. Moving the ratio
further would not change the surrogate, so its gradient is zero. A KL term or an entropy bonus in the loss still acts.
∂L/∂ℓ is the recorded derivative of the loss with respect to this token's log-probability: below 0, this gradient pushes
the token up. An exact KL and an entropy bonus act on all candidates; they are not part of this number.

Below are all statistics of this token, the same ones that the colours can show.

Under the reward are the other **columns** of the prompt's row, such as the right answer; `/` finds answers by them:
`answer=30`. At the end is the **prompt as the model reads it**: with the system message, the roles and the marks of the
chat template.
"""

    SHORTCUTS = (Shortcut(("up", "down"), "scroll"), Shortcut(("i",), "probe"))

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[list[Segment]] = []
        self._word = "token"  # what the policy samples
        self._shown: tuple[Update | None, tuple[int, int], Settings, WhatIfResult | None] | None = None

    def on_resize(self) -> None:
        """Wrap the lines to the new width."""
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
        what_if: WhatIfResult | None = None,
    ) -> None:  # fmt: skip
        """Show the token at `cursor`, if any; with `what_if`, compare the update as trained with the preview."""
        self._shown = update, cursor, settings, what_if
        self._word = "token" if update is None else update.step_word
        self._lines = []
        sampled = None if update is None else update.sampled
        if update is not None and sampled is not None and cursor[0] < update.completions:
            facts = facts_of(update).answer(cursor[0])
            length = len(facts.sampled.token_ids)
            token, width = min(cursor[1], length - 1), self.scrollable_content_region.width
            if length:
                numbers = facts.numbers(token, settings.loss_type)
                self._lines = self._head(
                    update, facts.sampled, (cursor[0], token), why_clipped(settings, numbers)[:1], settings.kind
                )
            if length and facts.sampled.mask[token]:  # nothing was chosen at the others, and nothing is trained there
                self._lines += [
                    [],
                    *([] if what_if is None else self._compared(what_if, (cursor[0], token))),
                    *candidates(facts, token, self.scrollable_content_region.size, self.palette),
                    [],
                    *self._formulas(settings, numbers, facts.steps),
                    *self._statistics(facts, token, settings),
                ]
            if length:
                self._lines += prompt_in_full(sampled, int(sampled.group[cursor[0]]), width, self.palette)
        self.rebuild()

    def _head(
        self, update: Update, sampled: Sampled, place: tuple[int, int], clipped: list[str], kind: Kind
    ) -> list[list[Segment]]:
        """What token and which answer of `update` this is; `sampled` has that answer alone."""
        completion, token = place
        piece = sampled.pieces.get(int(sampled.token_ids[token]), sampled.texts[token])
        lines = [
            [
                Segment(quoted(piece), self.palette.key),
                Segment(f"  {numbered(sampled, token, self._word)}", self.palette.muted),
                Segment(f" · id {known}" if (known := int(sampled.token_ids[token])) >= 0 else "", self.palette.muted),
            ]
        ]
        if not sampled.mask[token]:
            lines.append([Segment("written by the environment", self.palette.muted)])
            lines.append([Segment("read by the policy, not trained", self.palette.muted)])
        lines += [[Segment(why, self.palette.warning)] for why in clipped]
        if update.scored is not None:
            lines += self._earned(update.scored, completion, kind)
        if columns := sampled.columns[int(sampled.group[0])]:
            lines += _folded(columns_in_short(columns, self.palette), self.scrollable_content_region.width)
        return lines

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
        return [*_folded(line, width), *extra]

    def _logged(self, name: str, value: Any, width: int) -> list[Segment]:
        """What a reward function logged for the answer, in one line."""
        text = "–" if value is None else number(value) if isinstance(value, float) else visible(str(value))
        room = width - cell_len(visible(name)) - 1
        if cell_len(text) > room:
            text = set_cell_size(text, max(room - 1, 0)) + "…"
        return [Segment(f"{visible(name)} ", self.palette.muted), Segment(text, self.palette.text)]

    def _compared(self, what_if: WhatIfResult, place: tuple[int, int]) -> list[list[Segment]]:
        """The numbers of a token as trained and as changed settings would make them."""
        completion, token = place
        old, new = (AnswerFacts(update, completion).numbers(token) for update in (what_if.before, what_if.after))
        lines = [[Segment(f"{'':<10}{'as trained':>12}{'would be':>12}", self.palette.muted)]]
        for name, field, written in _COMPARED:
            was, will = (getattr(numbers, field) for numbers in (old, new))
            if was is None and will is None:
                continue
            style = self.palette.key if was != will else self.palette.text
            was, will = ("–" if value is None else written(value) for value in (was, will))
            lines.append([Segment(f"{name:<10}{was:>12}", self.palette.text), Segment(f"{will:>12}", style)])
        return [*lines, []]

    def _formulas(self, s: Settings, numbers: TokenNumbers, seen: Steps | None) -> list[list[Segment]]:
        if not s.axes_known:
            return [[Segment("its algorithm is not on record", self.palette.muted)], []]
        lines = []
        if s.loss_type == "policy_gradient":
            lines = [
                [Segment(f"credit of this {self._word}", self.palette.muted)],
                *self._written(credit(s, numbers)),
                [],
            ]
        head = f"loss of this {self._word}" if seen is None else f"its loss before {_of(seen)}"
        head = "value of this move" if s.loss_type in VALUE_LOSSES else head
        lines.append([Segment(head, self.palette.muted)])
        return [*lines, *self._written(objective(s, numbers)), []]

    def _written(self, formula: Iterable[Line]) -> list[list[Segment]]:
        """The formulas, wrapped to the width of the panel."""
        styles = {"plain": self.palette.text, "won": self.palette.key}
        lines = []
        for line in formula:
            parts = [(worded(text, self._word), styles.get(kind, self.palette.muted)) for text, kind in line]
            lines += _folded(parts, self.scrollable_content_region.width)
        return lines

    def _statistics(self, facts: AnswerFacts, token: int, settings: Settings) -> list[list[Segment]]:
        lines = []
        for lens in (lens.of(settings) for lens in LENSES.values()):
            value = facts.value(lens.name, token)
            if value is None and lens.name == "values" and facts.update.credited is not None:
                continue
            name = worded(lens.title if value is None else _named(lens, facts.steps), self._word)
            if value is None:
                # After the update is finished, a missing value stays missing.
                mark = PHASE_MARKS[lens.phase] if facts.update.finished is None else "–"
                light = mark == "–" and settings.observe == "light" and lens.name in NEEDS_A_PASS
                lines.append([Segment(f"{name:<22}{mark:>3}{' observe=light' * light}", self.palette.muted)])
                continue
            is_signed = lens.two_sided and lens.low < 0
            text = signed(value, 3) if is_signed else plain(value, 3)
            if lens.name == "clip_state":
                text = _clip(value)
            style = self.palette.text
            if is_signed and short(value, True).strip("+−.0"):
                style = self.palette.up_text if value > 0 else self.palette.down_text
            unit = f" {lens.unit}"
            room = self.scrollable_content_region.width - 29 >= len(unit)
            lines.append(
                [
                    Segment(name, self.palette.muted),
                    Segment(text.rjust(max(29 - len(name), len(text) + 1)), style),
                    Segment(unit if room else "", self.palette.muted),
                ]
            )
        return lines


def _clip(state: float) -> str:
    return MARKS.get(int(state), "no")


NEEDS_A_PASS = ("prob_delta", "ref_kl", "log_ratio")
"""Statistics that observe=light leaves out, unless the training needs the pass anyway."""
_COMPARED: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("return G", "returned", signed),
    ("baseline", "baseline", signed),
    ("A", "advantage", signed),
    ("w", "ratio", lambda value: number(value, 4)),
    ("clip", "clip_state", _clip),
    ("KL", "kl", lambda value: plain(value, 4)),
    ("weight", "weight", number),
    ("∂L/∂ℓ", "dloss_dlogp", small_signed),
)
"""The numbers that a preview compares: name, field, and format."""


def _of(seen: Steps) -> str:
    return f"step {seen.last} of {seen.planned}"


def _named(lens: Lens, seen: Steps | None) -> str:
    """The statistic's title, with its optimizer steps if there are several."""
    if seen is None or lens.phase != "update":
        return lens.title
    return f"{lens.title}, {f'sum of {seen.times} steps' if lens.name == 'credit' and seen.times > 1 else _of(seen)}"


def _folded(parts: list[tuple[str, Style]], width: int) -> list[list[Segment]]:
    """The parts wrapped to `width` cells, at blanks only; continuation lines are indented."""
    words: list[list[Segment]] = [[]]
    for text, style in parts:
        first, *others = text.split(" ")
        words[-1].append(Segment(first, style))
        words += [[Segment(f" {other}", style)] for other in others]
    lines: list[list[Segment]] = [[]]
    used = 0
    for word in words:
        cells = sum(segment.cell_length for segment in word)
        if used + cells > width and used:
            lines.append([Segment("  "), Segment(word[0].text.lstrip(" "), word[0].style), *word[1:]])
            used = 1 + cells
        else:
            lines[-1] += word
            used += cells
    return lines

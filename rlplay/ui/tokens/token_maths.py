"""A token in formulas: its advantage, its loss and every statistic, with the numbers of this update."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.segment import Segment

from rlplay.algorithms.settings import Settings
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.trace.lenses import LENSES, Lens
from rlplay.trace.numbers import number
from rlplay.ui.format.folded import folded
from rlplay.ui.format.legend import PHASE_MARKS
from rlplay.ui.format.number_cells import plain, short, signed
from rlplay.ui.format.step_word import worded
from rlplay.ui.formula.advantage import credit
from rlplay.ui.formula.formula_lines import Line, TokenNumbers, small_signed
from rlplay.ui.formula.loss import objective
from rlplay.ui.session.as_it_would_be import WhatIfResult
from rlplay.ui.theme.inks import Palette
from rlplay.ui.tokens.facts import AnswerFacts, Steps
from rlplay.ui.tokens.token_layout import MARKS


class TokenMaths:
    """Writes formulas and numbers in lines of `width` cells; `word` names what the policy samples."""

    def __init__(self, palette: Palette, width: int, word: str) -> None:
        self.palette, self._width, self._word = palette, width, word

    def compared(self, what_if: WhatIfResult, place: tuple[int, int]) -> list[list[Segment]]:
        """The numbers of a token as trained and as changed settings would make them."""
        completion, token = place
        old, new = (AnswerFacts(update, completion).numbers(token) for update in (what_if.before, what_if.after))
        lines = [[Segment(f"{'':<10}{'as trained':>12}{'would be':>12}", self.palette.muted)]]
        for name, field, written in _COMPARED:
            was, will = (getattr(numbers, field) for numbers in (old, new))
            if was is None and will is None:
                continue
            style = self.palette.strong if was != will else self.palette.text
            was, will = ("–" if value is None else written(value) for value in (was, will))
            lines.append([Segment(f"{name:<10}{was:>12}", self.palette.text), Segment(f"{will:>12}", style)])
        return [*lines, []]

    def formulas(self, s: Settings, numbers: TokenNumbers, seen: Steps | None) -> list[list[Segment]]:
        """The advantage and the loss: in symbols, then with the token's numbers."""
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
        styles = {"plain": self.palette.text, "won": self.palette.strong}
        lines = []
        for line in formula:
            parts = [(worded(text, self._word), styles.get(kind, self.palette.muted)) for text, kind in line]
            lines += folded(parts, self._width)
        return lines

    def statistics(self, facts: AnswerFacts, token: int, settings: Settings) -> list[list[Segment]]:
        """A line for each statistic that the colours can show."""
        lines = []
        for lens in (lens.of(settings) for lens in LENSES.values()):
            value = facts.value(lens.name, token)
            if value is None and (lens.special or (lens.name == "values" and facts.update.credited is not None)):
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
            room = self._width - 29 >= len(unit)
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

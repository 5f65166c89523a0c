"""The difference between the formulas of two settings, term by term: − before, + after."""

from __future__ import annotations

from rlplay.algorithms.equations import difference, equation
from rlplay.algorithms.settings import Settings
from rlplay.ui.formula.formula_lines import Line


def differing(before: Settings, after: Settings) -> list[Line]:
    """Two lines for each changed term, one for each added or removed term; none if the formulas are equal."""
    lines: list[Line] = []
    for left, old, new in difference(before, after):
        lines += [[(f"− {equation(left, old)}", "old")]] if old is not None else []
        lines += [[(f"+ {equation(left, new)}", "new")]] if new is not None else []
    return lines

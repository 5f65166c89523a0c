"""How the formulas of two settings differ, term by term: − as it is, + as it would be."""

from __future__ import annotations

from rlplay.algorithms.equations import difference, equation
from rlplay.algorithms.settings import Settings
from rlplay.ui.formula.parts import Line


def differing(before: Settings, after: Settings) -> list[Line]:
    """Two lines for each term that changes, one for each that comes or goes; none where the formulas are the same."""
    lines: list[Line] = []
    for left, old, new in difference(before, after):
        lines += [[(f"− {equation(left, old)}", "old")]] if old is not None else []
        lines += [[(f"+ {equation(left, new)}", "new")]] if new is not None else []
    return lines

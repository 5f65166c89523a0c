"""The derivation of a token's advantage: stream, return, baseline and scale, with the token's numbers."""

from __future__ import annotations

from rlplay.algorithms.equations import terms
from rlplay.algorithms.own_choices import is_own
from rlplay.algorithms.scales import SCALES
from rlplay.algorithms.settings import Settings
from rlplay.ui.format.number_cells import plain
from rlplay.ui.formula.formula_lines import Line, TokenNumbers, absent, bracketed, note, stripped

_NOTHING = 1e-6
"""A smaller advantage counts as 0; its divisor cannot be computed from it."""


def credit(s: Settings, numbers: TokenNumbers) -> list[Line]:
    """The equations from reward to advantage, each with its value for this token, as far as known."""
    equations = terms(s)
    if "A" not in equations:
        return [note("rewards do not count: the policy learns from its teacher alone")]
    filled = {"r": numbers.reward, "G": numbers.returned, "b": numbers.baseline}
    lines = [_equation(left, equations[left], filled[left]) for left in filled if equations.get(left, "0") != "0"]
    # The built-in equations define σ and μ after a comma; the line with the numbers shows their values instead.
    mixed = s.distils and not s.distils_in_loss
    shown = equations["A"] if mixed or is_own(s.scale_rewards) else equations["A"].partition(",")[0]
    lines.append([(f"A = {shown}", "plain")])
    if numbers.advantage is None:
        return [*lines, absent(numbers, "credit")]
    return [*lines, _advantage(s, numbers, numbers.advantage)]


def _equation(left: str, right: str, value: float | None) -> Line:
    line: Line = [(f"{left} = {right}", "plain")]
    if value is None:
        return line
    return [*line, (": here " if left == "r" else ": ", "note"), (stripped(value), "won")]


def _advantage(s: Settings, numbers: TokenNumbers, advantage: float) -> Line:
    """ "= (1.00 − 0.38)/0.52 = +1.19": the divisor is the quotient of the recorded numbers."""
    value: Line = [(stripped(advantage), "won")]
    if numbers.withheld:
        return [("= ", "plain"), *value, (": its credit is taken away", "note")]
    if numbers.returned is None:
        return [("= ", "plain"), *value]
    if is_own(s.scale_rewards) or s.distils:
        return [("= ", "plain"), *value]
    baseline = numbers.baseline or 0.0
    gap, written = numbers.returned - baseline, f"{plain(numbers.returned)} − {bracketed(baseline)}"
    scale = SCALES[s.scale_rewards]
    if scale.name == "none":
        return [(f"= {written} = ", "plain"), *value]
    if scale.shifts:
        return [(f"= ({written} − μ)/{scale.divisor} = ", "plain"), *value]
    divided = plain(gap / advantage) if abs(advantage) > _NOTHING else scale.divisor
    return [(f"= ({written})/{divided} = ", "plain"), *value]

"""The loss of one token: its surrogate, its KL term, their weight in the sum, and their gradient."""

from __future__ import annotations

import msgspec

from rlplay.algorithms.corrections import factor
from rlplay.algorithms.equations import correction, equation, in_loss, inside, terms
from rlplay.algorithms.settings import Settings, row
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.trace.numbers import compact, number
from rlplay.trace.records import LEFT_OUT
from rlplay.ui.format.number_cells import plain
from rlplay.ui.formula import surrogate
from rlplay.ui.formula.action_value import action_value
from rlplay.ui.formula.formula_lines import Line, TokenNumbers, bracketed, digits, note, small_signed, stripped
from rlplay.ui.formula.pair_terms import pair_equations


def objective(s: Settings, numbers: TokenNumbers) -> list[Line]:
    """The loss of one token: each equation in symbols, then with its numbers, as far as known."""
    if s.loss_type in VALUE_LOSSES:
        return action_value(s, numbers)
    lines = pair_equations(s, numbers) if s.loss_type != "policy_gradient" else _of_rewards(s, numbers)
    return lines + _gradient(s, numbers)


def _of_rewards(s: Settings, numbers: TokenNumbers) -> list[Line]:
    equations = terms(s)
    lines = [_ratio(s, equations["w"], numbers)] if "w" in equations else []
    if "S" in equations:
        lines.append([(f"S = {equations['S']}", "plain")])
        lines += surrogate.filled(s, numbers)
        if right := _factor(s, numbers):
            lines += _correction(s, right, numbers)
    if "D" in equations:
        lines.append(_divergence("D", equations["D"], numbers.distillation))
    if in_loss(s):
        lines.append(_divergence("K", equations["K"], numbers.kl))
    lines += _weighted(s, numbers)
    return lines + [note(equation(left, equations[left])) for left in ("counts", "limit") if left in equations]


def _ratio(s: Settings, right: str, numbers: TokenNumbers) -> Line:
    line: Line = [(f"w = {right}", "plain")]
    if numbers.ratio is None or numbers.log_ratio is None:
        return line
    return [*line, (" = ", "plain"), (plain(numbers.ratio, digits(s)), "won")]


def _divergence(left: str, right: str, value: float | None) -> Line:
    line: Line = [(f"{left} = {right}", "plain")]
    joint = "; here " if "," in right else " = "
    return line if value is None else [*line, (joint, "plain"), (plain(value, 3), "won")]


def _correction(s: Settings, right: str, numbers: TokenNumbers) -> list[Line]:
    """c, the factor that corrects for a sampler that is not quite the policy, and its number on a line of its own if
    the equation ends with a definition."""
    line: Line = [(f"c = {right}", "plain")]
    if numbers.correction is None:
        itself = s.axes_known and numbers.dloss_dlogp is not None
        return [[*line, (" = 1: the policy itself has sampled", "note")]] if itself else [line]
    value: Line = [("= ", "plain"), (plain(numbers.correction, 3), "won")]
    if ", ρ = " not in right:
        return [[*line, (" ", "plain"), *value]]
    if right.endswith("ρ = exp(ℓ_old − ℓ_sampler)") and numbers.sampler_ratio is not None:
        value += [(", ρ = ", "plain"), (plain(numbers.sampler_ratio, 3), "won")]
    return [line, value]


def _factor(s: Settings, numbers: TokenNumbers) -> str:
    """The equation of c, by the settings or by what a recording says of it; "" without one."""
    rule = numbers.correction_rule
    own = correction(s)
    return own if own or rule is None else factor(rule.level, rule.outside, rule.low, rule.high) or "as recorded"


def _weighted(s: Settings, numbers: TokenNumbers) -> list[Line]:
    """The token's contribution to L, and why it is zero if its surrogate was left out."""
    inner, filled, total = "S", "", surrogate.value(s, numbers)
    multiplied = bool(_factor(s, numbers)) and not s.surrogate_row.takes_correction
    beta = s.beta if numbers.beta is None else numbers.beta
    if total is not None:
        filled = bracketed(total)
        if multiplied and numbers.correction is not None:
            filled, total = f"{plain(numbers.correction, 3)}·{filled}", numbers.correction * total
        if numbers.left_out:
            filled, total = "0", 0.0
    if multiplied:
        inner = "c·S"
    inner, filled, total = _with_teacher(s, numbers, inner, filled, total)
    if in_loss(s):
        inner = inside(s, compact(beta, 3), "c·S" if multiplied else "S")
        if total is not None and numbers.kl is not None:
            filled = f"({stripped(total) if total else '0'} + {compact(beta, 3)}·{bracketed(numbers.kl, 3)})"
            total += beta * numbers.kl
    lines = [note(f"S is left out of the loss: {LEFT_OUT[numbers.left_out]}")] if numbers.left_out else []
    counts = row(s, "aggregation").weight.format(longest=s.max_completion_length)
    lines.append([(f"adds {counts}·{inner} to L", "plain")])
    if total is not None and numbers.weight is not None:
        weighted = small_signed(numbers.weight * total)
        lines.append([(f"= {number(numbers.weight)}·{filled} = ", "plain"), (weighted, "won")])
    return lines


def _with_teacher(
    s: Settings, numbers: TokenNumbers, inner: str, filled: str, total: float | None
) -> tuple[str, str, float | None]:
    """The same with the teacher's term, where the loss has one: in symbols, with numbers, and what it comes to."""
    if not s.distils_in_loss:
        return inner, filled, total
    inner = inside(msgspec.structs.replace(s, beta=0.0), "", inner)
    value, share = numbers.distillation, s.distillation_weight
    if value is None or (total is None and not s.only_distils):
        return inner, "", None
    if s.only_distils:
        return inner, bracketed(value, 3), value
    assert total is not None
    filled = f"({compact(1 - share)}·{filled} + {compact(share)}·{bracketed(value, 3)})"
    return inner, filled, (1 - share) * total + share * value


def _gradient(s: Settings, numbers: TokenNumbers) -> list[Line]:
    """The recorded gradient of the token, which may differ from what the terms above suggest."""
    derivative, of_kl = numbers.dloss_dlogp, numbers.dkl_dlogp
    if derivative is None:
        return []
    effect = "leaves it alone" if derivative == 0 else "pulls it up" if derivative < 0 else "pushes it down"
    lines: list[Line] = [[(f"∂L/∂ℓ = {small_signed(derivative)}: {effect}", "plain")]]
    if of_kl is not None and s.kl_estimator == "full":
        lines.append(note("The exact KL also acts on all candidates."))
    elif of_kl is not None:
        lines.append(note(f"of this {small_signed(derivative - of_kl)} from S, {small_signed(of_kl)} from K"))
    if s.distils_in_loss and s.mode_row.whole:
        lines.append(note("The teacher's term also acts on all candidates; ∂L/∂ℓ is of the other terms."))
    if s.entropy_in_loss:
        lines.append(note("The entropy bonus also acts on all candidates."))
    return lines

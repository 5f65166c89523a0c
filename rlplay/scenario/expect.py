"""Whether a claim holds, and its numbers in words."""

from __future__ import annotations

import re

import msgspec

from rlplay.scenario.claim import TOLERANCE, Bounds, Expect
from rlplay.scenario.measure import Asked, Measured, Series, Unasked, measure, nobody
from rlplay.trace.numbers import compact, real_minus
from rlplay.trace.update import Update


class ClaimResult(msgspec.Struct, frozen=True):
    """The result of a claim. `passed` is None if the script did not reach it, or the engine was not asked; `value` is
    None if there is no number.

    `found` completes the sentence that `text` begins: the numbers, or why there are none.
    """

    text: str
    passed: bool | None
    value: float | None
    found: str

    @property
    def finding(self) -> str:
        """The whole sentence."""
        return f"{self.text}: {self.found}"


def check(expect: Expect, history: Series, update: Update | None, asked: Asked = nobody) -> ClaimResult:
    """Whether the records, and what the engine answered, support the claim; one that cannot be measured fails."""
    try:
        measured = measure(expect.quantity, history, update, asked)
    except Unasked as error:
        return ClaimResult(expect.text, None, None, error.args[0])
    except LookupError as error:
        return ClaimResult(expect.text, False, None, f"{error.args[0]}, so there is nothing to compare")
    passed = expect.bounds.hold(measured.value)
    return ClaimResult(expect.text, passed, measured.value, _found(expect, measured, passed))


def not_reached(expect: Expect) -> ClaimResult:
    """The outcome of a claim that the script did not reach."""
    return ClaimResult(expect.text, None, None, "not reached")


def _found(expect: Expect, measured: Measured, passed: bool) -> str:
    """The numbers that complete the claim's text."""
    unit = f" {measured.unit}" * bool(measured.unit)
    remarks = []
    if measured.base is not None:
        remarks.append(_change(measured, expect.bounds))
    # The numbers themselves show a rise or a fall.
    unnamed = [bound for _, bound in expect.bounds.given if not _names(expect.text, bound)]
    if not passed or any(bound != 0 or measured.base is None for bound in unnamed):
        remarks.append(f"expected {_expected(measured, expect.bounds)}")
    since = "" if measured.base is None else f"{_written(measured.base)} → "
    return f"{since}{_written(measured.now)}{unit}" + (f" ({', '.join(remarks)})" if remarks else "")


def _change(measured: Measured, bounds: Bounds) -> str:
    if measured.is_ratio:
        return f"{_written(measured.value)}×"
    same = measured.value == 0 or (bounds.equals == 0 and abs(measured.value) <= TOLERANCE)
    return "no change" if same else _signed(measured.value)


def _expected(measured: Measured, bounds: Bounds) -> str:
    written = _signed if measured.base is not None and not measured.is_ratio else _written
    return " and ".join(f"{sign} {written(bound)}{'×' * measured.is_ratio}" for sign, bound in bounds.given)


def _names(text: str, bound: float) -> bool:
    """Whether a claim's text contains the number."""
    return re.search(rf"(?<![\d.]){re.escape(compact(abs(bound)))}(?!\d|\.\d)", text) is not None


def _written(value: float) -> str:
    return real_minus(f"{value:,.0f}" if abs(value) >= 1000 else compact(value, 3))


def _signed(value: float) -> str:
    return f"+{_written(value)}" if value > 0 else _written(value)

"""How numbers are written in sentences: short, with a real minus."""

from __future__ import annotations

import re

NOISE = 1e-9


def number(value: float, digits: int = 3, noise: float = NOISE) -> str:
    """At most `digits` significant digits, as short as possible: 0.0131, 25, 4e-5, −1.5; "≈0" below `noise`.

    From a thousand to a million, a whole number: 12,864.
    """
    if value == 0:
        return "0"
    if abs(value) < noise:
        return "≈0"
    if 1e3 <= abs(value) < 1e6:
        return f"{value:,.0f}".replace("-", "−")
    return real_minus(compact(value, digits))


def real_minus(text: str) -> str:
    """The text of a number with a real minus as its sign; an exponent keeps the hyphen that programs read."""
    return "−" + text[1:] if text.startswith("-") else text


def compact(value: float, digits: int = 6) -> str:
    """At most `digits` significant digits, as Python reads them: 0.0004, 4e-5, -1.5, 1e10."""
    return short_exponent(f"{value:.{digits}g}")


def short_exponent(text: str) -> str:
    """The text of a number without the sign and zero that Python adds to an exponent: 4e-5 for 4e-05."""
    return re.sub(r"e([+-])0?", lambda match: "e" + match[1].strip("+"), text)


def percent(share: float | None) -> str:
    """A share of 1 as a percentage with one decimal, "1.1 %"; a dash if unknown.

    Shares above 0 and below 1 are never rounded to 0 or 100 %: "<0.1 %", ">99.9 %".
    """
    if share is None:
        return "–"
    if 0 < share < 0.0005:
        return "<0.1 %"
    text = f"{100 * share:.1f}"
    return ">99.9 %" if 0.9995 <= share < 1 else f"{'0.0' if text == '-0.0' else real_minus(text)} %"


def byte_size(size: int) -> str:
    """A number of bytes in decimal units, as disks are sold: "64.2 MB"."""
    if size < 1000:
        return f"{size} B"
    value, units = size / 1000, iter(("kB", "MB", "GB", "TB"))
    unit = next(units)
    while value >= 999.5 and unit != "TB":
        value, unit = value / 1000, next(units)
    return f"{value:.3g} {unit}"

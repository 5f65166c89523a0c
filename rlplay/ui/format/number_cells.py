"""Number formats of the screen: fixed width, signs where they matter, a real minus."""

from __future__ import annotations

import math


def signed(value: float, digits: int = 2) -> str:
    """With its sign, "+0.93" or "−1.08"; "·" if not finite. Zero gets a blank instead of a sign."""
    if not math.isfinite(value):
        return "·"
    text = f"{value:+.{digits}f}"
    if float(text) == 0:
        return f" {abs(float(text)):.{digits}f}"
    return text.replace("-", "−")


def plain(value: float, digits: int = 2) -> str:
    """Without a plus sign: "0.93"; "·" if not finite."""
    if not math.isfinite(value):
        return "·"
    text = f"{value:.{digits}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", "−")


def short(value: float, diverging: bool, end: float = 1.0) -> str:
    """At most five cells: ".41", "1.39", "+.93", "−1.1", "+14"; empty if not finite.

    Where the scale's `end` is below .1, three decimals, "+.004"; below .005, one digit, "+4e-4".
    """
    if not math.isfinite(value):
        return ""
    if end < 0.005 and 0 < abs(value) < 0.005:
        text = f"{value:+.0e}".replace("e-0", "e-")
        return f"−{text[1:]}" if value < 0 else text
    digits = 3 if end < 0.1 and abs(value) < 0.995 else 2 if abs(value) < 0.995 else 1 if abs(value) < 99 else 0
    text = signed(value, digits).strip() if diverging else plain(value, digits)
    return bare(text)


def bare(text: str) -> str:
    """A number without the 0 before its point: "−0.41" is "−.41"; "10.41" stays."""
    return text.replace("0.", ".", 1) if text.lstrip("+−").startswith("0.") else text


def tenths(seconds: float) -> str:
    """A duration: "0.4 s", "31 s", "4 min 05 s"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"

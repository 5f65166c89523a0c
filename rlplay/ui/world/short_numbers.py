"""Numbers for the squares of a map: short, and never cut."""

from __future__ import annotations

from rlplay.ui.plot.probability_lines import share_text


def share(value: float) -> str:
    """A probability: .31, 1.00."""
    return share_text(value).strip()


def short(value: float, signed: bool = False) -> str:
    """Two decimals without the leading zero: .98, +.90, −.01, 1."""
    text = f"{abs(value):.2f}" if abs(value) < 10 else f"{abs(value):.0f}"
    text = text.removesuffix(".00") if text != "0.00" else "0"
    sign = "−" if value < 0 and text != "0" else "+" if signed and text != "0" else ""
    return sign + (text[1:] if text.startswith("0.") else text)


def shortest(value: float) -> tuple[str, str]:
    """Forms for the narrowest squares: without a plus sign, and with one decimal."""
    rough = f"{abs(value):.1f}".removesuffix(".0")
    sign = "−" if value < 0 and rough != "0" else ""
    return short(value), sign + (rough[1:] if rough.startswith("0.") else rough)

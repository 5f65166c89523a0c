"""The scale of a lens in a few cells: end values, shades, unit."""

from __future__ import annotations

from rich.style import Style
from textual.content import Content
from textual.style import Style as ContentStyle

from rlplay.trace.lenses import Lens
from rlplay.ui.theme import STEPS, Palette

PHASE_MARKS = {"sample": "①", "score": "②", "credit": "③", "update": "④", "after": "↻"}


def legend(lens: Lens, palette: Palette, available: bool) -> Content:
    """The colour scale from low to high, or when the statistic will be there."""
    if not available:
        return Content.assemble((f"comes with {PHASE_MARKS[lens.phase]} {lens.phase}", "$text-muted"))
    shades = range(-STEPS if lens.scale == "diverging" else 0, STEPS + 1)
    parts: list[Content | tuple[str, str | ContentStyle]] = [(f"{_end(lens, lens.low)} ", "$text-muted")]
    parts += [_swatch(palette.shade(level, lens.scale == "diverging")) for level in shades]
    parts.append((f" {_end(lens, lens.high)} {lens.unit}".rstrip(), "$text-muted"))
    return Content.assemble(*parts)


def _end(lens: Lens, value: float) -> str:
    if lens.scale == "diverging" and lens.low < 0:
        return f"{value:+g}".replace("-", "−")
    return f"{value:g}"


def _swatch(style: Style) -> tuple[str, ContentStyle]:
    """Two cells of a shade; where it is no colour, letters."""
    if style.bgcolor:
        return "  ", ContentStyle.from_rich_style(Style(bgcolor=style.bgcolor))
    return ("ab", ContentStyle.from_rich_style(style)) if style else ("  ", ContentStyle())

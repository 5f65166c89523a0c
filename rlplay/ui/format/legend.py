"""The scale of a lens in a few cells: end values, shades, unit."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from textual.content import Content
from textual.style import Style as ContentStyle

from rlplay.trace.lenses import Lens
from rlplay.trace.numbers import compact, real_minus
from rlplay.trace.update import PHASES, Phase
from rlplay.ui.format.bars import heights
from rlplay.ui.format.number_cells import short
from rlplay.ui.theme.inks import STEPS, Palette

_LETTERS = {"diverging": "less more", "sequential": " more"}
"""A letter for each shade, for a screen without colours."""
LOOKED_AT = "◉"
"""Marks the older update on the screen: in the header, in the timeline, under the curves."""
MARKED = "◧"
"""Marks the first of two updates to compare, in the timeline."""
EVENT_MARKS = {"changed": "◆", "back": "↶", "on": "↷"}
"""The sign of an event, by the kind of its `Mark`: in the timeline and under the curves."""
PHASE_MARKS = {"sample": "①", "score": "②", "credit": "③", "update": "④", "after": "↻"}


def coming(lens: Lens, reached: Phase) -> str:
    """Why a statistic has no values in an update that has `reached` a phase."""
    return later(lens.phase, reached) or "has no values in this update"


def later(phase: Phase, reached: Phase) -> str:
    """When the numbers of a phase appear in an update that has `reached` another; empty if it has ended."""
    return f"shown {_WHEN[phase]}" if PHASES.index(reached) < PHASES.index(phase) else ""


_WHEN: dict[Phase, str] = {
    "sample": "once answers are sampled", "score": "once answers are scored", "credit": "once credit is given",
    "update": "once the update begins", "after": "after the update",
}  # fmt: skip


def legend(
    lens: Lens, palette: Palette, available: bool, room: int = 80, beyond: tuple[bool, bool] = (False, False),
    reached: Phase = "sample", counts: Sequence[int] = (),
) -> Content:  # fmt: skip
    """The colour scale from low to high, with its unit if there is `room`; or when the statistic will have values.

    `reached` is the phase of the update. ≤ at the lower end and ≥ at the upper end mark values `beyond` the scale.
    `counts` are the numbers of tokens of each shade; they follow as bars if there is room.
    """
    if not available:
        return Content.styled(coming(lens, reached), "$text-muted")
    if lens.scale == "states":
        return _states(palette)
    shades = range(-STEPS if lens.two_sided else 0, STEPS + 1)
    low, high = "≤" * beyond[0] + _end(lens, lens.low), "≥" * beyond[1] + _end(lens, lens.high)
    parts: list[Content | tuple[str, str | ContentStyle]] = [(f"{low} ", "$text-muted")]
    swatches = [palette.shade(level, lens.two_sided) for level in shades]
    letters = _LETTERS[lens.scale] if swatches[-1].bgcolor is None else [""] * len(swatches)
    drawn = [_swatch(*each) for each in zip(swatches, letters, strict=True)]
    scale = Content.assemble(*parts, *drawn, (f" {high}", "$text-muted"))
    if lens.finest and not any(letters):  # where shades are no equal parts, their edges are written between them
        edges = [f" {short(lens.at(level / STEPS), False).rstrip('0')} " for level in range(1, STEPS)]
        between = [part for edge, swatch in zip(["", *edges], drawn[1:], strict=True)
                   for part in ((edge, "$text-muted"), swatch)]  # fmt: skip
        fine = Content.assemble(*parts, drawn[0], *between, (f" {high}", "$text-muted"))
        scale = fine if fine.cell_length + len(lens.unit) + 1 <= room else scale
    for more in (f" {lens.unit}".rstrip(), f" · {heights(counts)}" if any(counts) else ""):
        scale = Content.assemble(scale, (more, "$text-muted")) if scale.cell_length + len(more) <= room else scale
    return scale


def _states(palette: Palette) -> Content:
    """The three states of clipping, in the style of their tokens."""
    low, high = (ContentStyle.from_rich_style(palette.shade(level, True)) for level in (-STEPS, STEPS))
    return Content.assemble(
        (" ▼ ", low), (" low   not clipped   ", "$text-muted"), (" ▲ ", high), (" high", "$text-muted")
    )  # fmt: skip


def _end(lens: Lens, value: float) -> str:
    return f"{'+' * (lens.low < 0 < value)}{real_minus(compact(value))}"


def _swatch(style: Style, letter: str) -> tuple[str, ContentStyle]:
    """Two cells of a shade, or the `letter` on a screen without colours."""
    return letter or "  ", ContentStyle.from_rich_style(style if letter else Style(bgcolor=style.bgcolor))

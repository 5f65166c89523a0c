"""How the tokens of one update are drawn: their shade, their number, and the bar beside their answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from rich.segment import Segment
from rich.style import Style

from rlplay.trace.lenses import Lens
from rlplay.trace.records import Array, Sampled
from rlplay.ui.format.number_cells import short
from rlplay.ui.format.wrap import TokenPiece
from rlplay.ui.theme.inks import Palette, blended


@dataclass(frozen=True)
class TokenInk:
    """What decides the style of each of T tokens of N answers; None where nothing is known yet."""

    sampled: Sampled | None = None
    lens: Lens | None = None
    values: Array | None = None
    """The numbers of the lens, float32 [T]."""
    shades: Array | None = None
    """The shade of each token, int8 [T]."""
    means: Array | None = None
    """The mean advantage of each answer, float64 [N]."""
    found: Array | None = None
    """Which tokens a search has found, bool [T]."""
    before: TokenInk | None = None
    """How the same tokens looked before, while they fade from there; `share` is how far they are."""
    share: float = 1.0

    def fades_from(self, before: TokenInk) -> bool:
        """Whether these are the tokens of `before` in other shades."""
        if before.sampled is not self.sampled or before.shades is None or self.shades is None:
            return False
        return before.lens != self.lens or not np.array_equal(before.shades, self.shades)

    def levels(self, start: int, cells: list[TokenPiece]) -> list[int]:
        """The shades of the tokens of a line, whose answer begins at `start`."""
        if self.shades is None or not cells:
            return [0] * len(cells)
        first = cells[0].token
        found = self.shades[start + first : start + cells[-1].token + 1].tolist()
        return [found[cell.token - first] for cell in cells]

    def edge(self, completion: int, palette: Palette) -> Style:
        """The style of the bar at the left of an answer: by its mean advantage."""
        if self.means is None:
            return palette.faint
        mean = self.means[completion]
        if not np.isfinite(mean) or abs(mean) < 1e-3:
            return palette.faint
        return palette.up_text if mean > 0 else palette.down_text

    def token(self, token: int, text: str, level: int, palette: Palette) -> Iterable[Segment]:
        """A token's text in its shade."""
        style = self._style(token, level, palette)
        if self.before is not None and self.before.shades is not None:
            old = self.before._style(token, int(self.before.shades[token]), palette)
            style = blended(old, style, self.share, palette)
        drawn = text.lstrip(" ") if style.underline or style.strike else text
        if len(drawn) < len(text) and drawn:
            # Underlined or struck-through blanks would join words into one long line.
            yield Segment(" " * (len(text) - len(drawn)), style.background_style)
        yield Segment(drawn or text, style)

    def number(self, token: int, cell: TokenPiece, level: int, palette: Palette) -> Segment:
        """A token's value, below its text."""
        if self.values is None or self.lens is None:
            return Segment(" " * cell.width)
        text = short(float(self.values[token]), self.lens.two_sided and self.lens.low < 0, self.lens.high)
        style = palette.muted
        if self.lens.two_sided and level:
            style = palette.up_text if level > 0 else palette.down_text
        return Segment(text.ljust(cell.width)[: cell.width], style)

    def _style(self, token: int, level: int, palette: Palette) -> Style:
        assert self.sampled is not None
        if not self.sampled.mask[token] or (self.found is not None and not self.found[token]):
            return palette.muted
        style = palette.text
        if self.values is not None and self.lens is not None:
            style = palette.shade(level, self.lens.two_sided) or style
        return style if self.found is None else style + palette.found

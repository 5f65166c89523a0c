"""The tokens whose embeddings are most like that of the token under the cursor, before and after an update."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style

from rlplay.trace.questions import NeighboursFound
from rlplay.ui.format.bars import BARS, stroke
from rlplay.ui.format.number_cells import signed
from rlplay.ui.format.shown_text import quoted
from rlplay.ui.parts.made_panel import MadePanel
from rlplay.ui.session.answer_at import AnswerAt
from rlplay.ui.weights.layers_panel import context
from rlplay.ui.weights.words import updates

_NAME, _WIDEST = 16, 32
ABOUT = "The cosine of two embeddings: 1: the same direction, 0: nothing in common."


class NeighboursPanel(MadePanel):
    """A bar for each neighbour, the nearest first; the digits in the order of their values."""

    def __init__(self) -> None:
        super().__init__()
        self.found: NeighboursFound | None = None
        self.place: AnswerAt | None = None

    def tell(self, found: NeighboursFound | None, place: AnswerAt | None, words: str) -> None:
        """Show what is known of a token, or why nothing is."""
        self.found, self.place, self.words = found, place, words
        self.show()

    def made(self) -> Iterator[list[Segment]]:
        """The text up to the token, how far it turned, its neighbours and the digits."""
        found, place, muted = self.found, self.place, self.palette.muted
        if found is None or place is None or not found.ids:
            return
        yield from context(place, self.width, muted, self.palette.cursor)
        yield from self.sentence(_turned(found), self.palette.text)
        yield from self.sentence(ABOUT, muted)
        yield []
        digits = list(self._digits(found))
        bar = max(min(self.width - _NAME - 18, _WIDEST), 8)
        token = quoted(found.pieces.get(found.token_id, ""))
        yield [Segment(f"{set_cell_size(f'nearest to {token}', _NAME + bar)}    now    moved", muted)]
        room = max(self.height - 7 - len(digits), 4)
        for near, old, new in list(zip(found.ids, found.before, found.after, strict=True))[:room]:
            yield [
                Segment(set_cell_size(quoted(found.pieces.get(near, "")), _NAME), self.palette.text),
                Segment(drawn := stroke(max(new, 0.0), bar), self.palette.text),
                Segment("━" * (bar - len(drawn)), self.palette.faint),
                Segment(f"  {_short(new):>5}", self.palette.text),
                Segment(f"  {_short(new - old, 4):>7}", muted),
            ]  # fmt: skip
        yield from digits

    def _digits(self, found: NeighboursFound) -> Iterator[list[Segment]]:
        """Of a digit, its cosine with each of the others, and whether the distance in value tells it."""
        piece = found.pieces.get(found.token_id, "").strip()
        if len(found.digits) != 10 or not (piece.isascii() and piece.isdigit() and len(piece) == 1):
            return
        own, muted, plain = int(piece), self.palette.muted, self.palette.text
        width = max(min((self.width - 2) // 10, 8), 5)
        cosines = dict(enumerate(found.digits))
        del cosines[own]

        def row(texts: dict[int, str], style: Style, other: str = "") -> list[Segment]:
            return [Segment(texts.get(digit, other).center(width), style) for digit in range(10)]

        yield []
        yield [Segment("the digits in the order of their values", muted)]
        for above in (1, 0):
            yield row({digit: _block(cosine, above) for digit, cosine in cosines.items()}, plain)
        yield row({digit: str(digit) for digit in cosines}, plain, f"[{own}]")
        yield row({digit: _short(cosine) for digit, cosine in cosines.items()}, muted)
        distances = [abs(digit - own) for digit in cosines]
        if len({*cosines.values()}) > 1:
            correlation = float(np.corrcoef(list(cosines.values()), distances)[0, 1])
            yield [Segment(f"correlation of cosine and distance in value: {_short(correlation)}", plain)]


def _short(value: float, digits: int = 2) -> str:
    return signed(value, digits).replace("0.", ".", 1)


def _block(value: float, above: int) -> str:
    """Three cells of a bar of two lines."""
    eighths = max(0, min(8, round(16 * max(value, 0.0)) - 8 * above))
    return BARS[eighths] * 3


def _turned(found: NeighboursFound) -> str:
    if not found.trained:
        return "The embedding is frozen: this run trains other weights."
    degrees = math.degrees(math.acos(max(-1.0, min(found.turned, 1.0))))
    token = quoted(found.pieces.get(found.token_id, ""))
    return f"{updates(found.since, found.update)} turned the embedding of {token} by {degrees:.2g}°."

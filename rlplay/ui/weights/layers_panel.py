"""The logit lens: what the model would say after each layer, before and after an update."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from rlplay.trace.moved_weights import LayerReading
from rlplay.trace.questions import LayersRead
from rlplay.trace.text import visible
from rlplay.ui.format.bars import stroke
from rlplay.ui.format.shown_text import quoted, token_text
from rlplay.ui.parts.made_panel import MadePanel
from rlplay.ui.plot.probability_lines import share_text
from rlplay.ui.session.answer_at import AnswerAt
from rlplay.ui.theme.inks import STEPS
from rlplay.ui.weights.words import updates

_TITLE = 11
_CHIP, _WIDEST = 14, 20
"""Cells of a candidate with its probability, at least and at most."""
CANDIDATES = 5
_WRITTEN = 11
"""Cells of the written token's bar and probability."""
_BAR = 6
ABOUT = "Read after each layer: its vector goes straight to the final norm and the head (the logit lens)."


class LayersPanel(MadePanel):
    """A line for each layer: the written token's probability, and the likeliest tokens, before and after."""

    def __init__(self) -> None:
        super().__init__()
        self.read: LayersRead | None = None
        self.place: AnswerAt | None = None

    def tell(self, read: LayersRead | None, place: AnswerAt | None, words: str) -> None:
        """Show what is known of a token, or why nothing is."""
        self.read, self.place, self.words = read, place, words
        self.show()

    def made(self) -> Iterator[list[Segment]]:
        """The text up to the token, then the layers."""
        read, place = self.read, self.place
        if read is None or place is None or not read.after:
            return
        written = quoted(read.pieces.get(read.token_id, ""))
        yield from context(place, self.width, self.palette.muted, self.palette.cursor)
        yield from self.sentence(_outcome(read, written), self.palette.text)
        yield from self.sentence(ABOUT, self.palette.muted)
        yield []
        room = (self.width - _TITLE - 2) // 2 - _WRITTEN
        chips = max(min(room // _CHIP, CANDIDATES), 1)
        self._chip = max(min(room // chips, _WIDEST), _CHIP)
        half = _WRITTEN + chips * self._chip
        since = "before the update" if read.update == read.since + 1 else f"before update {read.since + 1}"
        heads = f"{since:<{half + 2}}after"
        yield [Segment(" " * _TITLE), Segment(heads, self.palette.muted)]
        name = set_cell_size(written, _WRITTEN - 1) + " "
        yield [Segment(" " * _TITLE), *(Segment(words, self.palette.muted) for words in (
            name, set_cell_size("likeliest", half - _WRITTEN + 2), name, "likeliest"))]  # fmt: skip
        count = len(read.after)
        tall = 2 if self.height >= 2 * count + 8 else 1
        for layer, (old, new) in enumerate(zip(read.before, read.after, strict=True)):
            title = "embedding" if layer == 0 else f"layer {layer}"
            last = layer == count - 1
            yield [
                Segment(set_cell_size(title, _TITLE), self.palette.strong if last else self.palette.text),
                *self._side(old, chips, read), Segment("  "), *self._side(new, chips, read),
            ]  # fmt: skip
            yield from ([] for _ in range(tall - 1))

    def _side(self, reading: LayerReading, chips: int, read: LayersRead) -> Iterator[Segment]:
        bar = stroke(reading.written, _BAR).ljust(_BAR)
        yield Segment(f"{bar}{share_text(reading.written)} ", self.palette.text)
        for at in range(chips):
            if at >= len(reading.top_ids):
                yield Segment(" " * self._chip)
                continue
            token, chance = reading.top_ids[at], reading.top[at]
            text = set_cell_size(quoted(read.pieces.get(token, "")), self._chip - 7)
            yield Segment(f" {text} {share_text(chance)}", self._shade(chance, token == read.token_id))
            yield Segment(" ")

    def _shade(self, chance: float, written: bool) -> Style:
        level = math.ceil(STEPS * chance - 1e-6) if chance >= 0.02 else 0
        style = self.palette.amount[level] if level else self.palette.muted
        return style + Style(bold=True) if written else style


def _outcome(read: LayersRead, written: str) -> str:
    """What the update did to the written token, and from which layer on it is the likeliest."""
    old, new = read.before[-1].written, read.after[-1].written
    change = f"{updates(read.since, read.update)} took {written} from {_precise(old)} to {_precise(new)}"
    ranks = [reading.rank for reading in read.after]
    if ranks[-1] != 1:
        return f"{change}; it is number {ranks[-1]} of all tokens after the last layer."
    first = next(at for at in range(len(ranks)) if all(rank == 1 for rank in ranks[at:]))
    place = "the embedding" if first == 0 else f"layer {first}"
    return f"{change}; it is the likeliest token from {place} on."


def _precise(chance: float) -> str:
    return f"{chance:.3f}".lstrip("0") if 0.0005 <= chance < 0.9995 else "<.001" if chance < 0.5 else ">.999"


def context(place: AnswerAt, width: int, style: Style, cursor: Style) -> Iterator[list[Segment]]:
    """One line: the prompt's end, the answer up to the token, and the token."""
    token = token_text(place.texts[place.token], place.pieces.get(place.ids[place.token], ""), spaces=True)
    token = set_cell_size(token, min(cell_len(token), width // 3))
    room = max(width - cell_len(token) - 1, 0)
    before = visible(f"{place.prompt} ⏎ {''.join(place.texts[: place.token])}")
    if cell_len(before) > room:
        while cell_len(before) > room - 1 and before:
            before = before[1:]
        before = f"…{before}"
    yield [Segment(before, style), Segment(token, cursor)]

"""The legend of the belief river in one line: names and probabilities as they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

from rlplay.trace.text import visible
from rlplay.ui.plot.view import VALUE


@dataclass(frozen=True)
class LegendBand:
    """A band: its swatch and ink, its name and probability; `nameless` if its name is not in the plot."""

    swatch: str
    ink: str
    name: str
    value: str
    nameless: bool

    def written(self, with_value: bool, first: bool) -> Content:
        """The entry, with its probability or without."""
        value = ("", "") if not with_value else (f" {self.value}", VALUE if first else "")
        return Content.assemble((f"{self.swatch} ", self.ink), visible(self.name), value)


def legend(entries: Sequence[LegendBand], room: int) -> Content:
    """All `entries` if they fit in `room` cells (0: any number); else the nameless bands, and then what else fits.

    What comes first in `entries` gets its probability first.
    """
    whole = _line(entries, dict.fromkeys(range(len(entries)), True), " · ")
    if not room or whole.cell_length <= room:
        return whole
    chosen = {at: False for at, entry in enumerate(entries) if entry.nameless}
    for at in range(len(entries)):
        more = chosen | {at: True}
        if _line(entries, more).cell_length <= room:
            chosen = more
    return _line(entries, chosen)


def _line(entries: Sequence[LegendBand], chosen: dict[int, bool], between: str = " ") -> Content:
    """The `chosen` entries, with their probabilities where it says so."""
    return Content(between).join(entries[at].written(chosen[at], at == 0) for at in sorted(chosen))

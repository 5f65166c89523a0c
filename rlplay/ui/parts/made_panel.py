"""A panel whose lines are made together, whenever what it shows has changed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from rich.segment import Segment
from rich.style import Style

from rlplay.ui.parts.line_panel import LinePanel


class MadePanel(LinePanel):
    """Base of the panels with few lines, each of which depends on the others."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[list[Segment]] = []

    def count(self) -> int:
        """The number of lines."""
        return len(self._lines)

    def line(self, row: int) -> Iterable[Segment]:
        """One line."""
        return self._lines[row]

    def on_resize(self) -> None:
        """Make the lines for the new size."""
        self.show()

    def recolour(self) -> None:
        """Make the lines again, because they contain styles."""
        self._lines = list(self.made())
        super().recolour()

    def show(self) -> None:
        """Make the lines for the current state."""
        self._lines = list(self.made())
        self.rebuild()

    def sentence(self, words: str, style: Style) -> Iterator[list[Segment]]:
        """Words on as many lines as they need."""
        yield from ([Segment(line, style)] for line in textwrap.wrap(words, max(self.width, 12)))

    def made(self) -> Iterator[list[Segment]]:
        """The lines of the panel."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """Cells of a line."""
        return self.scrollable_content_region.width

    @property
    def height(self) -> int:
        """Lines in sight."""
        return self.scrollable_content_region.height

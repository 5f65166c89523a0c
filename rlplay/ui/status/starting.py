"""What is in the place of the panels while the engine starts: what the run is about, and how far the engine is."""

from __future__ import annotations

import textwrap
import time

from textual.content import Content
from textual.widget import Widget

from rlplay.trace.text import visible
from rlplay.ui.format.keyed import QUIET, STRONG
from rlplay.ui.session.session import Session
from rlplay.ui.session.source import Source

_WIDEST = 84
_PROGRESS = 24
_LOOKS = 0.5
"""Seconds between two looks at the clock."""


class Starting(Widget):
    """Title, question, summary, the size of an update, and the engine's progress with its seconds."""

    DEFAULT_CSS = "Starting { display: none; height: 1fr; content-align: center middle; }"

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source
        self._began = time.monotonic()
        self._what, self._fraction = "", 0.0

    def on_mount(self) -> None:
        self._clock = self.set_interval(_LOOKS, self.refresh)

    def show(self, session: Session) -> None:
        """Show what the engine does; once it is there, stop the clock."""
        if session.loading is not None:
            self._what, self._fraction = session.loading.what, session.loading.fraction
            self.refresh()
        elif self.is_attached:
            self._clock.stop()

    def render(self) -> Content:
        width = max(min(self.size.width - 4, _WIDEST), 1)
        texts = [
            (self._source.title, STRONG),
            (self._source.question, ""),
            *((text, QUIET) for text in self._source.about),
        ]
        parts = [Content.styled(_block(text, width), style) for text, style in texts if text]
        filled = round(self._fraction * _PROGRESS)
        said = f"  {visible(self._what)} · {time.monotonic() - self._began:.0f} s"
        bar = Content.assemble(("━" * filled, STRONG), ("─" * (_PROGRESS - filled), "$border"), (said, QUIET))
        return Content("\n\n").join([*parts, bar.pad_right(max(width - bar.cell_length, 0))])


def _block(text: str, width: int) -> str:
    """Wrapped to lines of the same width, so that what is centred keeps its left edge."""
    return "\n".join(f"{line:{width}}" for line in textwrap.wrap(visible(text), width))

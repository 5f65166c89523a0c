"""Curve panels that stand elsewhere than in the row: in the column beside the token, or alone with most of the room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from textual import events, on
from textual.app import ComposeResult
from textual.widget import Widget

from rlplay.ui.curves.curve_panel import CurvePanel

_LINES = 12
"""Of each panel in the column, with its frame; a single one may have fewer."""


class Owner(Protocol):
    """Whom the panels belong to."""

    def hear(self, event: CurvePanel.Altered | CurvePanel.Moved, /) -> None: ...
    def rearrange(self) -> None: ...


class Elsewhere(Widget):
    """Some panels of `curves`, one below the other, as many as have room; `curves` hears what happens in them."""

    DEFAULT_CSS = "Elsewhere { layout: vertical; CurvePanel.-beyond { display: none; } }"

    def __init__(self, curves: Owner, panels: Sequence[CurvePanel], id: str) -> None:
        super().__init__(id=id)
        self._curves, self._panels = curves, panels
        for panel in panels:
            panel.add_class("-beyond")

    def compose(self) -> ComposeResult:
        yield from self._panels

    @on(CurvePanel.Moved)
    @on(CurvePanel.Altered)
    def _tell(self, event: CurvePanel.Moved | CurvePanel.Altered) -> None:
        self._curves.hear(event)

    @on(events.Resize)
    @on(events.Show)
    @on(events.Hide)
    def _fit(self) -> None:
        room = max(self.region.height // _LINES, min(self.region.height, 1))
        for place, panel in enumerate(self._panels):
            panel.set_class(place >= room, "-beyond")
        self._curves.rearrange()

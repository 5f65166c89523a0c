"""Motion with a cause: what has changed slides or fades once, in a few frames, to how it looks without motion.

Nothing moves where the user has reduced motion (`TEXTUAL_ANIMATIONS`, or the palette), and nothing on a screen without
a terminal, unless a test lets it.
"""

from __future__ import annotations

from collections.abc import Callable

from textual.timer import Timer
from textual.widget import Widget

FRAME = 0.08
"""Seconds between two frames: few, since each repaints what moves while keys may wait."""
SLIDE, FADE = 0.3, 0.4
"""Seconds in which a bar slides and a shade fades."""


class Motion:
    """One thing of a widget that moves; `draw` shows it at its `share` of the way, from 0 to 1."""

    def __init__(self, widget: Widget, seconds: float, draw: Callable[[], object]) -> None:
        self.share = 1.0
        self._widget, self._draw = widget, draw
        self._frames, self._at = max(round(seconds / FRAME), 1), 0
        self._timer: Timer | None = None

    def begin(self) -> None:
        """Start at the beginning, or be at the end at once where nothing should move; the caller draws."""
        self.stop()
        if getattr(self._widget.app, "moves", False):
            self.share, self._at = 0.0, 0
            self._timer = self._widget.set_interval(FRAME, self._next)

    def stop(self) -> None:
        """Be at the end."""
        if self._timer is not None:
            self._timer.stop()
        self.share, self._timer = 1.0, None

    def _next(self) -> None:
        self._at += 1
        if self._at >= self._frames:
            self.stop()
        else:
            self.share = 1 - (1 - self._at / self._frames) ** 2  # fast at first, then slower
        self._draw()

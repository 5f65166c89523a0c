"""The last gate: no character that a terminal would obey or hide leaves the app, whatever a widget contains.

Widgets show text from files, models and engines with `visible`, which has a symbol for each odd character. The gate,
below all widgets, catches what they miss. Lines are already laid out here, so no character may change its width;
characters of no width are dropped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, TextIO, cast

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.segment import Segment
from textual.app import App
from textual.color import Color
from textual.filter import LineFilter, Monochrome
from textual.strip import Strip

from rlplay.printing import VisibleStream
from rlplay.trace.text import MARKS, harmless, one_by_one, visible, visible_lines
from rlplay.ui.theme.no_color import Plain


class LastGate(LineFilter):
    """Removes control characters, links and control sequences from finished lines.

    It also applies the filters `before` it: Textual makes a new line for each filter, which costs more than the filter
    itself.
    """

    def __init__(self, before: tuple[LineFilter, ...]) -> None:
        super().__init__()
        self.before = before

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The filtered segments of a line, with the same width."""
        for each in self.before:
            segments = each.apply(segments, background)
        return _tamed(segments) if _wild(segments) else segments


def ungated(filters: Iterable[LineFilter]) -> list[LineFilter]:
    """The filters without the gate, for a widget that passes its finished lines to `passed`."""
    return [each for one in filters for each in (one.before if isinstance(one, LastGate) else [one])]


def passed(strip: Strip) -> Strip:
    """A finished line after the gate: the same object if nothing had to be removed."""
    return Strip(_tamed(strip), strip.cell_length) if _wild(strip) else strip


def _wild(segments: Iterable[Segment]) -> bool:
    plain = _plain
    for text, style, control in segments:
        if not plain(text) or control is not None or (style is not None and style.link is not None):
            return True
    return False


def _tamed(segments: Iterable[Segment]) -> list[Segment]:
    return [_tame(segment) for segment in segments if segment.control is None]


def _tame(segment: Segment) -> Segment:
    text, style, _ = segment
    return Segment(text if _plain(text) else _as_wide(text), style and style.update_link(None))


@lru_cache(16384)
def _plain(text: str) -> bool:
    """Whether the text is harmless, without excessive combining marks."""
    return harmless(text) and (text.isascii() or len(text) <= cell_len(text) + MARKS)


@lru_cache(4096)
def _as_wide(text: str) -> str:
    """`text` without control characters, in the same number of cells."""
    symbols = ((symbol, cell_len(symbol), cell_len(odd)) for symbol, odd in zip(one_by_one(text), text, strict=True))
    return set_cell_size("".join(s if width == room else s * room for s, width, room in symbols), cell_len(text))


class GatedApp(App[int]):
    """An app that neutralises foreign text on the screen, in notifications, in the clipboard and in crash reports."""

    def __init__(self) -> None:
        super().__init__()
        self._gate, self._plain = LastGate(()), Plain()
        # A crash report contains foreign texts. Without colours, every escape sequence in it is foreign and removed.
        self.error_console = Console(
            file=cast(TextIO, VisibleStream(sys.stderr)), color_system=None, markup=False, highlight=False
        )

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's filters, or those for a screen without colours; then the gate."""
        before = tuple(super().get_line_filters())
        if self.no_color:
            before = (*(each for each in before if not isinstance(each, Monochrome)), self._plain)
        if before != self._gate.before:
            self._gate = LastGate(before)
        return [self._gate]

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: Literal["information", "warning", "error"] = "information",
        timeout: float | None = None,
        markup: bool = True,  # noqa: ARG002 - Textual's signature
    ) -> None:
        """Show a notification. Its text is never markup, even if a screen of Textual asks for markup."""
        super().notify(visible_lines(message), title=visible(title), severity=severity, timeout=timeout, markup=False)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy `text` with visible control characters, so that a shell does not obey them either."""
        super().copy_to_clipboard(visible_lines(text))

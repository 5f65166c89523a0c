"""The last gate: whatever a widget was given, nothing that a terminal would obey or hide leaves the app.

Text from files, models and engines is made visible where it is shown (`visible`), with a symbol for each odd character.
What is forgotten there ends here, below all widgets. By then lines are laid out, so no character may change its width:
those without a place of their own are left out.
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
from textual.filter import LineFilter
from textual.strip import Strip

from rlplay.printing import VisibleStream
from rlplay.trace.text import MARKS, harmless, one_by_one, visible, visible_lines


class LastGate(LineFilter):
    """Takes out of finished lines what would be obeyed: control characters, links, other orders to the terminal.

    It comes after the filters `before` it and does their work, too: Textual makes a new line for each filter, which
    costs more than the filter does.
    """

    def __init__(self, before: tuple[LineFilter, ...]) -> None:
        super().__init__()
        self.before = before

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments of a line as they are written, as wide as they were."""
        for each in self.before:
            segments = each.apply(segments, background)
        return _tamed(segments) if _wild(segments) else segments


def ungated(filters: Iterable[LineFilter]) -> list[LineFilter]:
    """The filters without the gate, for a widget whose finished lines all pass it by `passed`."""
    return [each for one in filters for each in (one.before if isinstance(one, LastGate) else [one])]


def passed(strip: Strip) -> Strip:
    """A finished line through the gate: the same one unless there was something to take out."""
    return Strip(_tamed(strip), strip.cell_length) if _wild(strip) else strip


def _wild(segments: Iterable[Segment]) -> bool:
    plain = _plain
    for text, style, control in segments:
        # Rich's property for a style's link would take half of the time of all this.
        if not plain(text) or control is not None or (style is not None and style._link is not None):
            return True
    return False


def _tamed(segments: Iterable[Segment]) -> list[Segment]:
    return [_tame(segment) for segment in segments if segment.control is None]


def _tame(segment: Segment) -> Segment:
    text, style, _ = segment
    return Segment(text if _plain(text) else _as_wide(text), style and style.update_link(None))


@lru_cache(16384)
def _plain(text: str) -> bool:
    """Whether it is harmless, and no letter can have more than its marks."""
    return harmless(text) and (text.isascii() or len(text) <= cell_len(text) + MARKS)


@lru_cache(4096)
def _as_wide(text: str) -> str:
    """`text` without what would be obeyed, in as many cells."""
    symbols = ((symbol, cell_len(symbol), cell_len(odd)) for symbol, odd in zip(one_by_one(text), text, strict=True))
    return set_cell_size("".join(s if width == room else s * room for s, width, room in symbols), cell_len(text))


class GatedApp(App[int]):
    """An app that shows, notes, copies and, when it crashes, prints foreign text without obeying any of it."""

    def __init__(self) -> None:
        super().__init__()
        self._gate = LastGate(())
        # A crash prints the texts it happened on. In colours, the escapes of a text could not be told from Rich's.
        self.error_console = Console(
            file=cast(TextIO, VisibleStream(sys.stderr)), color_system=None, markup=False, highlight=False
        )

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's, and last of all the gate."""
        before = tuple(super().get_line_filters())
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
        """Say something in a corner of the screen. Nothing in it is markup, whatever Textual's screens suppose."""
        super().notify(visible_lines(message), title=visible(title), severity=severity, timeout=timeout, markup=False)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy `text` as it is shown: pasted into a shell it is not obeyed either."""
        super().copy_to_clipboard(visible_lines(text))

"""The progress of copying a run: other keys wait, and `esc` cancels the copy."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content

from rlplay.ui.format.keyed import keyed
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.steady_static import SteadyStatic

_PATIENCE = 0.3
"""Seconds before the progress appears; most copies are finished by then."""
_BAR = 20


class CopyingScreen(Following[bool]):
    """Its result is whether the copy was made. The copying thread calls `going`, the screen's thread all else."""

    DEFAULT_CSS = """
    CopyingScreen { align: center middle; background: transparent; }
    CopyingScreen SteadyStatic {
        display: none; width: 44; height: 3; padding: 0 1; background: $background; border: round $accent;
        border-title-color: $foreground; border-title-style: bold; border-subtitle-color: $text-muted;
    }
    CopyingScreen.-long { background: $background 70%; SteadyStatic { display: block; } }
    """
    SECONDS = 0.0
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "cancel")]

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number, self._share = number, 0.0
        self._cancelled = False
        self._made: bool | None = None

    def compose(self) -> ComposeResult:
        panel = SteadyStatic()
        panel.border_title = f"Copying updates 1 to {self._number}" if self._number else "Copying the start of the run"
        panel.border_subtitle = keyed("`esc` cancel")
        yield panel

    def on_mount(self) -> None:
        self.begin()
        self.set_timer(_PATIENCE, lambda: self.add_class("-long"))

    def going(self, share: float) -> bool:
        """Take the copied share, 0 to 1; returns whether to continue."""
        self._share = share
        return not self._cancelled

    def over(self, made: bool) -> None:
        """The copy was made or cancelled."""
        self._made = made
        self.follow()

    def action_cancel(self) -> None:
        """Cancel the copy; the screen closes once the partial copy is removed."""
        self._cancelled = True

    def version(self) -> object:
        """What the thread and the user have said."""
        return self._share, self._cancelled, self._made

    def follow(self) -> None:
        """Show the copied share; close once the copy was made or cancelled."""
        if self._made is not None and self.is_active:
            self.dismiss(self._made)
            return
        filled = round(self._share * _BAR)
        bar = ("━" * filled, "$foreground"), ("━" * (_BAR - filled), "$border")
        self.query_one(SteadyStatic).say(
            Content.assemble(*bar, f" {self._share:>4.0%}  ", "cancelling" * self._cancelled)
        )

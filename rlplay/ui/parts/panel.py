"""What the footer, the help and the copy key ask of the panel with the focus."""

from __future__ import annotations

from typing import ClassVar

from rlplay.ui.format.shortcuts import Shortcut


class Panel:
    """Base of the widgets that answer them; mixed into a class of Textual."""

    SHORTCUTS: ClassVar[tuple[Shortcut, ...]] = ()
    """Its keys for the footer."""

    MINIATURE: ClassVar[tuple[tuple[str, str], ...]] = ()
    """A few lines of the panel, each with what it is, with which its help begins."""

    @property
    def shortcuts(self) -> tuple[Shortcut, ...]:
        """Those that do something now."""
        return self.SHORTCUTS

    @property
    def help_metrics(self) -> tuple[str, ...]:
        """The metrics that its help explains."""
        return ()

    def clipping(self) -> tuple[str, str] | None:
        """What is copied, in words, and its text; None if that is for another panel to say."""
        return None

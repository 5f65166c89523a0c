"""The question before a live run ends."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from rlplay.ui.parts.confirm import ConfirmScreen
from rlplay.ui.parts.following import Following
from rlplay.ui.session.session import Session


class LeaveScreen(ConfirmScreen, Following[bool]):
    """The key that leaves, pressed again, says yes."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "dismiss(True)", "leave")]

    def __init__(self, session: Session, name: str) -> None:
        """`name` is what `rlplay resume` calls the run."""
        super().__init__("Leave", question(session, name), "leave", "`enter` or `q` again")
        self._session, self._called = session, name

    def on_mount(self) -> None:
        self.begin()

    def version(self) -> object:
        """The question."""
        return question(self._session, self._called)

    def follow(self) -> None:
        """Say what is kept by now; once the engine has ended, what was kept by then."""
        if words := question(self._session, self._called):
            self.ask(words)


def question(session: Session, name: str) -> str:
    """What leaving ends and what is kept, in a line; "" if no work is lost: nothing is live, or no update finished."""
    newest, status = session.run.newest, session.status
    live = session.has_engine and session.failed is None and newest is not None and session.run.finished
    if not live or newest is None or status is None:
        return ""
    if not status.kept:
        return "Leave? The run ends, and nothing of it can be resumed yet."
    lost = "" if newest.number <= status.kept else f" Update {newest.number} then begins again."
    return f"Leave? The run is on disk: rlplay resume {name} goes on after update {status.kept}.{lost}"

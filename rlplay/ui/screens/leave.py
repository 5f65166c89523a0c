"""The question before a live run ends."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from rlplay.paths import shortest_name
from rlplay.trace.runfile_format import RunFileError
from rlplay.ui.screens.confirm import ConfirmScreen
from rlplay.ui.session.session import Session


class LeaveScreen(ConfirmScreen):
    """The key that leaves, pressed again, says yes."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "dismiss(True)", "leave")]

    def __init__(self, question: str) -> None:
        super().__init__("Leave", question, "leave", "`enter` or `q` again")


def question(session: Session) -> str:
    """What leaving ends and what is kept, in a line; "" if no work is lost: nothing is live, or no update finished."""
    newest = session.newest
    if not session.has_engine or session.failed is not None or newest is None or not session.finished:
        return ""
    try:
        kept = max(session.source.snapshots(), default=0)
    except RunFileError:
        kept = 0
    if not kept:
        return "Leave? The run ends, and nothing of it can be resumed yet."
    lost = "" if newest.number <= kept else f" Update {newest.number} then begins again."
    name = shortest_name(session.source.path)
    return f"Leave? The run is on disk: rlplay resume {name} goes on after update {kept}.{lost}"

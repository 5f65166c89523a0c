"""What a session is fed: the events of a live engine or of a recording."""

from __future__ import annotations

import msgspec

from rlplay.link.messages import AnyEvent
from rlplay.trace.history import History
from rlplay.trace.settings_timeline import SettingsTimeline
from rlplay.trace.update import Update


class Moved(msgspec.Struct, frozen=True):
    """A replay moved to this state of an update; `problem` says why it cannot be shown."""

    update: Update
    problem: str = ""


class Restored(msgspec.Struct, frozen=True):
    """The numbers, the first settings and all changes of a recorded run, read at once."""

    history: History
    timeline: SettingsTimeline
    back_to: int | None = None
    """The run went back to this update since the last time, so what was known of later ones is not theirs."""


Happening = AnyEvent | Moved | Restored

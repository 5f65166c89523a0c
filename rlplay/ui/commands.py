"""Sends a command from the screen to its source."""

from __future__ import annotations

from rlplay.link.messages import AnyCommand, RecordView
from rlplay.ui.playground import Playground


async def send(app: Playground, command: AnyCommand, asked: str = "") -> None:
    """Pass a command to the source, and show at once that it was requested."""
    session = app.session
    if session.failed is not None:
        ended = "The engine has ended. Press r to resume from the last snapshot."
        again = "The run could not be read. Press r to try again."
        app.notify(ended if session.source.live else again, severity="warning")
        return
    if session.looking is not None:
        session.back_to_live()
    session.asked, session.going_back_to = asked, None
    app.unasked = False
    session.changed.add("status")
    # Record the view only when a command follows: what the user saw then explains what they did.
    look = RecordView(app.lens_choice or "auto", *app.tokens.cursor)
    if look != session.looked:
        session.looked = look
        await session.source.send(look)
    await session.source.send(command)

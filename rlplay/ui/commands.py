"""The way of a command from the screen to its source."""

from __future__ import annotations

from rlplay.link.messages import AnyCommand, Look
from rlplay.ui.playground import Playground


async def send(app: Playground, command: AnyCommand, asked: str = "") -> None:
    """Pass a command to the source, and say at once that it was asked for."""
    session = app.session
    if session.failed is not None:
        ended = "The engine has ended. Press r to resume from the last snapshot."
        again = "The run could not be read. Press r to read it again."
        app.notify(ended if session.source.live else again, severity="warning")
        return
    if session.looking is not None:
        session.back_to_live()
    session.asked, session.going_back_to = asked, None
    session.changed.add("status")
    # What is before the user's eyes belongs to what they do next; where they only glanced is not worth a note.
    look = Look(app.lens_choice or "auto", *app.tokens.cursor)
    if look != session.looked:
        session.looked = look
        await session.source.send(look)
    await session.source.send(command)

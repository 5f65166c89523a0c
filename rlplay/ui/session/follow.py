"""Takes a source's events into its session until they end, whatever goes wrong."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable

from rlplay.link.messages import Failed, Status
from rlplay.trace.questions import Imagined
from rlplay.ui.session.session import Session


async def follow(session: Session, heard: Callable[[Status | Imagined], Awaitable[None]]) -> None:
    """Start the session's source and fill the session from it; `heard` is told of every status and every answer."""
    source = session.source
    try:
        await source.start()
        async for event in source.events():
            session.apply(event)
            if isinstance(event, (Status, Imagined)):
                await heard(event)
            # A source that always has something ready would never let a key press in.
            await asyncio.sleep(0)
    except OSError as error:
        session.apply(Failed(f"The engine could not be started: {error}"))
        return
    except Exception as error:
        # Whatever a damaged record or a broken pipe raises, the screen must not wait for ever.
        what = "The engine cannot be followed" if source.live else "The run cannot be read"
        session.apply(Failed(f"{what}: {error or type(error).__name__}", traceback.format_exc()))
        return
    if session.failed is None:
        session.apply(Failed("The engine ended unexpectedly; what it had recorded is safe on disk."))

"""Passes a source's events to its session until they end, and reports any error there."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable

from rlplay.link.messages import Failed, Status
from rlplay.trace.questions import Imagined
from rlplay.ui.session.session import Session


async def follow(session: Session, receive: Callable[[Status | Imagined], Awaitable[None]]) -> None:
    """Start the session's source and fill the session from it; `receive` gets every status and every preview."""
    source = session.source
    try:
        await source.start()
        async for event in source.events():
            session.apply(event)
            if isinstance(event, (Status, Imagined)):
                await receive(event)
            # Otherwise a source that always has an event ready would block key presses.
            await asyncio.sleep(0)
    except OSError as error:
        session.apply(Failed(f"The engine could not be started: {error}"))
        return
    except Exception as error:
        # Whatever a damaged record or a broken pipe raises, the screen must not wait forever.
        what = "Lost contact with the engine" if source.live else "Cannot read the run"
        session.apply(Failed(f"{what}: {str(error) or type(error).__name__}", traceback.format_exc()))
        return
    if session.failed is None:
        session.apply(Failed("The engine ended unexpectedly; its records are safe on disk."))

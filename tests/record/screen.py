"""A screen that steers a trainer over its socket."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from rlplay.link import framing
from rlplay.link.messages import COMMANDS, EVENTS, AnyCommand, AnyEvent, Recorded, Status
from rlplay.link.trainer_address import find
from rlplay.trace.records import Notice
from tests.record.fake_trainer import PATIENCE


class Screen:
    """A client of the trainer's socket."""

    def __init__(self, folder: Path, token: str | None = None) -> None:
        door = find(folder)
        self.socket = socket.create_connection((door.host, door.port), PATIENCE)
        self.socket.sendall(framing.pack((door.token if token is None else token).encode()))

    def say(self, *commands: AnyCommand) -> None:
        for command in commands:
            self.socket.sendall(framing.pack(COMMANDS.encode(command)))

    def hear(self) -> AnyEvent | None:
        data = framing.receive(self.socket)
        return None if data is None else EVENTS.decode(data)

    def status(self, **wanted: Any) -> Status:
        """The next status with these fields."""
        while (event := self.hear()) is not None:
            if isinstance(event, Status) and all(getattr(event, name) == value for name, value in wanted.items()):
                return event
        raise AssertionError(f"the trainer hung up before {wanted}")

    def answer(self) -> AnyEvent:
        """The next event that is no status."""
        while (event := self.hear()) is not None:
            if not isinstance(event, Status):
                return event
        raise AssertionError("the trainer hung up before it answered")

    def notice(self) -> str:
        while (event := self.hear()) is not None:
            if isinstance(event, Recorded) and isinstance(event.record, Notice):
                return event.record.text
        raise AssertionError("the trainer hung up")

"""The engine's end of the wire: a blocking socket, and a thread that reads it and notices when the screen is gone."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Mapping

import msgspec

from rlplay import trusted
from rlplay.link import framing
from rlplay.link.messages import COMMANDS, EVENTS, AnyCommand, AnyEvent, LogLine, Trust

PATIENCE = 1.5
"""Seconds within which the engine must end by itself once the screen is gone."""


class ScreenLink:
    """Connection to the screen. `commands` holds its commands, then None once it is gone; then `gone` is set."""

    def __init__(self, sock: socket.socket) -> None:
        self.commands: queue.Queue[AnyCommand | None] = queue.Queue()
        self.gone = threading.Event()
        self._socket = sock
        self._sending = threading.Lock()
        self._closing = False
        threading.Thread(target=self._listen, name="screen", daemon=True).start()

    @classmethod
    def connect(cls, environment: Mapping[str, str]) -> ScreenLink:
        """Connect to the screen that started this process. Raises ValueError, one line, if there is none."""
        try:
            host, _, port = environment[framing.ADDRESS].rpartition(":")
            token = environment[framing.TOKEN]
            sock = socket.create_connection((host, int(port)), timeout=10)
        except KeyError as error:
            raise ValueError(f"{error.args[0]} is not set; the engine is started by `rlplay`, not by hand") from None
        except OSError as error:
            raise ValueError(f"no screen listens at {environment[framing.ADDRESS]} ({error}); start rlplay") from None
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(framing.pack(token.encode()))
        return cls(sock)

    def send(self, event: AnyEvent) -> None:
        """Send an event to the screen, from any thread; without a screen this does nothing."""
        try:
            frame = framing.pack(EVENTS.encode(event))
        except framing.FrameError as error:
            frame = framing.pack(EVENTS.encode(LogLine("error", f"{type(event).__name__} was not shown: {error}")))
        with self._sending:
            try:
                self._socket.sendall(frame)
            except OSError:
                self.gone.set()

    def close(self) -> None:
        """End the connection."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _listen(self) -> None:
        while True:
            try:
                data = framing.receive(self._socket)
                if data is None:
                    break
                command = COMMANDS.decode(data)
                if isinstance(command, Trust):
                    trusted.take(command.grants)
                else:
                    self.commands.put(command)
            except framing.FrameError:
                break
            except msgspec.MsgspecError as error:
                self.send(LogLine("error", f"the engine did not understand a command: {error}"))
        if not self._closing:
            self.gone.set()
            self.commands.put(None)

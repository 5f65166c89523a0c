"""Lets a screen steer the training: it pauses between updates, goes on update by update, and changes settings."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rlplay.link import framing, remote
from rlplay.link.messages import (
    COMMANDS,
    EVENTS,
    Abilities,
    Advance,
    AnyCommand,
    AnyEvent,
    Pause,
    Recorded,
    Set,
    Status,
)
from rlplay.trace.records import Notice

_UNDO = "TRL keeps no earlier weights, so this run cannot go back."
_WHOLE = "TRL cannot stop inside an update: press u for the next one."
_WEIGHTS = "The weights are in the trainer's process: rlplay has no model to ask."
CANNOT = {
    **dict.fromkeys(("undo", "rewind", "branch"), _UNDO),
    **dict.fromkeys(("token", "phase", "step"), _WHOLE),
    "probe": _WEIGHTS,
    "prefer": "TRL takes its labels from the dataset.",
    "resume": "The trainer decides how long it trains; start its script again.",
}
"""The verbs that a trainer of TRL cannot carry out, each with the reason."""


class Remote:
    """The trainer's end of the wire, in its first process. One screen at a time; without one, training runs on."""

    def __init__(self, folder: Path, changeable: Sequence[str]) -> None:
        """Listen at once; a screen may change the settings `changeable`.

        Raises OSError if no port is free or the folder cannot be written.
        """
        self._folder = folder
        self._abilities = Abilities("TRL", CANNOT, list(changeable))
        self._server, self._door = remote.listen(folder)
        self._screen: socket.socket | None = None
        self._commands: queue.Queue[AnyCommand | None] = queue.Queue()
        self._left: int | None = None  # updates until the next pause; None: no pause
        self._settings: dict[str, Any] = {}
        self._update = 0
        threading.Thread(target=self._accept, name="rlplay remote", daemon=True).start()

    def between_steps(self, update: int, settings: Mapping[str, Any]) -> dict[str, Any]:
        """After an optimizer step: wait as long as a screen pauses the run; the settings to change.

        `update` is the last one that has ended, `settings` are those that hold.
        """
        changes: dict[str, Any] = {}
        if self._left is not None and update > self._update:
            self._left = max(0, self._left - 1)
        self._settings, self._update = dict(settings), update
        self._report()
        while self._left == 0 or not self._commands.empty():
            self._obey(self._commands.get(), changes)
            self._report()
        return changes

    def refuse(self, text: str) -> None:
        """Tell the screen what could not be done, and why."""
        self._send(Recorded(Notice(update=self._update, level="warning", text=text)))

    def close(self) -> None:
        """The training is over."""
        self._report(finished=True)
        remote.forget(self._folder)
        for each in (self._screen, self._server):
            if each is not None:
                with contextlib.suppress(OSError):
                    each.close()

    def _obey(self, command: AnyCommand | None, changes: dict[str, Any]) -> None:
        match command:
            case None:  # the screen is gone
                self._left = None
            case Advance(until="forever"):
                self._left = None
            case Advance(until="update"):
                self._left = command.count
            case Pause():
                self._left = 0
            case Set():
                changes |= command.changes
                self._settings |= command.changes
            case _:
                pass

    def _report(self, finished: bool = False) -> None:
        self._send(
            Status(
                running=self._left != 0 and not finished, update=self._update, phase="sample", settings=self._settings,
                rewindable=[], finished=finished, abilities=self._abilities,
            )
        )  # fmt: skip

    def _send(self, event: AnyEvent) -> None:
        if self._screen is not None:
            with contextlib.suppress(OSError):
                self._screen.sendall(framing.pack(EVENTS.encode(event)))

    def _accept(self) -> None:
        """Let in one screen after another."""
        while True:
            try:
                sock, _ = self._server.accept()
            except OSError:
                return
            if not remote.enters(sock, self._door):
                sock.close()
                continue
            self._screen = sock
            self._report()
            self._listen(sock)
            self._screen = None
            self._commands.put(None)

    def _listen(self, sock: socket.socket) -> None:
        with contextlib.suppress(framing.FrameError):
            while (data := framing.receive(sock)) is not None:
                try:
                    command = COMMANDS.decode(data)
                except msgspec.MsgspecError:
                    continue
                self._commands.put(command)

"""Lets a screen steer the training: it pauses between updates, goes on update by update, changes settings and asks."""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rlplay.link import framing
from rlplay.link import trainer_address as remote
from rlplay.link.messages import (
    COMMANDS,
    EVENTS,
    Abilities,
    Advance,
    AnyCommand,
    AnyEvent,
    Failed,
    Pause,
    Recorded,
    Set,
    Status,
)
from rlplay.record.trl.questions import Answers, answered
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.questions import AnyQuestion
from rlplay.trace.records import Notice

_UNDO = "TRL keeps no earlier weights, so this run cannot go back."
_WHOLE = "TRL cannot stop inside an update: press u for the next one."
_ONE_QUESTION = "A trainer of TRL answers one question only: who taught a token. Press Y."
CANNOT = {
    **dict.fromkeys(("undo", "rewind", "branch"), _UNDO),
    **dict.fromkeys(("token", "phase", "step"), _WHOLE),
    "probe": _ONE_QUESTION,
    "withhold": "TRL forms its gradient itself: rlplay cannot leave tokens out.",
    "prefer": "TRL takes its labels from the dataset.",
    "resume": "The trainer decides how long it trains; start its script again.",
}
"""The verbs that a trainer of TRL cannot carry out, each with the reason."""
TAKEN = "Another screen steers this run. Leave that one first, or watch the run with rlplay replay."
_COMMAND_BYTES = 2**20
_SEND_SECONDS = 2
"""How long a write to a screen that no longer reads may wait; then the screen is let go."""


class Remote:
    """The trainer's end of the wire, in its first process. One screen at a time; without one, training runs on."""

    def __init__(self, folder: Path, changeable: Sequence[str], answers: Answers) -> None:
        """Listen at once; a screen may change the settings `changeable`, and `answers` answers its questions.

        Raises OSError if no port is free or the folder cannot be written.
        """
        self._folder = folder
        self._abilities, self._answers = Abilities("TRL", CANNOT, list(changeable)), answers
        self._server, self._door = remote.listen(folder)
        self._screen: socket.socket | None = None
        self._entering, self._sending = threading.Lock(), threading.Lock()
        self._commands: queue.Queue[AnyCommand | None] = queue.Queue()
        self._left: int | None = None  # updates until the next pause; None: no pause
        self._settings: SomeSettings = {}
        self._update = 0
        threading.Thread(target=self._accept, name="rlplay remote", daemon=True).start()

    def between_steps(self, update: int, settings: SomeSettings, change: Callable[[str, Any], str]) -> SomeSettings:
        """After an optimizer step: wait as long as a screen pauses the run; the settings that it changed.

        `update` is the last one that has ended; inside an update nothing happens. `settings` are those that hold, and
        `change` gives one of them another value, or says why it cannot be.
        """
        if update == self._update:
            return {}
        changes: SomeSettings = {}
        if self._left is not None:
            self._left = max(0, self._left - 1)
        self._settings, self._update = dict(settings), update
        self._report()
        while self._left == 0 or not self._commands.empty():
            match self._commands.get():
                case Set(wanted):
                    changes |= {name: value for name, value in wanted.items() if self._changed(name, value, change)}
                    self._settings = dict(settings)
                case command:
                    self._obey(command)
            self._report()
        return changes

    def _changed(self, name: str, value: Any, change: Callable[[str, Any], str]) -> bool:
        if refused := change(name, value):
            self.refuse(f"{name} stays as it is: {refused}.")
        return not refused

    def refuse(self, text: str) -> None:
        """Tell the screen what could not be done, and why."""
        self._send(Recorded(Notice(update=self._update, level="warning", text=text)))

    def close(self) -> None:
        """The training is over, or can no longer be steered."""
        self._report(finished=True)
        remote.forget(self._folder)
        _hang_up(self._server)
        self._server.close()
        if self._screen is not None:
            _hang_up(self._screen)

    def _obey(self, command: AnyCommand | None) -> None:
        match command:
            case None:  # the screen is gone
                self._left = None
                self._answers.leave()
            case Advance(until="forever"):
                self._left = None
            case Advance(until="update"):
                self._left = command.count
            case Pause():
                self._left = 0
            case question if isinstance(question, AnyQuestion):
                self._send(answered(question, self._answers, self._interrupted))
            case _:
                pass

    def _interrupted(self) -> bool:
        """Whether the screen wants something else than the answer under way."""
        return not self._commands.empty()

    def _report(self, finished: bool = False) -> None:
        self._send(
            Status(
                running=self._left != 0 and not finished, update=self._update, phase="sample", settings=self._settings,
                finished=finished, abilities=self._abilities,
            )
        )  # fmt: skip

    def _send(self, event: AnyEvent) -> None:
        """To the screen, if there is one: the training and the screen's own thread may both have something to say."""
        with self._sending:
            if self._screen is not None:
                _put(self._screen, event)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the training is over
            while True:
                sock, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(sock,), name="rlplay screen", daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        """Let a program in that knows the token, if no screen is there, until it leaves."""
        with sock:
            if not remote.enters(sock, self._door):
                return
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_SECONDS, 0))
            with self._entering:
                taken = self._screen is not None
                if not taken:
                    self._screen = sock
            if taken:
                _put(sock, Failed(TAKEN))
                return
            self._report()
            self._listen(sock)
            self._commands.put(None)  # before the next screen's
            with self._sending:
                self._screen = None

    def _listen(self, sock: socket.socket) -> None:
        with contextlib.suppress(framing.FrameError):
            while (data := framing.receive(sock, _COMMAND_BYTES)) is not None:
                with contextlib.suppress(msgspec.MsgspecError):
                    self._commands.put(COMMANDS.decode(data))


def _put(sock: socket.socket, event: AnyEvent) -> None:
    """Send an event; a screen that does not take it is gone."""
    try:
        sock.sendall(framing.pack(EVENTS.encode(event)))
    except OSError:
        _hang_up(sock)


def _hang_up(sock: socket.socket) -> None:
    """End a connection, or listening; the thread that waits there wakes up, which closing alone does not do."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)

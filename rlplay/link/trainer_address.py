"""How a screen finds and enters a run that another program trains: an address and a token beside the recording."""

from __future__ import annotations

import hmac
import os
import re
import secrets
import socket
from pathlib import Path

import msgspec

from rlplay.link import framing

HOST = "127.0.0.1"
_FILE = "remote.json"
_TOKEN_BYTES = 256
_PATIENCE = 10.0


class Door(msgspec.Struct, frozen=True):
    """Where the trainer listens, and the token that a screen must send first."""

    host: str
    port: int
    token: str


class NoDoorError(ValueError):
    """No trainer listens; one line: what, where, what to do."""


def listen(folder: Path) -> tuple[socket.socket, Door]:
    """Listen on this machine only, and write where into the recording's `folder`, readable by this user alone."""
    sock = socket.create_server((HOST, 0))
    door = Door(HOST, sock.getsockname()[1], secrets.token_hex(32))
    made = folder / f"{_FILE}.{os.getpid()}"
    made.unlink(missing_ok=True)
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode(door))
    made.replace(folder / _FILE)  # whoever looks for it finds it whole
    return sock, door


def forget(folder: Path) -> None:
    """Nobody listens any more."""
    (folder / _FILE).unlink(missing_ok=True)


def find(folder: Path, port: int | None = None) -> Door:
    """The door of the run recorded in `folder`; `port` replaces its port, where that is forwarded from elsewhere.

    Raises NoDoorError if nobody listens there.
    """
    path = folder / _FILE
    try:
        door = msgspec.json.decode(path.read_bytes(), type=Door)
    except FileNotFoundError:
        raise NoDoorError(
            f"{folder} cannot be attached: its trainer has ended or does not listen; use RlplayCallback(listen=True), "
            "or watch it with rlplay replay"
        ) from None
    except (OSError, msgspec.MsgspecError) as error:
        raise NoDoorError(f"{path} cannot be read ({error}); copy it again from the trainer's machine") from None
    if not re.fullmatch(r"[0-9a-f]{64}", door.token):  # it is sent to whatever listens there
        raise NoDoorError(f"{path} holds no token; copy it again from the trainer's machine")
    # A recording may come from a stranger, so what it says of a host is ignored: the trainer, or the end of a tunnel to
    # it, is on this machine.
    return msgspec.structs.replace(door, host=HOST, port=door.port if port is None else port)


def enters(sock: socket.socket, door: Door) -> bool:
    """Whether the program that has just connected knows the token."""
    sock.settimeout(_PATIENCE)
    try:
        token = framing.receive(sock, _TOKEN_BYTES)
    except framing.FrameError:
        return False
    sock.settimeout(None)
    return token is not None and hmac.compare_digest(token, door.token.encode())

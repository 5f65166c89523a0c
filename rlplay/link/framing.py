"""Frames messages on a stream: for each its length (4 bytes, big-endian), then its bytes."""

from __future__ import annotations

import asyncio
import socket
import struct

LIMIT = 256 * 2**20
"""The most bytes of a frame; more is an error or a foreign protocol."""
BUFFER = 2**20
"""Bytes that a stream of the screen's reads ahead, about."""

ADDRESS = "RLPLAY_ENGINE_ADDRESS"
TOKEN = "RLPLAY_ENGINE_TOKEN"
"""Environment variables for the engine: where the screen listens (host:port), and the token to send first."""

_HEAD = struct.Struct(">I")


class FrameError(ValueError):
    """A frame that is longer than allowed."""


def pack(data: bytes) -> bytes:
    """`data` as a frame; FrameError if it is longer than LIMIT."""
    _check(len(data), LIMIT)
    return _HEAD.pack(len(data)) + data


async def read(stream: asyncio.StreamReader, limit: int = LIMIT) -> bytes | None:
    """The next frame's bytes; None if the stream has ended, even inside a frame. FrameError if it is too long."""
    try:
        (length,) = _HEAD.unpack(await stream.readexactly(_HEAD.size))
        _check(length, limit)
        return await stream.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def receive(sock: socket.socket, limit: int = LIMIT) -> bytes | None:
    """The same from a blocking socket."""
    head = _exactly(sock, _HEAD.size)
    if head is None:
        return None
    (length,) = _HEAD.unpack(head)
    _check(length, limit)
    return _exactly(sock, length)


def _exactly(sock: socket.socket, count: int) -> bytes | None:
    data = bytearray(count)
    view = memoryview(data)
    got = 0
    while got < count:
        try:
            more = sock.recv_into(view[got:])
        except OSError:
            return None
        if more == 0:
            return None
        got += more
    return bytes(data)


def _check(length: int, limit: int) -> None:
    if length > limit:
        raise FrameError(f"a message of {length} bytes is over the limit of {limit}; use smaller or shorter batches")

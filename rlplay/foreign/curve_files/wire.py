"""Reads protobuf's wire format, as far as logs of numbers need it, without any library's message classes.

A message is a sequence of fields: a number `field << 3 | type`, then a number of 7 bits a byte (type 0), 8 bytes (1),
a length and so many bytes (2), or 4 bytes (5): protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Iterator

_LONGEST = 10
"""Bytes of a number of 64 bits."""


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, in order: their number, and a number (type 0) or the bytes (types 1, 2 and 5).

    Raises ValueError if it is cut short or no message.
    """
    place, end = 0, len(data)
    while place < end:
        key, place = _number(data, place)
        kind = key & 7
        if kind == 0:
            value, place = _number(data, place)
            yield key >> 3, value
            continue
        if kind == 2:
            length, place = _number(data, place)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of type {kind}")
        if length > end - place:
            raise ValueError("a field is longer than its message")
        yield key >> 3, data[place : place + length]
        place += length


def _number(data: bytes, place: int) -> tuple[int, int]:
    if place < len(data) and (byte := data[place]) < 128:
        return byte, place + 1
    found = 0
    for count, byte in enumerate(data[place : place + _LONGEST]):
        found |= (byte & 127) << 7 * count
        if byte < 128:
            return found & (2**64 - 1), place + count + 1
    raise ValueError("a number is cut short")


def signed(value: int) -> int:
    """A number of 64 bits whose highest bit is its sign."""
    return value - 2**64 if value >= 2**63 else value

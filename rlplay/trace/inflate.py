"""What a stranger's file may take in memory: a few of its bytes can stand for gigabytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

_AT_LEAST, _TIMES = 2**30, 20
"""Bytes that one reading of a file may hold in memory, or so many times its size: rlplay's own files have 2 to 6."""

_ONE_AT_LEAST, _ONE_TIMES = 2**26, 64
"""The same for one piece: what is packed tighter is a few values many times, each of which takes more in Python."""


class Budget:
    """What one reading of a file may still hold."""

    def __init__(self, stored: int) -> None:
        """`stored` is the size of what is read, in bytes."""
        self._left = self._whole = max(_AT_LEAST, _TIMES * stored)

    @classmethod
    def of(cls, pieces: Iterable[Any]) -> Budget:
        """The budget of these pieces together; what is not bytes, in a damaged file, has none."""
        return cls(sum(len(each) for each in pieces if isinstance(each, bytes)))

    def inflated(self, data: bytes, largest: int) -> bytes:
        """The content of zlib-compressed `data`.

        Raises ValueError if it is cut off, has more than `largest` bytes, or exceeds the budget.
        """
        content = inflated(data, min(largest, max(_ONE_AT_LEAST, _ONE_TIMES * len(data))))
        self.spend(len(content))
        return content

    def spend(self, size: int) -> None:
        """Take `size` bytes. Raises ValueError if they are not left."""
        self._left -= size
        if self._left < 0:
            raise ValueError(f"it holds more than {self._whole // 2**20} MiB")


def inflated(data: bytes, largest: int) -> bytes:
    """The content of zlib-compressed `data`. Raises ValueError if it is cut off or has more than `largest` bytes."""
    inflater = zlib.decompressobj()
    content = inflater.decompress(data, largest)
    if inflater.eof:
        return content
    raise ValueError("it is cut off" if len(content) < largest else f"it holds more than {largest // 2**20} MiB")

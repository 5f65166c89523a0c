"""Decompression with a bound: a few bytes of a stranger's file can stand for gigabytes."""

from __future__ import annotations

import zlib


def inflated(data: bytes, largest: int) -> bytes:
    """The content of zlib-compressed `data`. Raises ValueError if it is cut off or has more than `largest` bytes."""
    inflater = zlib.decompressobj()
    content = inflater.decompress(data, largest)
    if inflater.eof:
        return content
    raise ValueError("it is cut off" if len(content) < largest else f"it holds more than {largest // 2**20} MiB")

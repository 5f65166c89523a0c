"""Which prompts are held out: their text decides, so that no reordering can leak one into training."""

from __future__ import annotations

from zlib import crc32


def is_held_out(wording: str, one_in: int) -> bool:
    """Whether `wording` belongs to the held-out part, about one `one_in`-th of all wordings.

    The CRC-32 of the text decides: unlike `hash`, it is the same in every process and on every machine.
    """
    return crc32(wording.encode()) % one_in == 0


def variant(wording: str, count: int) -> int:
    """A fixed choice out of `count` that depends on `wording` alone, in 0..count-1."""
    return (crc32(wording.encode()) >> 8) % count

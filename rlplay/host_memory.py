"""Whether the host has the memory that a question takes: for lack of it the system kills the training."""

from __future__ import annotations

import psutil  # type: ignore[import-untyped]

from rlplay.trace.numbers import byte_size

LARGEST_SHARE = 0.5
"""Of the memory that is free, a question may take so much."""


def too_large(wanted: int) -> str:
    """Why so many bytes are not to be taken of the host's memory; "" if they are."""
    free = psutil.virtual_memory().available
    if wanted <= LARGEST_SHARE * free:
        return ""
    return f"it would take {byte_size(wanted)} of memory, more than half of the {byte_size(free)} that are free"

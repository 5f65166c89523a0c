"""Memory that a pass has freed stays with the process, since the next pass takes as much again.

glibc gives large blocks back to the system at once, which clears every page before it is used again. With the bundled
model that is 5 % of an update's time (one thread of an AMD EPYC; `malloc(3)`, `mallopt(3)`).
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""glibc's numbers for: free memory at the end of the heap that is kept; blocks that are mapped on their own."""
_KEPT, _MAPPED = 2**30, 2**25
"""Bytes: of the first as much as passes of a small model take, of the second as much as glibc allows."""


def keep_freed_memory() -> bool:
    """Let this process keep what it frees; whether its C library is one that can be asked to."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc, or not Linux
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _MAPPED)) and bool(mallopt(_TRIM_THRESHOLD, _KEPT))

"""Which older updates of a long run keep the detail of their tokens."""

from __future__ import annotations

RECENT = 50
"""Updates that always keep it, on the live branch and on abandoned ones."""
_OLDER = 350
"""About this many older ones keep it, too."""


def stride(finished: int) -> int:
    """The distance between older updates that keep their detail, after `finished` updates: 1, 2, 4…"""
    step = 1
    while (finished - RECENT) / step > _OLDER:
        step *= 2
    return step

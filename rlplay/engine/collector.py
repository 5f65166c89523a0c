"""Imports without Python's garbage collector.

What modules define stays. To look at it over and over took a quarter of the time to import torch and transformers.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """No collection while the objects inside come into being; they, and their garbage, stay to the end."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if before:
            gc.enable()

"""What all tests have in common: how examples are found, and how long a test may take."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import settings

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported: with models this small, threads wait for each other

# Deadlines fail on a busy machine. Where changes are checked, the same change gets the same examples every time.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

SLOW = 3600
"""Seconds that a test marked slow may take; all others have the `timeout` of pyproject.toml."""


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what libraries keep for good: a tenth of the time went into looking there."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let slow tests be slow."""
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(SLOW))

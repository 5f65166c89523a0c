"""What all tests have in common: how examples are found, and how long a test may take."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import settings

from rlplay import trusted, user_code

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported: with models this small, threads wait for each other

# Deadlines fail on a busy machine. Where changes are checked, the same change gets the same examples every time.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(autouse=True)
def _trusts_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What one test trusts, another does not; and no test writes into the user's own folder."""
    monkeypatch.setattr(trusted, "_agreed", {})
    monkeypatch.setattr(trusted, "_followed", set())
    home = tmp_path_factory.getbasetemp() / "home"
    (home / "trusted.json").unlink(missing_ok=True)
    monkeypatch.setenv("RLPLAY_HOME", str(home))


@pytest.fixture
def trusts_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code of the user's runs unasked, for tests that are not about trust."""
    monkeypatch.setattr(user_code, "source", lambda path, imported=False: path.read_bytes())
    monkeypatch.setattr(user_code, "check_module", lambda name: None)


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

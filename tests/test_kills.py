"""SIGKILL of a run without a screen, from its start and resumed; of everything else that writes where there is time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kills import KINDS

pytestmark = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="reads /proc")


def kill(kind: str, times: int) -> None:
    """Kill in a process of its own, which no test has trained in; AssertionError with what was wrong."""
    words = [sys.executable, "-m", "tests.kills", kind, str(times)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_killed_run_leaves_its_updates_and_nothing_else() -> None:
    kill("headless", 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_that_writes_loses_anything_when_it_is_killed(kind: str) -> None:
    kill(kind, 8)

"""SIGKILL at random moments of a run without a screen, loading included: nothing lost, nothing left over.

`python -m tests.kills` kills everything else, too, and more often.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from rlplay.trace.runfile import RunFileError, RunReader
from tests.terminal import rlplay, running

KILLS = 2
SETS = [f"--set={each}" for each in ("num_prompts=2", "num_generations=4", "max_completion_length=8")]


def processes(mark: str) -> list[int]:
    """The processes whose command line has `mark`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "cmdline").read_text():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def finished(run: Path) -> list[int]:
    """The finished updates of a run file, each whole; none if there is no file yet."""
    if not run.exists():
        return []
    with RunReader(run) as reader:
        numbers = reader.updates()
        for number in numbers:
            assert reader.load(number).finished is not None
        return numbers


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="reads /proc")
@pytest.mark.timeout(240)
def test_a_killed_run_leaves_its_updates_and_nothing_else(tmp_path: Path) -> None:
    env = os.environ | {"RLPLAY_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"}
    run = tmp_path / f"killed-{os.getpid()}.rlplay"
    known: list[int] = []
    for number in range(KILLS):
        dice = random.Random(f"kills {number}")
        fresh = ["learn-to-think", "--out", str(run), "--seed", "1", *SETS]
        words = ["--resume", str(run)] if run.exists() else fresh
        child = subprocess.Popen(
            rlplay("run", *words), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        loading = dice.random() < 0.5
        begun = time.monotonic()
        while not loading and len(finished_or_none(run)) <= len(known) and time.monotonic() - begun < 60:
            time.sleep(0.05)
        time.sleep(dice.uniform(0, 4 if loading else 1.5))
        ended = child.poll()
        child.send_signal(signal.SIGKILL)
        _, err = child.communicate(timeout=30)  # its watch has gone, too
        assert ended is None or ended == 0, f"kill {number}: {err}"
        left = finished(run)
        assert left == list(range(1, len(left) + 1)), f"kill {number}"
        assert len(left) >= len(known), f"kill {number} lost updates"
        assert not [pid for pid in processes(run.name) if running(pid)], f"kill {number} left a process"
        assert {path.name for path in tmp_path.iterdir()} <= {
            "home", run.name, f"{run.name}-wal", f"{run.name}-shm", run.with_suffix(".snapshots").name,
        }, f"kill {number} left a file"  # fmt: skip
        known = left


def finished_or_none(run: Path) -> list[int]:
    """As `finished`, while another process may be creating the file."""
    try:
        return finished(run)
    except RunFileError:
        return []

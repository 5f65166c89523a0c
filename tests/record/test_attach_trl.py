"""End to end: a run of TRL in one program, `rlplay attach` on it in a pseudo-terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("trl")
from rlplay.foreign.copy import Copy
from rlplay.trace.runfile import RunReader
from tests.terminal import Terminal, rlplay

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
UPDATES = 4000
"""More than it ever makes while it is watched."""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a run that trains."""
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    command = [sys.executable, "-m", "tests.record.listening_run", str(tmp_path / "out"), str(UPDATES)]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=log, stderr=log)
    try:
        wait(lambda: last_update(tmp_path / "out") >= 1, process, tmp_path / "log")
        yield tmp_path / "out"
        assert process.poll() is None, "nothing that a screen does ends the training"
    finally:
        process.kill()
        process.wait()


def wait(done, process: subprocess.Popen[bytes] | None = None, log: Path | None = None) -> None:
    end = time.monotonic() + 90
    while not done():
        assert process is None or process.poll() is None, log and log.read_text()
        assert time.monotonic() < end
        time.sleep(0.05)


def last_update(folder: Path) -> int:
    if not (folder / "rlplay" / "remote.json").exists():
        return 0
    copy = Copy(folder)
    with RunReader(copy.path) as found:
        return max(found.updates(), default=0)


def paused_at(screen: Terminal, run: Path) -> int:
    """The update that the training has stopped after, once the screen shows it."""
    screen.settle(1)
    at = last_update(run)
    screen.wait_for(rf"update {at}\b")
    screen.settle(1)
    assert last_update(run) == at, "the training is paused"
    return at


def test_pause_step_change_run(run: Path, tmp_path: Path) -> None:
    screen = Terminal(rlplay("attach", str(run)), 160, 45, {"RLPLAY_HOME": str(tmp_path / "home")})
    try:
        screen.wait_for(r"update [1-9]", 60)
        screen.press("space")
        at = paused_at(screen, run)
        screen.press("u")
        screen.wait_for(rf"update {at + 1}\b")
        assert paused_at(screen, run) == at + 1
        screen.press("z")
        screen.wait_for("TRL keeps no earlier weights")
        screen.press("k")
        screen.wait_for("Knobs")
        for key in "/learning_rate":
            screen.press(key)
        screen.press("enter")
        screen.wait_for("enter accept")
        for key in ["\x7f"] * 10 + [*"0.002"]:
            screen.press(key)
        screen.press("enter")
        screen.wait_for("a apply")
        screen.press("a")
        screen.settle()
        screen.press("space")
        wait(lambda: last_update(run) > at + 4)
        screen.press("q")
        assert screen.wait_for_exit() == 0
        now = last_update(run)
        wait(lambda: last_update(run) > now + 2)
    finally:
        screen.close()
    copy = Copy(run)
    with RunReader(copy.path) as found:
        rates = {number: metrics["learning_rate"] for number, metrics in found.metrics()}
    assert rates[at + 1] == pytest.approx(1e-3)
    assert rates[at + 2] == pytest.approx(2e-3)


def test_a_screen_that_is_killed_lets_a_paused_training_run(run: Path, tmp_path: Path) -> None:
    screen = Terminal(rlplay("attach", str(run)), 120, 35, {"RLPLAY_HOME": str(tmp_path / "home")})
    try:
        screen.wait_for(r"update [1-9]", 60)
        screen.press("space")
        at = paused_at(screen, run)
        screen.kill()
        wait(lambda: last_update(run) > at + 2)
    finally:
        screen.close()

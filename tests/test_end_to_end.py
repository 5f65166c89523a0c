"""The real program, with the real engine and the bundled model, in a pseudo-terminal."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlplay.trace.runfile import RunReader
from tests.terminal import Terminal, child_of, ended, rlplay


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    program = Terminal(rlplay("learn-to-think", "--set", "num_prompts=4"), env={"RLPLAY_HOME": str(tmp_path)})
    yield program
    program.close()


def test_open_step_update_undo_crash_resume_quit(terminal: Terminal, tmp_path: Path) -> None:
    terminal.wait_for("Learn to think")
    terminal.wait_for("paused", timeout=90)  # it imports, evaluates and samples
    terminal.press(".")
    terminal.wait_for(r"How many \w+ does")
    terminal.press("n")
    terminal.wait_for("SCORE")
    terminal.press("u")
    terminal.wait_for(r"update 1 +[·●]")
    terminal.press("i")
    terminal.wait_for("policy now")
    terminal.press("V")
    terminal.wait_for("95 % .* n = 256")
    terminal.press("escape")
    terminal.wait_for("Answers")
    terminal.press("u")
    terminal.wait_for(r"update 2 +[·●]")
    terminal.press("z")
    terminal.wait_for(r"update 1 +[·●]")

    engine = child_of(terminal.pid, "rlplay.engine.engine_process")
    assert engine is not None
    os.kill(engine, signal.SIGKILL)
    terminal.wait_for("resume")
    assert "How many" in terminal.text(), "the data went with the engine"
    terminal.press("r")
    terminal.wait_for("paused", timeout=40)
    terminal.press("u")
    terminal.wait_for(r"update 2 +[·●]")

    resumed = child_of(terminal.pid, "rlplay.engine.engine_process")
    terminal.press("q")
    terminal.wait_for("Leave[?] The run is on disk: rlplay resume last goes on after update 2")
    terminal.press("q")
    assert terminal.wait_for_exit() == 0
    assert resumed is not None
    assert ended(resumed, timeout=10)
    (run,) = (tmp_path / "runs").glob("*.rlplay")
    reader = RunReader(run)
    assert reader.updates() == [1, 2]
    assert reader.load(2).finished is not None
    reader.close()


def test_the_first_ten_seconds(tmp_path: Path) -> None:
    program = Terminal(rlplay(), env={"RLPLAY_HOME": str(tmp_path)})
    try:
        program.wait_for("watch it learn")
        assert "recorded" in program.text()
        program.wait_for("● live", timeout=90)
        program.press("t")
        program.wait_for("t next")
        program.press("\x11")  # ctrl+q
        assert program.wait_for_exit() == 0
    finally:
        program.close()


def test_a_key_before_the_engine_is_ready_is_not_lost(tmp_path: Path) -> None:
    program = Terminal(rlplay(), env={"RLPLAY_HOME": str(tmp_path)})
    try:
        program.wait_for("starting the engine|importing")
        program.press("space")
        program.wait_for("starting…")
        program.wait_for(r"update 1 +[·●]", timeout=90)
    finally:
        program.close()


def test_the_engine_ends_with_the_screen(terminal: Terminal) -> None:
    terminal.wait_for("paused", timeout=90)
    terminal.press("space")
    terminal.wait_for(r"update 1 +[·●]")
    engine = child_of(terminal.pid, "rlplay.engine.engine_process")
    assert engine is not None
    terminal.kill()
    assert ended(engine, timeout=10)

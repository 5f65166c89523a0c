"""The screen is stopped and goes on: the terminal is the user's meanwhile, and at the end as it was."""

from __future__ import annotations

import os
import signal
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

from tests.recorded import synthetic_run
from tests.terminal import Terminal, rlplay

KEPT = termios.ECHO | termios.ICANON | termios.ISIG


def modes(terminal: Terminal) -> int:
    """What the terminal does with keys: nothing of this while an app reads them."""
    return termios.tcgetattr(terminal.fd)[3] & KEPT


def stopped(terminal: Terminal, stop: Callable[[], None]) -> bytes:
    """Stop the program; what it wrote until it had stopped."""
    stop()
    written = b""
    while not os.waitid(os.P_PID, terminal.pid, os.WSTOPPED | os.WNOHANG):
        written += terminal.receive(0.05)
    return written + terminal.receive(0.05)


def goes_on(terminal: Terminal, key: str, then: str) -> None:
    """Let the program go on; it draws its screen again and reads keys."""
    terminal.screen.reset()
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.wait_for("Tokens")
    terminal.press(key)
    terminal.wait_for(then)
    assert modes(terminal) == 0


def test_ctrl_z_and_signals_give_the_terminal_back_and_take_it_again(tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / "a.rlplay", updates=2)
    terminal = Terminal(rlplay("replay", str(run)), env={"RLPLAY_HOME": str(tmp_path)})
    try:
        before = modes(terminal)
        terminal.wait_for("Answers")
        assert before == KEPT
        written = stopped(terminal, lambda: terminal.press("\x1a"))
        assert b"\x1b[?1049l" in written, "the alternate screen stays"
        assert modes(terminal) == KEPT
        goes_on(terminal, "k", "Knobs")
        stopped(terminal, lambda: os.kill(terminal.pid, signal.SIGTSTP))
        assert modes(terminal) == KEPT
        goes_on(terminal, "\x1b", "Answers")
        stopped(terminal, lambda: os.kill(terminal.pid, signal.SIGSTOP))
        goes_on(terminal, "k", "Knobs")
        terminal.press("\x11")
        assert terminal.wait_for_exit(30) == 0
        assert modes(terminal) == KEPT, "no echo for the shell"
    finally:
        terminal.close()


def test_it_ends_with_its_terminal_even_if_it_began_without_hearing_of_that(tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / "a.rlplay", updates=2)
    deaf = "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", deaf, *rlplay("replay", str(run))]
    terminal = Terminal(command, env={"RLPLAY_HOME": str(tmp_path)})
    try:
        terminal.wait_for("Answers")
        os.close(terminal.fd)
        end = time.monotonic() + 30
        while not (seen := os.waitpid(terminal.pid, os.WNOHANG))[0]:
            assert time.monotonic() < end, "it stays without a terminal"
        assert os.waitstatus_to_exitcode(seen[1]) == -signal.SIGHUP
        terminal.pid = 0
    finally:
        terminal.kill()

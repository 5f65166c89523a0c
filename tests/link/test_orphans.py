"""What runs a user's function ends with the process that started it, whatever the function does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.link.fake_engine import BUSY
from tests.terminal import Terminal, child_of, ended, rlplay, running

ROOT = Path(__file__).parents[2]
SOON = 30
"""Seconds, for a busy machine; alone it takes two."""

SCREEN = """
import asyncio, sys
from rlplay.link.client import EngineProcess
from rlplay.link.messages import Advance, LogLine
from tests.link.test_client import FAKE, job

async def main():
    engine = EngineProcess(FAKE)
    await engine.start(job(sys.argv[1]))
    await engine.send(Advance("forever"))
    async for event in engine.events():
        if isinstance(event, LogLine):
            print(event.text, flush=True)

asyncio.run(main())
"""

SEVERAL = """
import sys
from rlplay.processes import launch
launch([sys.executable, "-c", sys.argv[1], sys.argv[2]], 1)
"""
ONE_OF_SEVERAL = """
import os, signal, sys, threading
from rlplay.supervisor import end_with_parent
from tests.link.fake_engine import BUSY
signal.signal(signal.SIGINT, lambda *_: print("asked", flush=True))
end_with_parent(1.0, signal.SIGINT)
assert sys.stdin.read() == ""
print(f"now busy: {os.getpid()}", flush=True)
if sys.argv[1] == "saving":
    threading.Event().wait()
BUSY[sys.argv[1]]()
"""


@contextmanager
def parent_of(script: str, *words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process and its child, which says that it is busy."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script, *words]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        said = next(line for line in parent.stdout if "now busy" in line)
        child = int(said.rpartition(": ")[2])
        try:
            yield parent, child
        finally:
            parent.kill()
            if running(child):
                os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("manner", BUSY)
def test_an_engine_ends_with_a_killed_screen_whatever_the_users_code_does(manner: str) -> None:
    with parent_of(SCREEN, manner) as (screen, engine):
        screen.kill()
        assert ended(engine, SOON)


@pytest.mark.parametrize("manner", ["saving", "matching"])
def test_each_of_several_processes_is_asked_and_then_ends_with_what_started_them(manner: str) -> None:
    with parent_of(SEVERAL, ONE_OF_SEVERAL, manner) as (parent, child):
        parent.kill()
        assert ended(child, SOON)
        assert parent.stdout is not None
        assert manner == "matching" or parent.stdout.read() == "asked\n"


def test_what_starts_and_ends_leaves_no_supervisor() -> None:
    with parent_of(SCREEN, "sleeping") as (screen, engine):
        supervisor = child_of(engine, "supervisor.py")
        assert supervisor is not None
        os.kill(engine, signal.SIGKILL)
        assert ended(supervisor, SOON)
        assert screen.wait(SOON) == 0


REWARDS = {
    "sleeping": "time.sleep(600)",
    "ending": "\n    while True:\n        try: os._exit(0)\n        except BaseException: pass",
    "matching": "re.match('(a+)+$', 'a' * 60 + 'b')",
}


@pytest.mark.slow
@pytest.mark.parametrize("manner", REWARDS)
def test_the_real_engine_ends_with_a_killed_screen(manner: str, tmp_path: Path) -> None:
    mark, own = tmp_path / "busy", tmp_path / "own.py"
    own.write_text(
        f"import os, re, time\ndef f(completions, **_):\n    open({str(mark)!r}, 'w').close()\n    {REWARDS[manner]}\n"
    )
    words = ["learn-to-think", "--set", "num_prompts=2", "--reward", f"{own}:f"]
    terminal = Terminal(rlplay(*words, "--trust"), env={"RLPLAY_HOME": str(tmp_path)})
    try:
        while not mark.exists():  # the first answers are scored before the screen is ready
            terminal.read(0.1)
            assert running(terminal.pid), terminal.text()
        engine = child_of(terminal.pid, "rlplay.engine.engine_process")
        assert engine is not None
        terminal.kill()
        assert ended(engine, SOON)
    finally:
        terminal.close()

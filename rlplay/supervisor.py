"""A process beside one that runs the user's code, with nothing but the standard library.

A user's function may end its process without a word (os._exit, abort, a crash, out of memory), may hang where Python
answers no signal, or keep the interpreter, so that no other thread of that process runs. This process does not depend
on any of that. It says how to go on with a run that is gone, and ends one that nobody waits for.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

GRACE = 3.0
"""Seconds after the second ctrl+c, for a run that can still save its state."""
_FINISHED = b"."
_LOOK_EVERY = 0.2
_latest: subprocess.Popen[bytes] | None = None


@contextmanager
def watched(again: str) -> Iterator[None]:
    """Look after this process until it is gone; `again` is the command that goes on with its run.

    Within the context, the end of the process is unexpected.
    """
    beside = _start(subprocess.PIPE, None, "run", again)
    try:
        yield
    finally:
        with suppress(OSError):
            assert beside.stdin is not None
            os.write(beside.stdin.fileno(), _FINISHED)


def end_with_parent(patience: float, ask: int = 0) -> None:
    """End this process with its parent, which holds the other end of the pipe on standard input and writes nothing.

    Once that end is closed, the process gets the signal `ask` (0: none) and after `patience` seconds SIGKILL, whatever
    code runs in it. Standard input is empty from here on.
    """
    _start(0, subprocess.DEVNULL, "child", str(os.getpid()), str(int(ask)), str(patience))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _start(stdin: int, output: int | None, *words: str) -> subprocess.Popen[bytes]:
    global _latest  # noqa: PLW0603 - closed with the process, whose last threads may hang
    command = [sys.executable, "-I", "-S", __file__, *words]
    _latest = subprocess.Popen(command, stdin=stdin, stdout=output, stderr=output)
    return _latest


def look_after(again: str, pipe: int, run: int) -> str:
    """Wait until the process `run`, which holds the other end of `pipe`, is gone; what the user should read."""
    presses: list[float] = []
    signal.signal(signal.SIGINT, lambda *_: presses.append(time.monotonic()))
    finished = False
    while True:
        gone = os.getppid() != run  # then a process that it forked may still hold the pipe
        if select.select([pipe], [], [], 0 if gone else _LOOK_EVERY)[0]:
            said = os.read(pipe, 1)
            if not said:
                break
            finished = True
        elif gone:
            break
        if len(presses) > 1 and time.monotonic() - presses[1] > GRACE and os.getppid() == run:
            os.kill(run, signal.SIGKILL)
    return "" if finished else f"rlplay: the run ended unexpectedly; finished updates are saved. To continue: {again}"


def end_orphan(child: int, pipe: int, ask: int, patience: float) -> None:
    """Wait until the other end of `pipe` is closed, then end the process `child` as `end_with_parent` says.

    Returns once it is gone. It started this process, so its number is its own as long as it is the parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while os.getppid() == child:
        if select.select([pipe], [], [], _LOOK_EVERY)[0] and not os.read(pipe, 1):
            break
    if ask and os.getppid() == child:
        os.kill(child, ask)
    end = time.monotonic() + patience
    while os.getppid() == child:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        time.sleep(_LOOK_EVERY / 4)


def main(words: list[str]) -> None:
    """What this process is started for, by its words."""
    for ignored in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    match words:
        case ["run", again]:
            if said := look_after(again, sys.stdin.fileno(), os.getppid()):
                print(said, file=sys.stderr)
        case ["child", child, ask, patience]:
            with suppress(ProcessLookupError):
                end_orphan(int(child), sys.stdin.fileno(), int(ask), float(patience))


if __name__ == "__main__":
    main(sys.argv[1:])

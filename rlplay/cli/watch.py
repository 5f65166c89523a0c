"""Looks after a run without a screen from a process beside it, with nothing but the standard library.

A user's function may end the run's process without a word (os._exit, abort, a crash, out of memory), or hang where
Python answers no signal. So this process says how to go on if the run is gone before it has finished, and ends it if
it is still there some seconds after the second ctrl+c.
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
    global _latest  # noqa: PLW0603 - closed with the process, whose last threads may hang
    _latest = subprocess.Popen([sys.executable, "-I", "-S", __file__, again], stdin=subprocess.PIPE)
    try:
        yield
    finally:
        with suppress(OSError):
            assert _latest.stdin is not None
            os.write(_latest.stdin.fileno(), _FINISHED)


def look_after(again: str, pipe: int, run: int) -> str:
    """Wait until the process `run`, which holds the other end of `pipe`, is gone; what the user should read."""
    presses: list[float] = []
    signal.signal(signal.SIGINT, lambda *_: presses.append(time.monotonic()))
    for ignored in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    finished = False
    while True:
        if select.select([pipe], [], [], _LOOK_EVERY)[0]:
            said = os.read(pipe, 1)
            if not said:
                break
            finished = True
        if len(presses) > 1 and time.monotonic() - presses[1] > GRACE and os.getppid() == run:
            os.kill(run, signal.SIGKILL)
    return "" if finished else f"rlplay: the run ended unexpectedly; finished updates are saved. To continue: {again}"


if __name__ == "__main__":
    if words := look_after(sys.argv[1], sys.stdin.fileno(), os.getppid()):
        print(words, file=sys.stderr)

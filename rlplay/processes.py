"""Starts the processes of `rlplay run --processes N`, watches them, and ends them all if one ends.

Imports no torch: the processes meet in `rlplay.engine.ranks`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

STORE = "RLPLAY_STORE"
"""The environment variable with the file through which the processes find each other."""

LOST = 75
"""The exit status of a process that ends because another one has."""

GRACE = 10.0
"""Seconds for the others to end by themselves once one has failed, and for all once what started them is gone."""

_LOOK_EVERY = 0.05


def in_several() -> bool:
    """Whether a launcher has started this process as one of several."""
    return os.environ.get("WORLD_SIZE", "1") != "1"


def is_one_alone(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether accelerate was asked for several processes and has started this one only.

    It does so without a word where there are no two GPUs; `--multi_gpu`, in spite of its name, starts all of them.
    """
    return "ACCELERATE_USE_CPU" in environment and "MASTER_ADDR" in environment and "WORLD_SIZE" not in environment


def is_first(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this is the process that talks."""
    return environment.get("RANK", "0") == "0"


def cores() -> int:
    """The CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_each(count: int) -> int:
    """CPU threads for each of `count` processes; alone, one core is left to the screen."""
    return max(1, cores() - 1 if count == 1 else cores() // count)


def launch(command: Sequence[str], count: int) -> tuple[int, str]:
    """Run a command line in `count` processes; returns their exit status and what ended them early.

    The second is "" unless one was killed, or they ended with different statuses.
    """
    with tempfile.TemporaryDirectory(prefix="rlplay-") as folder:
        children = [_started(command, rank, count, Path(folder) / "store") for rank in range(count)]
        try:
            with _passed_on(children):
                return _watched(children)
        finally:
            for child in children:
                child.kill()
                child.wait()


def _started(command: Sequence[str], rank: int, count: int, store: Path) -> subprocess.Popen[bytes]:
    own = {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count),
        STORE: str(store), "OMP_NUM_THREADS": str(threads_each(count)),
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
    }  # fmt: skip
    return subprocess.Popen(
        command,
        env=os.environ | own,
        stdin=subprocess.PIPE,  # closed when this process ends, however it ends
        start_new_session=True,  # ctrl+c comes from here, once
    )


def _watched(children: Sequence[subprocess.Popen[bytes]]) -> tuple[int, str]:
    """Wait until all have ended; once one has failed, the others get `GRACE` seconds."""
    while any(child.poll() is None for child in children) and not any(child.poll() for child in children):
        time.sleep(_LOOK_EVERY)
    _wait(children, GRACE)
    statuses = [child.poll() for child in children]
    if len(set(statuses)) == 1 and statuses[0] is not None:
        return statuses[0], ""
    causes = sorted((status, rank) for rank, status in enumerate(statuses) if status not in (None, 0, LOST))
    status, rank = causes[0] if causes else (LOST, statuses.index(LOST) if LOST in statuses else 0)
    what = f"was killed ({_signal(status)})" if status < 0 else f"ended with exit status {status}"
    return LOST, f"process {rank} of {len(children)} {what}"


def _signal(status: int) -> str:
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return name + (", often by the system when memory runs out" if name == "SIGKILL" else "")


def _wait(children: Sequence[subprocess.Popen[bytes]], patience: float) -> None:
    until = time.monotonic() + patience
    for child in children:
        with suppress(subprocess.TimeoutExpired):
            child.wait(max(0.0, until - time.monotonic()))


@contextmanager
def _passed_on(children: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Ctrl+c asks the processes to stop, the second time it ends them; so does SIGTERM, at once."""
    asked = threading.Event()

    def interrupt(number: int, _frame: object) -> None:
        for child in children:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM if asked.is_set() or number != signal.SIGINT else signal.SIGINT)
        asked.set()

    numbers = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

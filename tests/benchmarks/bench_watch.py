"""How soon what watches a run has something to show: `python -m tests.benchmarks.bench_watch`.

Prints median seconds of the clock, and as multiples of what Python itself takes to start. Each is to be under a second.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rlplay.cli.table import table
from tests.recorded import synthetic_run
from tests.terminal import Terminal, rlplay

TIMES = 7


def command(home: Path, *arguments: str) -> float:
    """Seconds until a command has ended."""
    began = time.perf_counter()
    subprocess.run(arguments, capture_output=True, check=False, env=os.environ | {"RLPLAY_HOME": str(home)})
    return time.perf_counter() - began


def screen(home: Path, pattern: str, *arguments: str) -> float:
    """Seconds until a screen shows `pattern`."""
    terminal = Terminal(rlplay(*arguments), env={"RLPLAY_HOME": str(home)})
    try:
        return terminal.wait_for(pattern)
    finally:
        terminal.close()


def main() -> None:
    """Measure in turn, so that whatever else the machine does meets all alike."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        run, other = synthetic_run(home / "first.rlplay"), synthetic_run(home / "second.rlplay", seed=1)
        ways: dict[str, Callable[[], float]] = {
            "python": lambda: command(home, sys.executable, "-c", "pass"),
            "rlplay --help": lambda: command(home, *rlplay("--help")),
            "rlplay health": lambda: command(home, *rlplay("health", str(run))),
            "rlplay replay": lambda: screen(home, "update 5", "replay", str(run)),
            "rlplay compare": lambda: screen(home, "B  seed 1", "compare", str(run), str(other)),
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(TIMES):
            for name, way in ways.items():
                taken[name].append(way())
        medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
        rows = [(name, f"{seconds:.2f} s", f"{seconds / medians['python']:.0f}×") for name, seconds in medians.items()]
        print("\n".join(table(rows)))


if __name__ == "__main__":
    main()

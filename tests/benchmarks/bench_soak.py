"""What an hour of training holds on to: memory, open files, disk; without a screen, and with one that is being used.

    python -m tests.benchmarks.bench_soak headless|screen [--minutes 60]

Memory is resident (Linux only). The screen's keys open every dialogue again and again while the engine trains. The
last tenth of the time is compared with the second tenth: in the first the run fills its windows and caches.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.terminal import Terminal, child_of, rlplay

SCENARIO = """\
title: Soak
question: What does an hour of training hold on to?
task: word_problems
seed: 1
max_updates: 1000000
settings: {learning_rate: 1.0e-5}
"""
ENGINE = "rlplay.engine.engine_process"
GROWTH = 0.05
"""How much memory may come on top."""
ROUND = ("k", "\x1b", "?", "\x1b", "g", "\x1b", "h", "\x1b", "d", "\x1b", "o", "\x1b", "down", "right", "c", "[", "]",
         "x", "\x1b", "\x10", "\x1b", "tab", "\x1b[6~")  # fmt: skip
"""Keys of a round: dialogues and moves, and back to the latest update."""
PAUSE = 0.5
"""Seconds between two keys."""


class Look(NamedTuple):
    """What a process holds."""

    megabytes: float
    descriptors: int


def look(pid: int) -> Look:
    """What this process holds now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Look(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, len(os.listdir(f"/proc/{pid}/fd")))


def disk(home: Path) -> float:
    """Megabytes of all files of the runs."""
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) / 2**20


@contextmanager
def headless(scenario: str, env: dict[str, str]) -> Iterator[tuple[dict[str, int], Iterator[None]]]:
    """A run without a screen, that ends when we do."""
    words = rlplay("run", scenario, "--json")
    run = subprocess.Popen(words, env=os.environ | env, stdout=subprocess.DEVNULL)

    def waiting() -> Iterator[None]:
        while run.poll() is None:
            time.sleep(PAUSE)
            yield

    try:
        yield {"run": run.pid}, waiting()
    finally:
        run.terminate()
        run.wait()


@contextmanager
def screen(scenario: str, env: dict[str, str]) -> Iterator[tuple[dict[str, int], Iterator[None]]]:
    """A screen whose engine trains, and hands that never rest."""
    terminal = Terminal(rlplay(scenario), env=env)
    terminal.wait_for("paused", timeout=120)
    engine = child_of(terminal.pid, ENGINE)
    assert engine is not None, terminal.text()
    terminal.press(" ")

    def pressing() -> Iterator[None]:
        for key in itertools.cycle(ROUND):
            end = time.monotonic() + PAUSE
            while (left := end - time.monotonic()) > 0:
                terminal.receive(left)
            terminal.press(key)
            yield

    try:
        yield {"screen": terminal.pid, "engine": engine}, pressing()
    finally:
        terminal.close()


def soaked(kind: str, minutes: int) -> None:
    """Let it run, say each minute what it holds, and at the end how much that grew."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        env, scenario = {"RLPLAY_HOME": folder}, Path(folder, "soak.yaml")
        scenario.write_text(SCENARIO)
        with {"headless": headless, "screen": screen}[kind](str(scenario), env) as (processes, steps):
            began, seen = time.monotonic(), list[dict[str, Look]]()
            for _ in steps:
                if time.monotonic() - began < 60 * (len(seen) + 1):
                    continue
                seen.append({name: look(pid) for name, pid in processes.items()})
                held = "  ".join(
                    f"{name} {now.megabytes:.0f} MB, {now.descriptors} open" for name, now in seen[-1].items()
                )
                print(f"{len(seen):4} min  {held}  disk {disk(Path(folder)):.0f} MB", flush=True)
                if len(seen) >= minutes:
                    break
    tenth = max(1, len(seen) // 10)
    for name in processes:
        held = [now[name].megabytes for now in seen]
        first, last = statistics.median(held[tenth : 2 * tenth] or held), statistics.median(held[-tenth:])
        growth = last / first - 1
        print(f"{name:8} {first:.0f} → {last:.0f} MB: {growth:+.1%}, {growth / GROWTH:.2f} of the limit")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("headless", "screen"))
    parser.add_argument("--minutes", type=int, default=60)
    arguments = parser.parse_args()
    soaked(arguments.kind, arguments.minutes)


if __name__ == "__main__":
    main()

"""How long a run of 10,000 updates takes to write, to open and to look into.

Run with `python -m tests.benchmarks.bench_runfile`. Prints medians; an update has 16 completions of up to 12 tokens
unless given otherwise. Two gigabytes:

    python -m tests.benchmarks.bench_runfile --prompts 64 --generations 96 --length 320 --sparse
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.trace.thinning import RECENT, stride
from tests.recorded import synthetic_started, synthetic_update


def measure(work: Callable[[], object], times: int) -> float:
    """Median wall-clock milliseconds of `work`."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def opened(path: Path) -> None:
    """What the screen reads before a recorded run can be looked at."""
    with RunReader(path) as reader:
        reader.updates()
        reader.detailed()
        reader.history()


def stays(number: int, updates: int) -> bool:
    """Whether update `number` still has its tokens at the end of a run of so many `updates`."""
    return number > updates - RECENT or (number - 1) % stride(updates) == 0


def main() -> None:
    """Write a run, then measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=10_000)
    parser.add_argument("--prompts", type=int, default=4)
    parser.add_argument("--generations", type=int, default=4)
    parser.add_argument("--length", type=int, default=12)
    parser.add_argument(
        "--sparse", action="store_true", help="updates that will be thinned out are small from the start"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.rlplay"
        shape = {"prompts": asked.prompts, "generations": asked.generations, "length": asked.length}
        templates = [synthetic_update(number, **shape) for number in range(1, 9)]
        small = synthetic_update(1)
        writer = RunWriter.create(path, synthetic_started())
        taken = []
        for number in range(1, asked.updates + 1):
            began = time.perf_counter()
            whole = not asked.sparse or stays(number, asked.updates)
            for record in templates[number % len(templates)] if whole else small:
                writer.append(msgspec.structs.replace(record, update=number))
            taken.append((time.perf_counter() - began) * 1000)
        writer.close()
        print(f"write one update     {statistics.median(taken):8.1f} ms, slowest {max(taken):.0f} ms")
        print(f"file                 {path.stat().st_size / 2**20:8.1f} MiB")
        print(f"open with history    {measure(lambda: opened(path), 9):8.1f} ms for {asked.updates} updates (< 1000)")
        with RunReader(path) as reader:
            detailed = reader.detailed()
            jump = measure(lambda: reader.load(random.choice(detailed)), 51)
            print(f"jump to an update    {jump:8.1f} ms, {len(detailed)} with detail (< 100)")
            numbers = reader.updates()
            print(f"jump to any update   {measure(lambda: reader.load(random.choice(numbers)), 51):8.1f} ms")


if __name__ == "__main__":
    main()

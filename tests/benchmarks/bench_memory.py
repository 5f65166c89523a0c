"""What the screen's process holds: when it has started, and after a long run.

    python -m tests.benchmarks.bench_memory [--updates 10000]

The app draws what a source feeds it, an update of 64 answers of up to 24 tokens at a time, as fast as it takes
them. Megabytes are resident ones (Linux only).
"""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

import msgspec

from rlplay.trace.records import AnyRecord
from tests.recorded import synthetic_update
from tests.ui.stage import playground

LIMIT, GROWTH = 150, 0.1
"""Megabytes at the most, and how much may come on top between a tenth of the run and its end."""


def resident() -> float:
    """Megabytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def held(updates: int) -> tuple[float, float, float]:
    """Megabytes after the first update, a tenth of them and all."""
    app, source = playground()
    shapes = [synthetic_update(n, prompts=8, generations=8, length=24) for n in range(1, 9)]
    seen = []
    async with app.run_test(size=(160, 50)) as pilot:
        for number in range(1, updates + 1):
            records: list[AnyRecord] = [
                msgspec.structs.replace(record, update=number) for record in shapes[number % len(shapes)]
            ]
            source.records(records)
            source.status(number, running=True)
            if number % 5 == 0 or number == 1:
                await pilot.pause()
            if number in (1, updates // 10, updates):
                app.refresher.everything()
                await pilot.pause()
                seen.append(resident())
    return seen[0], seen[1], seen[2]


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=10_000)
    given = parser.parse_args()
    first, tenth, last = asyncio.run(held(given.updates))
    print(f"after the first update            {first:6.0f} MB  {first / LIMIT:5.2f} of the limit")
    print(f"after {given.updates // 10:6,} updates              {tenth:6.0f} MB")
    print(f"after {given.updates:6,} updates              {last:6.0f} MB  {last / LIMIT:5.2f} of the limit")
    print(
        f"growth from a tenth to the end    {last / tenth - 1:6.1%}     {(last / tenth - 1) / GROWTH:5.2f} of the limit"
    )


if __name__ == "__main__":
    main()

"""How quickly an update of the past is on the screen, and a branch's first update.

    python -m tests.benchmarks.bench_timeline

Everything in a pseudo-terminal, as a user has it: a recording of 150 updates with 64 answers of up to 64 tokens, of
which random ones are looked at from the timeline; then the flagship scenario, branched after its second update.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from pathlib import Path

import msgspec

from rlplay.trace.records import AnyRecord
from rlplay.trace.runfile import RunWriter
from rlplay.ui.app import RlplayApp
from rlplay.ui.session.sources import ReplaySource
from tests.benchmarks.bench_screen import report
from tests.recorded import synthetic_started, synthetic_update
from tests.terminal import Terminal, rlplay

JUMP, BRANCH = 0.1, 10.0
"""The limits, in seconds."""
_UPDATES, _SHAPES = 150, 5


def recorded(path: Path) -> Path:
    """A long run; its updates are a few, again and again under other numbers."""
    shapes = [synthetic_update(n, prompts=8, generations=8, length=64) for n in range(1, _SHAPES + 1)]
    writer = RunWriter.create(path, synthetic_started())
    for number in range(1, _UPDATES + 1):
        for record in shapes[number % _SHAPES]:
            writer.append(_again(record, number))
    writer.close()
    return path


def _again(record: AnyRecord, number: int) -> AnyRecord:
    return msgspec.structs.replace(record, update=number)


async def jump_seconds(path: Path, jumps: int = 40) -> list[float]:
    """Look at random updates: from the request to the painted screen."""
    app = RlplayApp(ReplaySource(path))
    times = []
    async with app.run_test(size=(160, 45)) as pilot:
        while app.play.session.status is None:
            await pilot.pause()
        numbers = app.play.session.source.recorded()[:-1]
        for number in random.Random(0).choices(numbers, k=jumps):
            began = time.perf_counter()
            assert app.play.session.look_at(number)
            app.refresher.everything()
            for widget in (app.panels.tokens, app.panels.rollouts, app.panels.inspector):
                for y in range(widget.size.height):
                    widget.render_line(y)
            times.append(time.perf_counter() - began)
            await pilot.pause()
    return times


def branch_seconds(folder: str) -> float:
    """From the key that starts a branch to its first update on the screen."""
    terminal = Terminal(rlplay("learn-to-think"), env={"RLPLAY_HOME": folder})
    try:
        terminal.wait_for("paused")
        for number in (1, 2):
            terminal.press("u")
            terminal.wait_for(f"update {number} .*paused", timeout=60)
        terminal.press("b")
        terminal.wait_for("Branch from update 2")
        began = time.monotonic()
        terminal.press("a")
        terminal.wait_for("┅ B[^\n]* update 3", timeout=120)
        return time.monotonic() - began
    finally:
        terminal.close()


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        times = asyncio.run(jump_seconds(recorded(Path(folder) / "long.rlplay")))
        report("a random update of 150, 64 × 64 tokens, median", statistics.median(times), JUMP)
        report("the slowest of 40", max(times), JUMP)
        report("a branch's first update", branch_seconds(folder), BRANCH)


if __name__ == "__main__":
    main()

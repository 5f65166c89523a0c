"""What the screen computes while an engine runs flat out: with each view, with each dialogue open, and to open it.

    python -m tests.benchmarks.bench_frames [--seconds 6]

An app without a terminal is fed 64 answers of up to 32 tokens, a position every 7 ms and a phase every 80 ms, as the
engine of the flagship scenario does on an idle machine. Processor milliseconds, which other programs disturb least:
those of a second, of a frame, and of a dialogue from its key until it rests, with nothing else going on.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from typing import Any

from textual._compositor import Compositor
from textual.events import Key

from rlplay.trace.records import AnyRecord
from tests.recorded import synthetic_sampling, synthetic_update
from tests.ui.stage import playground

FRAME, SECOND, OPENING = 0.02, 0.5, 0.1
"""The limits, in processor seconds: of the median frame, of a second of running, and of opening a dialogue."""
SHAPE = {"prompts": 8, "generations": 8, "length": 32}
BEHIND, SIZE = 20, (160, 50)
"""Updates that the run has behind it."""
VIEWS = {
    "curves": "",
    "belief river": "B",
    "answer tree": "T",
    "pull map": "P",
    "learning map": "E",
    "by position": "Q",
}
DIALOGUES = {"knobs": "k", "help": "question_mark", "glossary": "d", "timeline": "g", "palette": "ctrl+p", "sort": "o"}


async def press(app: Any, key: str, rest: float = 0.8) -> None:
    """Press a key and let everything that comes of it happen."""
    app.post_message(Key(key, key if len(key) == 1 else None))
    await asyncio.sleep(rest)


async def feed(source: Any) -> None:
    """Let the engine run: updates one after the other, again and again."""
    made: list[list[AnyRecord]] = []
    for number in range(BEHIND + 1, BEHIND + 9):
        made.append([*synthetic_sampling(number, **SHAPE), *synthetic_update(number, **SHAPE)[1:]])
        await asyncio.sleep(0)
    for records in made:
        for record in records:
            source.records([record])
            await asyncio.sleep(0.007 if record.update and type(record).__name__ == "Sampled" else 0.08)
        source.status(records[0].update, running=True)


async def measured(key: str, seconds: float, opening: int) -> tuple[float, list[float], list[float]]:
    """Processor seconds per second while running, with `key` pressed before; of each frame; of `opening` openings."""
    app, source = playground()
    frames: list[float] = []
    plain = Compositor.render_update

    def render_update(self: Compositor, *given: Any, **more: Any) -> Any:
        began = time.process_time()
        try:
            return plain(self, *given, **more)
        finally:
            frames.append(time.process_time() - began)

    async with app.run_test(size=SIZE):
        for number in range(1, BEHIND):
            source.update(number, **SHAPE)
        while not source.empty:
            await asyncio.sleep(0.01)
        await asyncio.sleep(1)
        opened = []
        for _ in range(opening):
            began = time.process_time()
            await press(app, key)
            opened.append(time.process_time() - began)
            await press(app, "escape")
        if key:
            await press(app, key)
        running = asyncio.create_task(feed(source))
        await asyncio.sleep(1)
        Compositor.render_update = render_update  # type: ignore[method-assign]
        began, clock = time.process_time(), time.perf_counter()
        while time.perf_counter() - clock < seconds and not running.done():
            await asyncio.sleep(0.05)
        share = (time.process_time() - began) / (time.perf_counter() - clock)
        Compositor.render_update = plain  # type: ignore[method-assign]
        running.cancel()
    return share, frames, opened


def main() -> None:
    """Print every figure beside its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--openings", type=int, default=5)
    asked = parser.parse_args()
    print(f"{'ms of a core':16}{'a second':>10}{'a frame':>9}{'opening':>9}    as shares of their limits")
    for name, key in {**VIEWS, **DIALOGUES}.items():
        opening = asked.openings if name in DIALOGUES else 0
        share, frames, opened = asyncio.run(measured(key, asked.seconds, opening))
        of = [
            (share, SECOND),
            (statistics.median(frames or [0.0]), FRAME),
            (statistics.median(opened or [0.0]), OPENING),
        ]
        figures = "".join(f"{taken * 1000:{width}.0f}" for (taken, _), width in zip(of, (10, 9, 9), strict=True))
        print(f"{name:16}{figures}    {'  '.join(f'{taken / limit:4.2f}' for taken, limit in of)}", flush=True)


if __name__ == "__main__":
    main()

"""How fast other trainers' runs are read in, and how soon the screen shows what a trainer recorded.

Run with `python -m tests.benchmarks.bench_import`. An update has 256 answers of 60 words or tokens. Prints answers per
second of processor time, and the median wall-clock seconds from the end of a recorded update until a replay that
follows the run shows it, which is to be at most 1.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rlplay.foreign.copy import Copy
from rlplay.record import Recorder
from rlplay.ui.app import RlplayApp
from rlplay.ui.session.sources import ReplaySource
from tests.foreign.grown import lines, tinker_rows, verl_rows

UPDATES, ANSWERS, WORDS = 10, 256, 60
TEXT = "word " * WORDS


def verl(folder: Path) -> None:
    """Rollouts of verl."""
    for update in range(1, UPDATES + 1):
        lines(folder / f"{update}.jsonl", [row | {"output": TEXT} for row in verl_rows(update)] * (ANSWERS // 4))


def tinker(folder: Path) -> None:
    """Rollout summaries of tinker-cookbook."""
    said = {"policy_response": {"messages": [{"role": "assistant", "content": TEXT}]}, "prompt": {"messages": []}}
    for update in range(UPDATES):
        rows = [row | {"steps": [row["steps"][0] | {"trace": said}]} for row in tinker_rows(update)]
        lines(folder / f"iteration_{update:06}" / "train_rollout_summaries.jsonl", rows * (ANSWERS // 4))


def recorded(folder: Path) -> None:
    """A recording of rlplay.record, with log-probabilities and one step."""
    with Recorder(folder, completions=ANSWERS) as recorder:
        recorder.begin("bench 1.0", {})
        for update in range(1, UPDATES + 1):
            add(recorder, update)


def add(recorder: Recorder, update: int) -> None:
    """Record an update."""
    tokens = ANSWERS * WORDS
    recorder.rollouts(
        update, prompts=["p"] * (ANSWERS // 8), group=np.arange(ANSWERS) // 8, lengths=[WORDS] * ANSWERS,
        texts=["word "] * tokens, token_ids=[7] * tokens, rewards={"r": np.arange(ANSWERS) % 2},
        advantages=np.arange(ANSWERS) % 2, old_logprobs=np.full(tokens, -0.5),
    )  # fmt: skip
    recorder.step(update, 0, 1, rows=np.arange(ANSWERS), logprobs=np.full(tokens, -0.5))
    recorder.end(update, {"reward": 0.5})


async def delays(folder: Path, updates: int = 7) -> list[float]:
    """Seconds from the end of each recorded update until the screen shows it."""
    found = []
    with Recorder(folder, completions=ANSWERS) as recorder:
        recorder.begin("bench 1.0", {})
        add(recorder, 1)
        app = RlplayApp(ReplaySource(Copy(folder).path))
        async with app.run_test(size=(120, 35)) as pilot:
            for update in range(2, updates + 2):
                await pilot.pause(0.37)  # so that updates end anywhere between two looks at the file
                add(recorder, update)
                began = time.perf_counter()
                while app.play.session.shown is None or app.play.session.shown.number < update:
                    await asyncio.sleep(0.01)
                found.append(time.perf_counter() - began)
    return found


def main() -> None:
    """Measure and print."""
    makers: dict[str, Callable[[Path], None]] = {"verl": verl, "tinker-cookbook": tinker, "rlplay.record": recorded}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RLPLAY_HOME"] = str(Path(folder, "home"))
        for name, make in makers.items():
            make(Path(folder, name))
            began = time.process_time()
            Copy(Path(folder, name))
            print(f"{name:16} {UPDATES * ANSWERS / (time.process_time() - began):8,.0f} answers/s")
        waited = asyncio.run(delays(Path(folder, "live")))
        print(f"on the screen after {statistics.median(waited):.2f} s (median), {max(waited):.2f} s (worst)")


if __name__ == "__main__":
    main()

"""What each way in which the sampler may differ from the trainer costs, as a ratio to a plain update.

    python -m tests.benchmarks.bench_sampler [--updates 8] [--rounds 3] [--observe light]

learn-to-think's prompts and sizes with the bundled model, one CPU thread, without evaluation. Each round plays every
case once, in turn, so that a machine's other work hits all alike; seconds are CPU time of the process, ratios are taken
within a round, and the median is printed. Snapshots are those of the last update.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from rlplay.engine.driver import Driver
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Job
from rlplay.trace.records import AnyRecord, Finished

CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "plain again": {},
    "top_p, raw": {"top_p": 0.9},
    "min_p": {"min_p": 0.05},
    "repetition_penalty": {"repetition_penalty": 1.1},
    "top_p, processed": {"top_p": 0.9, "logprobs_mode": "processed_logprobs"},
    "lag 1": {"sampler_lag": 1},
    "lag 4": {"sampler_lag": 4},
    "lag 4, old of the sampler": {"sampler_lag": 4, "old_logprobs_of": "sampler"},
    "sync every 4": {"weight_sync_steps": 4},
    "int8": {"sampler_dtype": "int8"},
    "int8, old of the sampler": {"sampler_dtype": "int8", "old_logprobs_of": "sampler"},
    "bfloat16": {"sampler_dtype": "bfloat16"},
}


def play(settings: dict[str, Any], updates: int) -> tuple[float, int, float]:
    """CPU seconds of an update after a first one, bytes of a snapshot, tokens of an update."""
    scenario = msgspec.structs.replace(load("learn-to-think"), eval_every=0)
    scenario = msgspec.structs.replace(scenario, settings={**scenario.settings, **settings})
    records: list[AnyRecord] = []
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(Job(scenario, f"{folder}/run.rlplay", device="cpu", threads=1), records.append)
        driver.load(lambda what, fraction: None)
        driver.advance("update", 1, lambda: False)
        began = time.process_time()
        driver.advance("update", updates, lambda: False)
        seconds = (time.process_time() - began) / updates
        driver.close()
        size = (Path(folder) / f"run.snapshots/{updates + 1:06d}.safetensors").stat().st_size
    tokens = [record.metrics["num_tokens"] for record in records if isinstance(record, Finished)]
    return seconds, size, (tokens[-1] - tokens[0]) / updates


def main() -> None:
    """Play the rounds, then print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--observe", default="full")
    given = parser.parse_args()
    rounds = [
        {name: play(case | {"observe": given.observe}, given.updates) for name, case in CASES.items()}
        for _ in range(given.rounds)
    ]
    print(f"{'case':28}{'s':>8}{'ratio':>8}{'per token':>11}{'snapshot':>10}")
    for name in CASES:
        seconds = statistics.median(each[name][0] for each in rounds)
        ratio = statistics.median(each[name][0] / each["plain"][0] for each in rounds)
        share = statistics.median(
            each[name][0] / each[name][2] / (each["plain"][0] / each["plain"][2]) for each in rounds
        )
        print(f"{name:28}{seconds:8.3f}{ratio:8.2f}{share:11.2f}{rounds[0][name][1] / 2**20:8.1f}MB")


if __name__ == "__main__":
    main()

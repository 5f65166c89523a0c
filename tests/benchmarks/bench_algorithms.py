"""Every algorithm on the same task, with one budget per kind: does it learn, on how many seeds, and at what cost.

    python -m tests.benchmarks.bench_algorithms [NAME …] [--seeds 5] [--results FILE]

Sums of two numbers, one CPU thread. Those that learn from rewards get one for a right answer: 12 updates of 16 prompts
x 8 completions. Those that learn from pairs get 16 updates of 64 pairs in 4 minibatches, which the untrained model
wrote and the same verifier labelled (a coin where both answers are right, or both wrong). They never see an answer of
their own, so they need more. Budget, step size and beta are the same for all of these, chosen on seed 1, the weakest.

A seed counts as improved when held-out accuracy rises by at least .1. Results are added to FILE as they come, so that a
run that was cut short goes on; without names, every algorithm that FILE lacks is run. The table is Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import msgspec

from rlplay.algorithms.catalogue import PRESETS
from rlplay.engine.driver import Driver
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.records import AnyRecord, Evaluated, Finished

UPDATES, PAIR_UPDATES, IMPROVED = 12, 16, 0.1
SETTINGS = {
    "num_prompts": 16,
    "num_generations": 8,
    "max_completion_length": 12,
    "learning_rate": 4e-4,
    "reward_weights": {"correct": 1.0},
}
FROM_PAIRS = SETTINGS | {"num_prompts": 64, "num_minibatches": 4, "learning_rate": 2e-4, "beta": 0.5}
_BARS = "▁▂▃▄▅▆▇█"


class Run(msgspec.Struct):
    """One algorithm on one seed: held-out accuracy before and after, reward by update, CPU seconds."""

    algorithm: str
    seed: int
    before: float
    after: float
    rewards: list[float]
    seconds: float


def play(algorithm: str, seed: int) -> Run:
    """Train from the pocket model and look at what became of it."""
    records: list[AnyRecord] = []
    from_pairs = PRESETS[algorithm].axes["loss_type"] != "policy_gradient"
    settings, updates = (FROM_PAIRS, PAIR_UPDATES) if from_pairs else (SETTINGS, UPDATES)
    scenario = Scenario(
        name="bench", title="", question="", task="arithmetic", settings=settings | {"algorithm": algorithm},
        seed=seed, max_updates=updates, eval_every=updates, eval_prompts=1000,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(Job(scenario, f"{folder}/run.rlplay", device="cpu", threads=1), records.append)
        driver.load(lambda what, fraction: None)
        began = time.process_time()
        driver.advance("update", updates, lambda: False)
        seconds = time.process_time() - began
        driver.close()
    held_out = [r.metrics["eval_reward"] for r in records if isinstance(r, Evaluated)]
    rewards = [r.metrics["reward"] for r in records if isinstance(r, Finished) and "reward" in r.metrics]
    return Run(algorithm, seed, held_out[0], held_out[-1], rewards, seconds)


def table(runs: list[Run]) -> str:
    """One Markdown row per algorithm, in the order of the presets."""
    lines = [
        "| algorithm | reward, update by update | held-out before | after: mean (worst–best) | improved | CPU s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, preset in PRESETS.items():
        mine = [run for run in runs if run.algorithm == name]
        if not mine:
            continue
        after = sorted(run.after for run in mine)
        improved = sum(run.after - run.before >= IMPROVED for run in mine)
        curve = [statistics.mean(values) for values in zip(*(run.rewards for run in mine), strict=True)]
        lines.append(
            f"| {preset.title} | {sparkline(curve)} | {short(statistics.mean(run.before for run in mine))} "
            f"| {short(statistics.mean(after))} ({short(after[0])}–{short(after[-1])}) "
            f"| {improved} of {len(mine)} | {statistics.median(run.seconds for run in mine):.0f} |"
        )
    return "\n".join(lines)


def sparkline(values: list[float]) -> str:
    """Values from 0 to 1 as bars of fixed scale; a dash for none."""
    bars = "".join(_BARS[min(7, max(0, int(8 * value)))] for value in values)
    return f"`{bars}`" if bars else "–"


def short(share: float) -> str:
    """A share as .87."""
    return f"{share:.2f}".removeprefix("0")


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser()
    alone = [name for name, each in PRESETS.items() if name != "reward-model" and not each.axes["distillation_weight"]]
    parser.add_argument("names", nargs="*", default=alone)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    runs: list[Run] = []
    if given.results is not None and given.results.exists():
        runs = msgspec.json.decode(given.results.read_bytes(), type=list[Run])
    for seed in range(given.seeds):
        for name in given.names:
            if any(run.algorithm == name and run.seed == seed for run in runs):
                continue
            runs.append(play(name, seed))
            print(f"{name} seed {seed}: {runs[-1].before:.3f} → {runs[-1].after:.3f}", flush=True)
            if given.results is not None:
                given.results.write_bytes(msgspec.json.encode(runs))
    print(table(runs))


if __name__ == "__main__":
    main()

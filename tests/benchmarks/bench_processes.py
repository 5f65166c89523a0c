"""What a second process saves: updates per second of one run trained in 1, 2, … processes; and whether they agree.

    python -m tests.benchmarks.bench_processes [--counts 1 2] [--updates 6] [--prompts 8] [--length 32]

The bundled model with 8 answers to each prompt, a KL to the reference, one thread a process, gloo. The median update
after the first is taken. Wall clock is what a user waits, if as many cores are free as there are processes.
Processor seconds are those of the busiest process, which other work on the machine disturbs least; what a process
waits for the others is not in them. Weights are compared after two updates in float64.

2 CPU cores, both busy with other work: of the processor seconds of one process, each of two needs 0.76 with 32 prompts
(1.32x), 0.98 with 8 (1.02x): tokens are sampled one after the other, however few answers there are, and what answers
have in common is computed once in each process. Weights are at most 3e-8 apart: log-probabilities are float32.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from rlplay.processes import launch
from tests.benchmarks import bench_update

_COMPARED = 2
_TOLERANCE = 1e-6


def child(model: str, folder: Path, name: str, prompts: int, length: int, updates: int, exact: bool) -> None:
    """Train in this process, alone or as one of several; leaves the times and the weights in the folder."""
    import torch

    from rlplay.engine import ranks
    from rlplay.engine.driver import Driver
    from rlplay.processes import in_several
    from rlplay.scenario.schema import Job, Scenario
    from rlplay.trace.records import AnyRecord, Finished
    from rlplay.trusted import follow

    follow([bench_update.__file__])
    if in_several():
        ranks.join(os.environ, "cpu")
    ends: list[tuple[float, float]] = []

    def keep(record: AnyRecord) -> None:
        if isinstance(record, Finished):
            ends.append((time.perf_counter(), time.process_time()))

    scenario = Scenario(
        name="bench", title="", question="", model=model, task="word_problems",
        reward=[f"{bench_update.__file__}:correct"], eval_every=0, max_updates=updates,
        settings={"algorithm": "grpo", "num_prompts": prompts, "num_generations": 8, "beta": 0.04,
                  "max_completion_length": length, "learning_rate": 1e-4},
    )  # fmt: skip
    driver = Driver(Job(scenario, str(folder / f"{name}-{exact}.rlplay"), "cpu", threads=1), keep)
    driver.load(lambda what, fraction: None)
    if exact:
        driver._state.lm.policy.double()
        driver._state.lm.reference.double()
    driver.advance("update", updates, lambda: False)
    rank = os.environ.get("RANK", "0")
    if exact:
        torch.save({name: p.detach() for name, p in driver._state.parameters.items()}, folder / f"{name}-{rank}.pt")
    else:
        times = [[b[which] - a[which] for a, b in pairwise(ends)] for which in range(2)]
        (folder / f"{name}-{rank}.json").write_text(json.dumps(times))
    driver.close()


def train(count: int, folder: Path, words: list[str]) -> None:
    """Train in `count` processes, whose times or weights are then in the folder."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_processes", "--child", str(folder), "--name", str(count)]
    if count == 1:
        subprocess.run([*command, *words], check=True)
    elif (ended := launch([*command, *words], count)) != (0, ""):
        sys.exit(f"exit status {ended[0]} {ended[1]}")


def seconds(count: int, folder: Path) -> tuple[float, float]:
    """Median seconds of an update in `count` processes: by the clock, and of the busiest one's processor."""
    found = [json.loads((folder / f"{count}-{rank}.json").read_text()) for rank in range(count)]
    wall, busy = ([statistics.median(times[which]) for times in found] for which in range(2))
    return max(wall), max(busy)


def difference(one: Path, other: Path) -> float:
    """The largest difference between the weights of two runs."""
    import torch

    first, second = torch.load(one), torch.load(other)
    return max(float((first[name] - second[name]).abs().max()) for name in first)


def main() -> None:
    """Print the times of each number of processes, and by how much the weights differ from those of the first."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--exact", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--name", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = ["--prompts", str(given.prompts), "--length", str(given.length)]
    if given.child:
        folder = given.child
        child(str(folder / "natural"), folder, given.name, given.prompts, given.length, given.updates, given.exact)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench_update.model_folder(folder, natural=True)
        first: tuple[float, float] | None = None
        for count in given.counts:
            train(count, folder, [*sizes, "--updates", str(given.updates)])
            train(count, folder, [*sizes, "--updates", str(_COMPARED), "--exact"])
            times = seconds(count, folder)
            first = first or times
            apart = difference(folder / f"{given.counts[0]}-0.pt", folder / f"{count}-0.pt")
            print(
                f"{count} {'process' if count == 1 else 'processes'}: {times[0]:.2f} s an update, "
                f"{first[0] / times[0]:.2f}x; {times[1]:.2f} processor seconds, {first[1] / times[1]:.2f}x; "
                f"weights {apart:.1g} apart", flush=True,
            )  # fmt: skip
            assert apart < _TOLERANCE, "several processes do not train as one does"


if __name__ == "__main__":
    main()

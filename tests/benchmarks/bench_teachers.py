"""What it costs to ask who taught a token, against the update that it is asked about without its sampling.

    python -m tests.benchmarks.bench_teachers [SCENARIO …] [--updates 4] [--targets 9] [--set num_iterations=4]

CPU seconds of the process with one thread, which other work on the machine disturbs least. "asked" is the answer to
`Teach` about the newest update, for tokens that it moved: the median, the quartiles and the largest. "course" is
`TeachCourse` over the whole run, per update. An update of one optimizer step is read from two snapshots; the steps of
others are taken once more, which costs what they cost.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from rlplay.engine.driver import Driver
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Job
from rlplay.trace.records import AnyRecord, Sampled
from rlplay.trace.targets import token_target
from rlplay.trace.teachers import Teach, TeachCourse
from rlplay.trace.update import Update


def seconds(what: Callable[[], object]) -> float:
    """Of processor time."""
    began = time.process_time()
    what()
    return time.process_time() - began


def never() -> bool:
    return False


def measured(name: str, updates: int, targets: int, changes: dict[str, object]) -> str:
    """One row of the table."""
    scenario, records = load(name), list[AnyRecord]()
    scenario = msgspec.structs.replace(scenario, settings={**scenario.settings, **changes}, eval_every=0)
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(Job(scenario, str(Path(folder) / "b.rlplay"), device="cpu", threads=1), records.append)
        driver.load(lambda what, fraction: None)
        driver.advance("update", updates - 2, never)
        costs = []
        for _ in range(2):
            driver.advance("phase", 1, never)
            costs.append(seconds(lambda: driver.advance("update", 1, never)))
        update = Update(updates)
        for record in records:
            if record.update == updates:
                update.add(record)
        times = [seconds(lambda t=t: list(driver.answers(t, never))) for t in questions(update, targets)]
        course = seconds(lambda: list(driver.answers(TeachCourse(questions(update, 1)[0].target), never))) / updates
        driver.close()
    cost, (low, middle, high) = min(costs), statistics.quantiles(times)
    steps = len(update.steps)
    return (
        f"{name}: {steps} step{'s' * (steps > 1)}, update without sampling {cost:.3f} s; asked {middle / cost:.2f} "
        f"of it ({low / cost:.2f} to {high / cost:.2f}, at most {max(times) / cost:.2f}); course {course / cost:.2f}"
    )


def questions(update: Update, count: int) -> list[Teach]:
    """About tokens all over the update's batch, of the fifth that it moved most."""
    sampled, new = update.sampled, update.new_logprobs()
    assert isinstance(sampled, Sampled)
    assert new is not None
    moved = np.where(sampled.mask > 0, np.abs(new - sampled.old_logprobs), 0.0)
    most = np.argsort(-moved)[: max(count, len(moved) // 5)]
    places = np.random.default_rng(0).permutation(most)[:count]
    rows = np.searchsorted(sampled.offsets, places, side="right") - 1
    tokens = places - sampled.offsets[rows]
    made = (token_target(update, int(row), int(token)) for row, token in zip(rows, tokens, strict=True))
    return [Teach(target, update.number, update.number) for target in made]


def main() -> None:
    """Print a row for each scenario."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scenarios", nargs="*", default=["learn-to-think", "two-plus-two", "dpo"])
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--targets", type=int, default=9)
    parser.add_argument("--set", nargs="*", default=[], help="settings, as num_iterations=4")
    given = parser.parse_args()
    changes = {name: msgspec.json.decode(value) for name, _, value in (each.partition("=") for each in given.set)}
    for name in given.scenarios:
        print(measured(name, given.updates, given.targets, changes), flush=True)


if __name__ == "__main__":
    main()

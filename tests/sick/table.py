"""Prints the first finding of every sick and every healthy run: `python -m tests.sick.table [SEED …]`."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rlplay.cli.table import table
from rlplay.health.health_of_run import Health
from rlplay.trace.run import Run
from rlplay.trace.runfile import RunReader
from tests.sick.runs import HEALTHY, SICK, Sample, play


@dataclass(frozen=True)
class Verdict:
    """What the checks say of a run: the first finding at its end, and at which updates there was any."""

    sample: Sample
    first: str
    since: int
    """The first update at which the cause comes first; 0 if it never does."""
    alarms: list[str]
    """The first finding of every update that has one."""

    @property
    def right(self) -> bool:
        """Whether the first finding names the cause; of a healthy run, whether there was never one."""
        return self.first == self.sample.cause if self.sample.cause else not self.alarms


def judge(sample: Sample, run: Path) -> Verdict:
    """Examine a run at each of its updates, as the screen does while it trains."""
    said: dict[int, str] = {}
    with RunReader(run) as reader:
        health = Health(Run.recorded(reader))
        for number in reader.updates():
            health.add(reader.load(number))
            found = health.findings(number, reader.settings(number))
            said[number] = found[0].name if found else ""
    since = next((number for number, name in said.items() if name and name == sample.cause), 0)
    return Verdict(sample, list(said.values())[-1], since, [name for name in said.values() if name])


def verdicts(folder: Path, seed: int) -> list[Verdict]:
    """All runs with one seed; those that `folder` holds already are not trained again."""
    return [judge(sample, play(sample, folder, seed)) for sample in (*SICK, *HEALTHY)]


def lines(judged: list[Verdict]) -> list[str]:
    """The table, and how many were right."""
    rows = [("", "run", "cause", "first finding", "since update")]
    for each in judged:
        said = each.first or (
            f"{len(each.alarms)} alarms: {', '.join(sorted(set(each.alarms)))}" if each.alarms else "–"
        )
        mark = "✓" if each.right else "✗"
        rows.append((mark, each.sample.name, each.sample.cause or "–", said, str(each.since or "–")))
    sick, healthy = ([v for v in judged if bool(v.sample.cause) is ill] for ill in (True, False))
    right, alarmed = sum(v.right for v in sick), sum(not v.right for v in healthy)
    return [
        *table(rows),
        f"{right} of {len(sick)} causes named first; {alarmed} of {len(healthy)} healthy runs alarmed",
    ]


def main() -> None:
    """Train, examine and print."""
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for seed in map(int, sys.argv[1:] or ["0"]):
            print(f"\nseed {seed}")
            print("\n".join(lines(verdicts(Path(folder), seed))))


if __name__ == "__main__":
    main()

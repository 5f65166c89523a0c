"""Tries to repair every sick run: `python -m tests.sick.repairs [SEED …]` prints what was tried and what became of it.

A healthy run has nothing to try. The engine is the run's own, with what is broken about it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rlplay.cli.table import table
from rlplay.engine.driver import Driver
from rlplay.health.health_of_run import examine_run
from rlplay.health.remedies.outcome import Outcome, Rehearsal
from rlplay.health.remedies.remedy import Untried
from rlplay.health.remedies.trial import first_to_try
from rlplay.scenario.schema import Job
from rlplay.trace.rehearsals import Rehearsed
from rlplay.trusted import follow
from tests.sick.runs import HEALTHY, REWARDS, SICK, Sample, scenario_of


@dataclass(frozen=True)
class Repair:
    """What was tried for a run, what became of it, and why nothing was tried, if so."""

    sample: Sample
    finding: str = ""
    since: str = ""
    outcomes: tuple[Outcome, ...] = ()
    untried: str = ""

    @property
    def cured(self) -> bool:
        """Whether the finding is gone with one of the remedies, or clearly better."""
        return any(each.helped for each in self.outcomes)


def repairs(folder: Path, seed: int) -> list[Repair]:
    """All runs with one seed."""
    return [repair(sample, folder, seed) for sample in (*SICK, *HEALTHY)]


def repair(sample: Sample, folder: Path, seed: int) -> Repair:
    """Train a run, and rehearse what its first finding would try."""
    with trained(sample, folder, seed) as (driver, run):
        evidence, found = examine_run(run)
        assert evidence is not None
        planned = first_to_try(evidence, found)
        if planned is None or isinstance(planned, Untried):
            said = "no finding" if planned is None else planned.reason
            return Repair(sample, found[0].name if found else "", untried=said)
        rehearsal = Rehearsal(planned, evidence)
        for answer in driver.answers(planned.question(), lambda: False):
            assert isinstance(answer, Rehearsed)
            rehearsal.take(answer)
        return Repair(sample, planned.finding.name, planned.why, tuple(rehearsal.outcomes()))


@contextmanager
def trained(sample: Sample, folder: Path, seed: int) -> Iterator[tuple[Driver, Path]]:
    """An engine at the end of a run, and the run's file."""
    run = folder / f"{sample.name.replace(' ', '-')}-{seed}.rlplay"
    follow([str(REWARDS)])
    driver = Driver(Job(scenario_of(sample, folder, seed), str(run), device="cpu", threads=1), lambda _record: None)
    driver.load(lambda _what, _fraction: None)
    with ExitStack() as broken:
        if sample.patch is not None:
            broken.enter_context(sample.patch())
        driver.advance("update", sample.updates, lambda: False)
        try:
            yield driver, run
        finally:
            driver.close()


def lines(found: list[Repair]) -> list[str]:
    """What was tried for each run, and how many are cured."""
    said = []
    for each in found:
        mark = "✓" if each.cured else "✗" if each.sample.cause else "·"
        said.append(f"{mark} {each.sample.name}: {each.finding or 'no finding'} {each.since or each.untried}")
        rows = [
            (o.remedy.label, o.remedy.text, o.verdict, o.text, _reward(o), ", ".join(o.brings)) for o in each.outcomes
        ]
        said += [f"    {row}" for row in table(rows)] if rows else []
    sick = [each for each in found if each.sample.cause]
    tried = [each.sample.name for each in found if not each.sample.cause and each.outcomes]
    return [*said, f"{sum(each.cured for each in sick)} of {len(sick)} sick runs cured; healthy runs tried: {tried}"]


def _reward(each: Outcome) -> str:
    return (
        "" if each.reward is None else f"reward {each.reward:.3f}" + ("" if each.kl is None else f" kl {each.kl:.3g}")
    )


def main() -> None:
    """Train, try and print."""
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for seed in map(int, sys.argv[1:] or ["0"]):
            print(f"\nseed {seed}")
            print("\n".join(lines(repairs(Path(folder), seed))), flush=True)


if __name__ == "__main__":
    main()

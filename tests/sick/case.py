"""A case of the examination: a run, its trouble in plain words, and what an answer has to say."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rlplay.api.recorded import open_run
from rlplay.record import Recorder
from tests.sick.runs import Sample, play

Numbers = dict[str, float]
Made = tuple[Path, Numbers]
Make = Callable[[Path, int], Made]
"""Makes the run of a seed in a folder: where it is, and the numbers which prove that the trouble is there."""
Curves = dict[int, Numbers]
OWN = "weights/"
"""Begins the metrics that rlplay's callback adds, which nobody else logs."""


@dataclass(frozen=True)
class Case:
    """`names` are the findings that may come first (none: any), and `words` a pattern that the first one's title,
    evidence or cause has to match, so that a practitioner would know what is wrong. `ticks` are the titles of
    checks that would reassure wrongly. A `normal` case is one to explain: no finding may come, and the words stand
    anywhere. A case without a trouble is well."""

    name: str
    trouble: str
    make: Make
    names: tuple[str, ...] = ()
    words: str = ""
    ticks: tuple[str, ...] = ()
    normal: bool = False
    there: Callable[[Numbers], bool] = lambda _: True  # whether the numbers prove that the trouble is there

    def made(self, folder: Path, seed: int) -> Made:
        """Its run, made unless it is there already."""
        known = folder / f"{self.slug}-{seed}.json"
        if known.exists():
            found = json.loads(known.read_text())
            return Path(found["run"]), found["proof"]
        run, proof = self.make(folder / f"{self.slug}-{seed}", seed)
        known.write_text(json.dumps({"run": str(run), "trouble": self.trouble, "proof": proof}))
        return run, proof

    @property
    def slug(self) -> str:
        """The name as part of a path."""
        return "".join(c if c.isalnum() else "-" for c in self.name.lower())


def trained(sample: Sample, *proof: str) -> Make:
    """A run of rlplay's engine; `proof` names metrics, of which the first and the last value are kept."""

    def make(place: Path, seed: int) -> Made:
        place.mkdir(parents=True, exist_ok=True)
        run = play(sample, place, seed)
        return run, ends(curves(run), *proof)

    return make


def curves(run: Path) -> Curves:
    """A run's metrics by update."""
    with open_run(run) as reader:
        return {number: dict(found) for number, found in reader.metrics.items()}


def ends(found: Curves, *names: str) -> Numbers:
    """The first and the last value of these metrics, the smallest, the largest and the median."""
    proof: Numbers = {}
    for name in names:
        values = [row[name] for row in found.values() if name in row]
        if values:
            proof |= {f"{name} first": values[0], f"{name} last": values[-1],
                      f"{name} least": min(values), f"{name} most": max(values),
                      f"{name} median": median(values)}  # fmt: skip
    return proof


def metrics_alone(make: Make) -> Make:
    """The same run as a log of metrics keeps it: curves, and not a word of answers, tokens or settings."""

    def bare(place: Path, seed: int) -> Made:
        run, proof = make(place.with_name(place.name + "-whole"), seed)
        with Recorder(place) as recorder:
            recorder.begin("a log of metrics", {})
            for number, found in curves(run).items():
                recorder.end(number, {k: v for k, v in found.items() if not k.startswith(OWN)})
        return place, proof

    return bare

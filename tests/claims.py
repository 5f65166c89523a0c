"""The claims of the lessons on seeds drawn at random, and a table of what was measured.

`python -m tests.claims --keep plays.jsonl --out docs/claims.md` draws ten seeds, prints them and plays every lesson on
each without a screen, on one thread, two at a time: hours. `--keep` keeps each finished play, and with the same file a
second call goes on where the first one stopped. A lesson that was changed to hold on these seeds is no longer untuned:
remove its plays from the file and give it other seeds. `python -m tests.claims flattery --seeds 3 14` plays one lesson
on two seeds. The exit status is 1 if some claim of a lesson fails on more than one seed in ten.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import platform
import random
import shutil
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import msgspec

from rlplay.scenario.claim import Bounds, Expect
from rlplay.scenario.course import order
from rlplay.scenario.loader import load
from rlplay.scenario.script import Exercise, parse
from rlplay.trace.numbers import compact, real_minus

DRAWN = 10
RESULT = "play.json"
SEEDS = 1_000_000
"""Seeds are drawn from 0 up to this."""


class Play(msgspec.Struct, frozen=True):
    """A lesson on one seed: whether each claim holds, its value (None if it has none), and the engine's seconds."""

    name: str
    seed: int
    passed: list[bool | None]
    values: list[float | None]
    seconds: float

    @property
    def held(self) -> bool:
        """Whether every claim was reached and holds."""
        return bool(self.passed) and all(self.passed)


class Weakest(NamedTuple):
    """The claim that is nearest to failing, the seeds on which it holds, and its values."""

    claim: Expect
    held: int
    values: list[float]


def claims_of(name: str) -> list[Expect]:
    """The claims of a lesson in the order in which a run without a screen checks them."""
    steps = parse(load(name).script)
    return [claim for step in steps for claim in (step.claims if isinstance(step, Exercise) else [step])
            if isinstance(claim, Expect)]  # fmt: skip


def play(name: str, seed: int, run: Path) -> Play:
    """Play a lesson to its end without a screen; raises RuntimeError with what it printed if it cannot."""
    from rlplay.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(["run", name, "--seed", str(seed), "--json", "--device", "cpu", "--out", str(run)])
    except SystemExit as ended:
        if ended.code not in (0, 1, None):
            raise RuntimeError(err.getvalue()) from None
    *updates, result = map(json.loads, out.getvalue().splitlines())
    claims = result["expectations"]
    if len(claims) != len(claims_of(name)):  # a writing exercise whose solution does not agree
        raise RuntimeError("; ".join(claim["text"] for claim in claims if not claim["passed"]))
    return Play(
        name, seed, [claim["passed"] for claim in claims], [claim["value"] for claim in claims],
        sum(update.get("seconds", 0.0) for update in updates),
    )  # fmt: skip


def plays(jobs: Sequence[tuple[str, int]], processes: int) -> Iterator[Play]:
    """The plays of these lessons and seeds as they end. All is imported once: a play is a fork."""
    import torch

    import rlplay.engine.driver  # noqa: F401 - the forks share it

    torch.set_num_threads(1)
    waiting, running = list(reversed(jobs)), dict[int, Path]()
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < processes:
                name, seed = waiting.pop()
                own = Path(folder, f"{name} {seed}")
                own.mkdir()
                running[_forked(name, seed, own)] = own
            pid, _ = os.wait()
            own = running.pop(pid)
            if not (own / RESULT).exists():
                raise RuntimeError(f"{own.name} ended without a result")
            yield msgspec.json.decode((own / RESULT).read_bytes(), type=Play)
            shutil.rmtree(own)  # the run and its snapshots: thousands of megabytes in all


def _forked(name: str, seed: int, own: Path) -> int:
    """The process that plays a lesson in a folder of its own and writes its `Play` there."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    try:
        (own / RESULT).write_bytes(msgspec.json.encode(play(name, seed, own / "run.rlplay")))
    except BaseException:  # a fork must not return into its parent's code
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def weakest(claims: Sequence[Expect], plays: Sequence[Play]) -> Weakest:
    """The claim that holds on the fewest seeds; of several, the one whose values come nearest to a bound, measured in
    standard deviations of these values."""
    measured = [
        Weakest(
            claim,
            sum(bool(each.passed[at]) for each in plays),
            [value for each in plays if (value := each.values[at]) is not None],
        )
        for at, claim in enumerate(claims)
    ]
    return min(measured, key=lambda each: (each.held, _distance(each.claim.bounds, each.values)))


def _distance(bounds: Bounds, values: Sequence[float]) -> float:
    """How far the values are from the nearest bound, in standard deviations; infinite where they do not vary."""
    spread = statistics.pstdev(values) if values else 0.0
    gaps = [abs(value - bound) for value in values for sign, bound in bounds.given if sign != "="]
    return min(gaps) / spread if gaps and spread else math.inf


def table(names: Sequence[str], plays: Sequence[Play], machine: str) -> str:
    """The page in Markdown: a row for each lesson."""
    of = {name: [each for each in plays if each.name == name] for name in names}
    seeds = {name: sorted(each.seed for each in of[name]) for name in names}
    held = {name: sum(each.held for each in of[name]) for name in names}
    enough = sum(held[name] * 10 >= len(seeds[name]) * 9 for name in names)
    common = max(seeds.values(), key=list(seeds.values()).count)
    others = [f"{name} on {_listed(own)}" for name, own in seeds.items() if own != common]
    lines = [
        "# The claims of the lessons, measured",
        "",
        f"Every lesson was played from beginning to end on {len(common)} seeds that nobody had tuned it on.",
        "`python -m tests.claims` draws them at random and writes this page. A lesson holds on a seed if every claim",
        "does, in its script and in its exercises after their solutions.",
        "",
        f"Seeds: {_listed(common)}. {machine}",
        *([f"Played on other seeds, as they had been changed for some of these: {'; '.join(others)}."] * bool(others)),
        "",
        f"{enough} of {len(names)} lessons hold on at least nine seeds in ten.",
        f"{sum(held.values())} of {sum(map(len, seeds.values()))} plays hold.",
        "",
        "The weakest claim is the one that holds on the fewest seeds. Of several, it is the one whose values come",
        "nearest to its bound, in standard deviations of these values. Seconds are the engine's, on one thread.",
        "",
        "| lesson | claims | seeds held | weakest claim | expected | its values | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join([*lines, *(_row(name, of[name]) for name in names), ""])


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def _row(name: str, plays: Sequence[Play]) -> str:
    claims = claims_of(name)
    claim, _, values = weakest(claims, plays)
    expected = " and ".join(f"{sign} {_number(bound)}" for sign, bound in claim.bounds.given)
    span = f"{_number(min(values))} … {_number(max(values))}" if values else "none"
    seconds = statistics.mean(each.seconds for each in plays)
    held = sum(each.held for each in plays)
    text = claim.text.replace("|", "\\|")
    return f"| {name} | {len(claims)} | {held} of {len(plays)} | {text} | {expected} | {span} | {seconds:.0f} |"


def _number(value: float) -> str:
    return real_minus(compact(value, 3))


def _machine() -> str:
    """Date, machine and versions, in a sentence."""
    import torch

    date, cores = time.strftime("%Y-%m-%d", time.gmtime()), os.cpu_count()
    machine = f"{platform.system()} on {platform.machine()} with {cores} cores"
    return f"{date}, {machine}, Python {platform.python_version()}, torch {torch.__version__}."


def main(args: list[str] | None = None) -> int:
    """The command."""
    os.environ["OMP_NUM_THREADS"] = "1"
    asked = argparse.ArgumentParser(prog="python -m tests.claims", description=__doc__.partition("\n")[0])
    asked.add_argument("names", nargs="*", help="lessons; all without one")
    asked.add_argument("--seeds", nargs="+", type=int, help=f"seeds; {DRAWN} are drawn without")
    asked.add_argument("--processes", type=int, default=2)
    asked.add_argument("--keep", type=Path, help="a file of plays: what it has is not played again, its seeds are used")
    asked.add_argument("--out", type=Path, help="where the table goes; printed without")
    given = asked.parse_args(args)
    kept = [] if given.keep is None or not given.keep.exists() else _kept(given.keep)
    names = given.names or order()
    drawn = given.seeds or list(dict.fromkeys(each.seed for each in kept))[:DRAWN] or _drawn()
    print("seeds", *drawn, flush=True)
    done = {(each.name, each.seed): each for each in kept}
    played = {name: {seed for known, seed in done if known == name} for name in names}
    # A lesson that has been played on other seeds needs fewer of these.
    jobs = [(n, s) for s in drawn for n in names if s not in played[n] and (given.seeds or len(played[n]) < len(drawn))]
    for each in plays(jobs, given.processes) if jobs else ():
        done[each.name, each.seed] = each
        _tell(each)
        if given.keep is not None:
            with given.keep.open("ab") as keep:
                keep.write(msgspec.json.encode(each) + b"\n")
    found = [each for each in done.values() if each.name in names]
    page = table(names, found, _machine())
    if given.out is None:
        print(page)
    else:
        given.out.write_text(page, encoding="utf-8")
    each_lesson = [[each.held for each in found if each.name == name] for name in names]
    return int(any(held.count(False) * DRAWN > len(held) for held in each_lesson))


def _drawn() -> list[int]:
    return random.SystemRandom().sample(range(SEEDS), DRAWN)


def _kept(path: Path) -> list[Play]:
    return [msgspec.json.decode(line, type=Play) for line in path.read_bytes().splitlines()]


def _tell(each: Play) -> None:
    claims = zip(claims_of(each.name), each.passed, each.values, strict=True)
    failed = [f"{claim.text}: {value}" for claim, passed, value in claims if not passed]
    print(f"{each.name} {each.seed} {each.seconds:.0f} s {'; '.join(failed) or 'holds'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""SIGKILL at random moments of everything that writes: nothing is lost, and nothing is left over.

`python -m tests.kills` makes the full count of each kind; `python -m tests.kills screen,engine 20 7` makes 20 of these
two, from kill 7 on. After each kill all processes are gone, every file belongs to a run, and every finished update
equals that of a run that nobody killed, bit for bit.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from rlplay import paths
from rlplay.trace.branch import branch
from rlplay.trace.files_on_disk import files_on_disk
from rlplay.trace.runfile import RunReader
from tests import kill_warm
from tests.kill_bench import PATIENCE, UPDATES, Bench, after_work, finished, killed, used, wait_until
from tests.kill_recorder import recorder
from tests.kill_warm import engine_of
from tests.terminal import Terminal, child_of, rlplay, running

ENGINE = "rlplay.engine.engine_process"
CTRL_Q = "\x11"
FORMATS = "jsonl", "npz", "tensorboard", "parquet", "trl", "model"


def headless(bench: Bench, dice: random.Random) -> None:
    """A run without a screen, from its start or resumed, between any two lines of its loop."""
    words = ["--resume", str(bench.runs[0])] if bench.runs else [str(bench.scenario)]
    before = finished(bench.runs[0]) if bench.runs else 0
    run = bench.command("run", *words)
    if dice.random() < 0.7:
        wait_until(lambda: used(run) == float("inf") or (bench.runs and finished(bench.runs[0]) > before))
    after_work(run, dice.uniform(0, 1.5))
    killed(run)
    os.waitpid(run, 0)


def loading(bench: Bench, dice: random.Random) -> None:
    """Screen, engine, both or a run without a screen, before there is anything to see."""
    words = ["resume", "last"] if bench.runs and dice.random() < 0.5 else [str(bench.scenario)]
    who, quiet = dice.choice(("run", "screen", "engine", "both")), subprocess.DEVNULL
    if who == "run":
        words = ["--resume", "last"] if words[0] == "resume" else words
        run = subprocess.Popen(rlplay("run", *words), env=bench.environment, stdout=quiet, stderr=quiet)
        after_work(run.pid, dice.uniform(0, 6))
        killed(run.pid)
        run.wait()
        return
    with closing(Terminal(rlplay(*words), env=bench.environment)) as terminal:
        if who == "screen":
            worked(terminal, terminal.pid, dice.uniform(0, 3))
            terminal.kill()
            return
        drained(terminal, lambda: child_of(terminal.pid, ENGINE))
        engine = child_of(terminal.pid, ENGINE)
        assert engine is not None, terminal.text()
        target = used(engine) + dice.uniform(0, 6)
        drained(terminal, lambda: used(engine) >= target or "paused" in terminal.text())  # then it rests
        if who == "both":
            terminal.kill()
            killed(engine)
            return
        killed(engine)
        terminal.wait_for("engine has ended", timeout=PATIENCE)
        terminal.press(CTRL_Q)
        assert terminal.wait_for_exit(PATIENCE) in (0, 2)  # 2: it had not begun


def worked(terminal: Terminal, pid: int, seconds: float) -> None:
    """Wait as `after_work` does, reading what the screen writes."""
    target = used(pid) + seconds
    drained(terminal, lambda: used(pid) >= target)


def drained(terminal: Terminal, holds: Callable[[], object]) -> None:
    """Read what a screen writes until this holds, or it has ended."""
    end = time.monotonic() + PATIENCE
    while not holds() and running(terminal.pid):
        terminal.read(0.1)
        assert time.monotonic() < end, "it does not come"


def playing(bench: Bench) -> tuple[Terminal, Path]:
    """A screen whose engine trains, and the run."""
    words = ["resume", "last"] if bench.runs else [str(bench.scenario)]
    before = finished(bench.runs[0]) if bench.runs else 0
    terminal = kill_warm.screen(words, bench.environment)
    terminal.wait_for("paused", timeout=PATIENCE)
    terminal.press(" ")
    drained(terminal, lambda: finished(bench.runs[0]) > before)
    return terminal, bench.runs[0]


def engine(bench: Bench, dice: random.Random) -> None:
    """The engine alone, three times: the screen lives, shows what was there, and starts another."""
    terminal, run = playing(bench)
    with closing(terminal):
        for _ in range(3):
            process = engine_of(terminal)
            assert process is not None
            worked(terminal, process, dice.uniform(0, 1))
            killed(process)
            terminal.wait_for("engine has ended", timeout=PATIENCE)
            before = finished(run)
            terminal.press("r")
            terminal.wait_for("paused", timeout=PATIENCE)
            terminal.press(" ")
            drained(terminal, lambda n=before: finished(run) > n)
        terminal.press(CTRL_Q)
        assert terminal.wait_for_exit(PATIENCE) == 0


def screen(bench: Bench, dice: random.Random) -> None:
    """The screen alone: the engine ends by itself."""
    terminal, _ = playing(bench)
    with closing(terminal):
        worked(terminal, terminal.pid, dice.uniform(0, 1))


def both(bench: Bench, dice: random.Random) -> None:
    """Screen and engine at once, as when a machine is short of memory."""
    terminal, _ = playing(bench)
    with closing(terminal):
        process = engine_of(terminal)
        assert process is not None
        worked(terminal, process, dice.uniform(0, 1))
        killed(process)


def branching(bench: Bench, dice: random.Random) -> None:
    """A copy of a run for a branch: it is there whole, or not at all, and the run itself is as before."""
    before = bench.reference.read_bytes()
    with closing(RunReader(bench.reference)) as reader:
        kept = reader.snapshots()[0].update
    update = dice.choice((0, 1, UPDATES // 2, UPDATES))

    there = len(bench.runs)
    pid = bench.forked(lambda: branch(bench.reference, update, paths.new_run("copy")))
    after_work(pid, dice.uniform(0, 0.4))
    killed(pid)
    os.waitpid(pid, 0)
    assert bench.reference.read_bytes() == before
    for run in bench.runs[: len(bench.runs) - there]:
        with closing(RunReader(run)) as reader:
            assert reader.updates() == list(range(1, update + 1)), "a part of a copy"
            assert len(reader.snapshots()) == (update >= kept), "a copy that cannot go on"
        for path in [*files_on_disk(run).snapshots, *files_on_disk(run).run]:
            path.unlink()
        run.with_suffix(".snapshots").rmdir()


def exporting(bench: Bench, dice: random.Random) -> None:
    """An export: it is there whole, or not at all, the next one succeeds, and the run is as before."""
    before, kind = bench.reference.read_bytes(), dice.choice(FORMATS)
    out = bench.folder / f"out.{kind}"
    words = ["export", str(bench.reference), "--format", kind, "--out", str(out)]
    if kind not in ("trl", "tensorboard"):  # which are of the whole run
        words += ["--update", str(UPDATES)]

    def content() -> list[int]:  # names have the time in them
        return sorted(path.stat().st_size for path in [out, *out.rglob("*")] if path.is_file())

    def remove() -> None:
        for path in sorted(out.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        if out.exists():
            out.unlink() if out.is_file() else out.rmdir()

    pid = bench.command(*words)
    after_work(pid, dice.uniform(0, 1.0 if kind != "model" else 4))
    killed(pid)
    os.waitpid(pid, 0)
    partly = content()
    remove()
    os.waitpid(bench.command(*words), 0)
    whole = content()
    assert whole, f"the next export to {kind} fails"
    assert not partly or partly == whole, f"{kind}: {partly} of {whole}"
    remove()
    assert not list(bench.folder.glob("*.partial")), "a part is left over"
    assert bench.reference.read_bytes() == before


KINDS = {
    "headless": (headless, 100, 1),
    "loading": (loading, 60, 1),
    "engine": (engine, 15, 3),
    "screen": (screen, 30, 1),
    "both": (both, 30, 1),
    "branching": (branching, 40, 1),
    "exporting": (exporting, 30, 1),
    "recorder": (recorder, 30, 1),
}
"""What kills, how often, and how many kills that is each time."""


def played(kind: str, number: int, bench: Bench) -> str:
    """Play the kill of a kind with its seed; what was wrong, or an empty text."""
    wrong = ""
    try:
        KINDS[kind][0](bench, random.Random(f"{kind} {number}"))
        bench.check()
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        wrong = f"{kind} {number}: {type(error).__name__} at {place.name}:{place.lineno}: {error}"
        for pid in bench.processes():
            killed(pid)
    bench.forget_finished()
    return wrong


def main(words: list[str]) -> int:
    """Kill one kind or all, in turns, and print what was wrong and how many kills each kind has had."""
    os.environ["OMP_NUM_THREADS"] = "1"
    kill_warm.warm_up()
    kinds = words[0].split(",") if words else list(KINDS)
    first = int(words[2]) if len(words) > 2 else 0
    failed, done = 0, dict.fromkeys(kinds, 0)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        most = int(words[1]) if len(words) > 1 else max(full for _, full, _ in KINDS.values())
        for turn in range(most):
            for kind in kinds:
                _, full, each = KINDS[kind]
                if len(words) <= 1 and turn >= full:
                    continue
                if wrong := played(kind, first + turn, bench):
                    failed += 1
                    print(wrong, flush=True)
                done[kind] += each
            print(f"{sum(done.values())} kills, {failed} wrong: {done}", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

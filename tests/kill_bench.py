"""Runs to kill, and what has to be true of them afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path

from rlplay import paths
from rlplay.cli import main as cli
from rlplay.trace.codec import RECORDS
from rlplay.trace.files_on_disk import files_on_disk, unfinished_snapshots
from rlplay.trace.runfile import RunFileError, RunReader
from rlplay.trace.update import Update
from tests.terminal import rlplay, running

SCENARIO = """\
title: Kills
question: Is anything lost?
task: arithmetic
seed: 1
eval_every: 0
max_updates: 1000
settings: {num_prompts: 2, num_generations: 4, max_completion_length: 8, num_iterations: 2}
"""
UPDATES = 60
"""Of the run that nobody kills. Others are killed until they have half as many, and not told where to stop."""
PATIENCE = 240.0
"""Seconds to wait for anything; the machine may be busy."""


class Bench:
    """A folder with runs to kill, and what they must be equal to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / f"home-{os.getpid()}"
        self.scenario = folder / "kills.yaml"
        self.scenario.write_text(SCENARIO)
        self.environment = os.environ | {"RLPLAY_HOME": str(self.home), "OMP_NUM_THREADS": "1"}
        (self.home / "runs").mkdir(parents=True)
        self.known: dict[Path, int] = {}  # finished updates by run
        self.sessions: list[int] = []  # of processes that were forked here

    @cached_property
    def reference(self) -> Path:
        """A run that nobody kills."""
        path = self.folder / "reference.rlplay"
        subprocess.run(
            rlplay("run", str(self.scenario), "--out", str(path), "--updates", str(UPDATES)),
            env=self.environment,
            check=True,
            capture_output=True,
        )
        return path

    @cached_property
    def numbers(self) -> dict[int, bytes]:
        """Its updates as `numbers` gives them."""
        return numbers(self.reference)

    @property
    def runs(self) -> list[Path]:
        """The run files of the home folder, newest first."""
        return sorted((self.home / "runs").glob("*.rlplay"), reverse=True)

    def check(self) -> None:
        """AssertionError if a kill has lost an update, changed a number or left a process or a file."""
        gone = wait_until(lambda: not self.processes(), 60)
        assert gone, f"left over: {self.processes()}"
        with mock_home(self.home):
            paths.sweep()
        allowed: set[Path] = set()
        for run in self.runs:
            files = files_on_disk(run)
            allowed |= {*files.run, *files.snapshots}
            unfinished = unfinished_snapshots(run.with_suffix(".snapshots"))
            assert len(unfinished) <= 1, f"resuming leaves {unfinished}"
            found = numbers(run)
            assert sorted(found) == list(range(1, len(found) + 1)), f"{run.name}: {sorted(found)}"
            assert len(found) >= self.known.get(run, 0), f"{run.name}: {len(found)} of {self.known[run]} are left"
            other = [update for update, content in found.items() if content != self.numbers[update]]
            assert not other, f"{run.name}: updates {other} differ"
            self.known[run] = len(found)
        files = {path for path in (self.home / "runs").rglob("*") if path.is_file()}
        assert files <= allowed, f"left over: {files - allowed}"
        folders = {path for path in (self.home / "runs").iterdir() if path.is_dir()}
        without = folders - {run.with_suffix(".snapshots") for run in self.runs}
        assert not without, f"without a run: {without}"

    def processes(self) -> list[int]:
        """The ids of the processes that work in this folder, but for this one."""
        found: list[int] = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                session = int((entry / "stat").read_text().rpartition(")")[2].split()[3])
                mine = session in self.sessions or str(self.home).encode() in (entry / "environ").read_bytes()
                if mine and int(entry.name) != os.getpid() and running(int(entry.name)):
                    found.append(int(entry.name))
        return found

    def forked(self, work: Callable[[], object]) -> int:
        """The id of a process that does this, in a session of its own, with what is imported here."""
        if pid := os.fork():
            self.sessions.append(pid)
            return pid
        status = 1
        try:
            os.setsid()
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nothing, stream)
            os.environ["RLPLAY_HOME"] = str(self.home)
            work()
            status = 0
        finally:
            os._exit(status)

    def command(self, *words: str) -> int:
        """The id of a process that carries out a command line, with what is imported here."""

        def carry_out() -> None:
            with contextlib.suppress(SystemExit):
                cli.main(list(words))

        return self.forked(carry_out)

    def forget_finished(self) -> None:
        """Begin a new run once one is at its end."""
        for run, count in list(self.known.items()):
            if count >= UPDATES / 2:
                for path in [*files_on_disk(run).snapshots, *files_on_disk(run).run]:
                    path.unlink()
                run.with_suffix(".snapshots").rmdir()
                del self.known[run]


def numbers(run: Path) -> dict[int, bytes]:
    """The finished updates of a run: what was sampled, scored, credited and learned, as bytes."""
    with closing(RunReader(run)) as reader:
        return {number: _encoded(reader.load(number)) for number in reader.updates()}


def _encoded(update: Update) -> bytes:
    assert update.finished is not None
    records = [update.sampled, update.scored, update.credited, *update.steps]
    metrics = repr(sorted(update.finished.metrics.items())).encode()
    return b"".join([*(RECORDS.encode(each) for each in records if each is not None), metrics])


@contextlib.contextmanager
def mock_home(home: Path) -> Iterator[None]:
    """Let this process keep its files in `home`."""
    before = os.environ.get("RLPLAY_HOME")
    os.environ["RLPLAY_HOME"] = str(home)
    try:
        yield
    finally:
        os.environ.pop("RLPLAY_HOME")
        if before is not None:
            os.environ["RLPLAY_HOME"] = before


def wait_until(holds: Callable[[], object], patience: float = PATIENCE) -> bool:
    """Whether it holds within so many seconds."""
    end = time.monotonic() + patience
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def finished(run: Path) -> int:
    """How many updates a run has, also while it is created."""
    try:
        with closing(RunReader(run)) as reader:
            return len(reader.updates())
    except RunFileError:
        return 0


def used(pid: int) -> float:
    """Processor seconds of a process; infinite once it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("inf")
    return float("inf") if fields[0] == "Z" else (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def after_work(pid: int, seconds: float) -> None:
    """Wait until a process has used so much more processor time, or has ended."""
    target = used(pid) + seconds
    assert wait_until(lambda: used(pid) >= target)


def killed(pid: int | None) -> None:
    """SIGKILL."""
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

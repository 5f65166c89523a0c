"""SIGKILL of a trainer that records, and of a reader that keeps a run file of its recording up to date."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress
from pathlib import Path

from rlplay.foreign.copy import Copy
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.record.format import Ended, part, read
from tests.kill_bench import Bench, killed, mock_home, numbers, used, wait_until
from tests.record import batches

UPDATES = 120


class Recordings:
    """A recording that nobody killed and its run file, and the place of those that are killed."""

    def __init__(self, bench: Bench) -> None:
        self.folder = bench.folder / "recordings"
        self.home = self.folder / "home"
        self.whole, self.cut = self.folder / "whole", self.folder / "cut"
        if not self.whole.exists():
            self.write(self.whole)
        with mock_home(self.home):
            self.numbers = numbers(Copy(self.whole).path)

    @staticmethod
    def write(folder: Path) -> None:
        """Record all updates."""
        with batches.begun(folder) as recorder:
            for update in range(1, UPDATES + 1):
                batches.write(recorder, update, batches.answers(update, 2, 4, 2), range(8))

    def follow(self) -> None:
        """Keep the run file of the recording that is cut up to date, for as long as this process lives."""
        with mock_home(self.home):
            while True:
                with suppress(ForeignRunError):  # nothing is there yet
                    copy = Copy(self.cut)
                    while True:
                        copy.pull()

    def copied(self) -> dict[int, bytes]:
        """The updates of the run file of the recording that was cut, brought up to date."""
        with mock_home(self.home):
            return numbers(Copy(self.cut).path)


def recorder(bench: Bench, dice: random.Random) -> None:
    """The writer of a recording, its reader, or both: whole frames stay, and the next reader goes on there."""
    found = Recordings(bench)
    writer, reader = bench.forked(lambda: found.write(found.cut)), bench.forked(found.follow)
    recording = part(found.cut, 0)
    wait_until(lambda: used(writer) == float("inf") or recording.exists())
    size = dice.randrange(part(found.whole, 0).stat().st_size)
    wait_until(lambda: used(writer) == float("inf") or recording.stat().st_size >= size)
    first, second = dice.sample((writer, reader), 2)
    killed(first)
    if dice.random() < 0.5:  # else the other one finishes what it is doing
        wait_until(lambda: used(writer) == float("inf"))
    killed(second)
    for process in (first, second):
        os.waitpid(process, 0)

    assert part(found.whole, 0).read_bytes().startswith(recording.read_bytes()), "a frame differs"
    ended = [frame.update for _, frame in read(recording) if isinstance(frame, Ended)]
    if read(recording):  # else it was killed before it had said what run this is
        copied = found.copied()
        assert sorted(copied) == ended == list(range(1, len(ended) + 1)), f"{sorted(copied)} of {ended} are copied"
        other = [update for update, content in copied.items() if content != found.numbers[update]]
        assert not other, f"updates {other} differ"
    shutil.rmtree(found.cut)
    shutil.rmtree(found.home)

"""Large recorded updates are in memory before somebody looks at them, and are never older than the file."""

import asyncio
import threading

import pytest

from rlplay.trace.records import Rewound
from rlplay.trace.runfile import RunFileError, RunReader, RunWriter
from rlplay.ui.session import read_ahead
from rlplay.ui.session.read_ahead import KEPT, ReadAhead
from tests.recorded import synthetic_run, synthetic_update


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(read_ahead, "AT_ONCE", 10)
    monkeypatch.setattr(read_ahead, "QUIET", 0.0)
    return synthetic_run(tmp_path / "a.rlplay", updates=6)


class Reading(RunReader):
    """A reader that notes what is read, and whether in a thread."""

    def __init__(self, path):
        self.read = []
        super().__init__(path)

    def load(self, number):
        self.read.append((number, threading.current_thread() is not threading.main_thread()))
        return super().load(number)


async def test_the_neighbours_of_an_update_are_read_in_a_thread(run):
    with Reading(run) as reader:
        ahead = ReadAhead(reader)
        ahead.load(3)
        await ahead._task
        assert reader.read == [(3, False), (4, True), (2, True)]
        assert [ahead.load(number).number for number in (2, 3, 4)] == [2, 3, 4]
        assert len(reader.read) == 3
        await ahead._task
        assert reader.read[3:] == [(5, True)], "only beside the last one that was asked for"
        assert sorted(ahead._kept) == [3, 4, 5]
        assert len(ahead._kept) <= KEPT
        await ahead.rest()


async def test_an_update_that_the_file_has_anew_is_read_anew(run):
    with Reading(run) as reader:
        ahead = ReadAhead(reader)
        before = ahead.load(3)
        assert ahead.load(3) is before
        writer = RunWriter.reopen(run)
        writer.append(Rewound(update=2, abandoned=6))
        with pytest.raises(RunFileError, match="no update 3"):
            ahead.load(3)
        for record in synthetic_update(3, seed=9):
            writer.append(record)
        writer.close()
        assert ahead.load(3).sampled.token_ids.tolist() != before.sampled.token_ids.tolist()
        await ahead.rest()


async def test_the_file_is_closed_only_when_no_thread_reads_it(run, monkeypatch):
    go_on, begun = threading.Event(), threading.Event()

    def slowly(self, number):
        begun.set()
        assert go_on.wait(10)
        return RunReader.load(self, number)

    with RunReader(run) as reader:
        ahead = ReadAhead(reader)
        ahead.load(3)
        monkeypatch.setattr(reader, "load", slowly.__get__(reader))
        await asyncio.to_thread(begun.wait, 10)
        resting = asyncio.create_task(ahead.rest())
        await asyncio.sleep(0)
        assert not resting.done()
        go_on.set()
        await resting
        assert ahead._task.cancelled()
        with pytest.raises(asyncio.CancelledError):
            await ahead.load_in_thread(2)


async def test_small_updates_are_read_when_they_are_asked_for(run, monkeypatch):
    with Reading(run) as reader:
        monkeypatch.setattr(read_ahead, "AT_ONCE", reader.load(3).tokens)
        ahead = ReadAhead(reader)
        ahead.load(3)
        assert ahead._task is None
        assert not ahead._kept
        await ahead.rest()


async def test_a_damaged_neighbour_says_so_only_when_it_is_asked_for(run):
    with Reading(run) as reader:
        reader._db.execute("PRAGMA query_only = OFF")
        reader._db.execute("UPDATE records SET data = x'00' WHERE number = 4 AND kind = 'sampled'")
        ahead = ReadAhead(reader)
        ahead.load(3)
        await ahead._task
        with pytest.raises(RunFileError, match="damaged"):
            ahead.load(4)
        assert ahead.load(3).number == 3
        await ahead.rest()

"""Where a session's events come from: the playhead of a recording, a file that grows, an engine that starts anew."""

import asyncio
import sqlite3
import threading

import pytest

from rlplay.link import framing
from rlplay.link.messages import (
    COMMANDS,
    EVENTS,
    UNSAID,
    Abilities,
    Advance,
    Failed,
    Pause,
    Recorded,
    Rewind,
    Status,
)  # fmt: skip
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.records import Changed, Notice, Rewound
from rlplay.trace.runfile import RunFileError, RunWriter
from rlplay.ui.session import sources
from rlplay.ui.session.attached import GONE, AttachedSource
from rlplay.ui.session.happenings import Moved, Restored
from rlplay.ui.session.sources import LiveSource, ReplaySource
from tests.recorded import synthetic_run, synthetic_started, synthetic_update

FOREVER = Advance("forever")


def run_of(path, updates=4):
    return synthetic_run(path / "run.rlplay", updates=updates)


@pytest.fixture
async def replay(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "PACE", 0)
    monkeypatch.setattr(sources, "POLL_SECONDS", 0)
    source = ReplaySource(run_of(tmp_path))
    await source.start()
    yield source
    await source.close()


def taken(source):
    """What the source has said since the last time."""
    return [source._queue.get_nowait() for _ in range(source._queue.qsize())]


def moves(events):
    return [event.update.number for event in events if isinstance(event, Moved)]


async def until(source, kind, *more):
    """Append to the run file, and wait for an event of this kind: all that was said until then."""
    writer = RunWriter.reopen(source.path)
    for record in more:
        writer.append(record)
    writer.close()
    events = []
    async with asyncio.timeout(30):
        while not events or not isinstance(events[-1], kind):
            events.append(await source._queue.get())
    return events


async def test_a_recording_begins_with_all_that_it_has_but_its_tokens(replay):
    begun, history, moved, status = taken(replay)
    assert begun == Recorded(synthetic_started())
    assert (history.back_to, history.history.updates) == (0, [1, 2, 3, 4])
    assert (moved.update.number, moved.problem) == (4, "")
    assert status == Status(False, 4, "after", synthetic_started().settings, finished=True, recorded=4)
    watch = replay._watch
    await replay.start()
    assert replay._watch is watch


async def test_a_recording_without_updates_is_at_its_start(tmp_path, monkeypatch):
    known = []
    monkeypatch.setattr(sources, "check_understood", known.append)
    source = ReplaySource(run_of(tmp_path, updates=0))
    assert known == [source._reader]
    await source.send(Pause())
    await source.start()
    before, _, _, moved, after = taken(source)
    assert moved.update.number == 0
    assert before == after == Status(False, 0, "sample", synthetic_started().settings, finished=True, recorded=0)
    await source.close()


async def test_commands_move_the_playhead(replay):
    seen = []
    for command in (
        Rewind(2), Advance("token"), Advance("phase"), Advance("phase", 2), Advance("step"), Advance("update"),
        Advance("update", 5), Advance("token"), Pause(), Rewind(0), Advance("update"),
    ):  # fmt: skip
        taken(replay)
        await replay.send(command)
        status = replay._queue._queue[-1]
        assert status.recorded == 4
        assert not status.running
        if command == Advance("token"):
            assert replay._point == 1 or status.finished
        seen.append((moves(taken(replay))[:2], status.phase, status.update, status.finished))
    assert seen == [
        ([2], "after", 2, False), ([3], "sample", 2, False), ([3], "sample", 2, False),
        ([3, 3], "credit", 2, False), ([3], "update", 2, False), ([3], "after", 3, False), ([4], "after", 4, True),
        ([], "after", 4, True), ([], "after", 4, True), ([0], "sample", 0, False), ([1], "after", 1, False),
    ]  # fmt: skip


async def test_going_back_lands_on_an_update_that_was_kept(replay):
    with sqlite3.connect(replay.path) as db:
        db.execute("DELETE FROM records WHERE number IN (1, 3) AND kind != 'finished'")
    taken(replay)
    for update in (3, 1):
        await replay.send(Rewind(update))
    assert moves(taken(replay)) == [2, 0]


async def test_it_plays_to_the_end_and_from_the_end_again(replay):
    for command, expected in ((Rewind(2), [3, 4]), (Rewind(3), [4]), (Pause(), [0, 1, 2, 3, 4])):
        await replay.send(command)
        taken(replay)
        await replay.send(FOREVER)
        await asyncio.wait_for(replay._running, 30)
        events = taken(replay)
        assert moves(events) == expected
        states = [event.running for event in events if isinstance(event, Status)]
        assert states == [True] * (len(states) - 1) + [False]
        assert len(states) == len([n for n in expected if n]) + 2 + (0 in expected)


@pytest.mark.parametrize("command", [Pause(), Advance("update"), FOREVER, Rewind(1), None])
async def test_every_command_and_the_end_stop_what_plays(replay, command):
    await replay.send(FOREVER)
    playing, watch = replay._running, replay._watch
    await (replay.close() if command is None else replay.send(command))
    await asyncio.wait([playing], timeout=30)
    assert playing.cancelled()
    assert taken(replay)[-1].running == (command in (FOREVER, None))
    if command is None:
        await asyncio.wait([watch], timeout=30)
        assert watch.cancelled()


async def test_what_cannot_be_read_is_said_by_whoever_reads(replay, monkeypatch):
    def broken(*_):
        raise RunFileError("no such table")

    taken(replay)
    with monkeypatch.context() as patch:
        patch.setattr(replay, "recorded", broken)
        await replay.send(Pause())
        assert taken(replay) == [Failed("no such table")]
        replay._running = asyncio.create_task(replay._guarded(replay._play))
        await replay._running
        assert taken(replay) == [Failed("no such table")]
    monkeypatch.setattr(replay, "load", broken)
    await replay.send(Rewind(2))
    moved = next(event for event in taken(replay) if isinstance(event, Moved))
    assert (moved.update.number, moved.update.sampled, moved.problem) == (2, None, "no such table")


async def test_a_file_that_grows_is_shown_where_the_playhead_is_at_an_end(replay):
    taken(replay)
    said = await until(replay, Status, *synthetic_update(5))
    assert [type(event) for event in said] == [Restored, Moved, Status]
    assert (said[0].back_to, said[0].history.updates, moves(said)) == (None, [1, 2, 3, 4, 5], [5])
    said = await until(replay, Status, synthetic_update(6)[0])
    assert (len(said), moves(said)) == (2, [5]), "no curve has grown, and the update has not ended"
    await replay.send(Rewind(2))
    await replay.send(Advance("token"))
    taken(replay)
    await until(replay, Restored, Changed(update=6, phase="score", name="beta", value=0.1, previous=0.0))
    back = [Rewound(update=number, abandoned=6) for number in (4, 3, 5)]
    (said,) = await until(replay, Restored, *back)
    assert said.back_to == 3
    assert replay._queue.empty(), "the playhead stays within its update"


async def test_the_file_is_closed_only_when_no_thread_reads_it(replay, monkeypatch):
    go_on, begun, done = threading.Event(), threading.Event(), []

    def slowly(reader):
        begun.set()
        assert go_on.wait(30)
        done.append(reader.note("origin"))

    replay._watch.cancel()
    monkeypatch.setattr(sources, "copy_again", slowly)
    replay._watch = asyncio.create_task(replay._grow())
    assert await asyncio.to_thread(begun.wait, 30)
    closing = asyncio.create_task(replay.close())
    await asyncio.sleep(0)
    assert not closing.done()
    go_on.set()
    await closing
    assert done == [None]


class Told:
    """A copy of a recording that has everything already."""

    def __init__(self, path):
        self.path = path

    def pull(self):
        return 0


class Door:
    """Where a trainer listens that a test plays: `heard` is what the screen sent, `say` what it is told."""

    host, token = "127.0.0.1", "the token"

    async def open(self):
        self.entered = asyncio.Event()
        self._server = await asyncio.start_server(self._enter, self.host, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _enter(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.entered.set()

    async def heard(self):
        async with asyncio.timeout(30):
            await self.entered.wait()
            return await framing.read(self.reader)

    def say(self, *events):
        for event in events:
            self.writer.write(framing.pack(EVENTS.encode(event)))

    def close(self):
        self.writer.close()
        self._server.close()


async def attached(path):
    door = Door()
    await door.open()
    return AttachedSource(Told(path), door), door


async def next_of(source, count):
    async with asyncio.timeout(30):
        return [await source._queue.get() for _ in range(count)]


@pytest.mark.parametrize("updates", [0, 4])
async def test_a_screen_that_enters_a_trainer_has_its_newest_update_and_what_is_said(tmp_path, monkeypatch, updates):
    monkeypatch.setattr("rlplay.ui.session.attached.POLL_SECONDS", 0)
    source, door = await attached(run_of(tmp_path, updates))
    await source.send(Pause())
    await source.start()
    assert await door.heard() == b"the token"
    await source.send(Pause())
    assert COMMANDS.decode(await door.heard()) == Pause()
    begun, history, *records = taken(source)
    assert (begun, type(history)) == (Recorded(synthetic_started()), Restored)
    assert [(type(each.record), each.record.update) for each in records] == [
        (type(record), updates) for record in (synthetic_update(updates) if updates else [])
    ]
    last = synthetic_update(updates + 1)[-1]
    notice = Recorded(Notice(update=1, level="info", text="a text"))
    door.say(Recorded(last), notice, Status(True, 1, "sample", {"beta": 0.5, "warmup_steps": "x"}))
    told, status = await next_of(source, 2)
    assert told == notice, "records come from the recording"
    assert (status.settings, status.abilities) == ({"beta": 0.5}, UNSAID)
    able = Abilities("TRL", {}, [])
    door.say(Status(True, 1, "sample", {}, abilities=able))
    assert (await next_of(source, 1))[0].abilities == able
    (said,) = [each.record.update for each in await until(source, Recorded, last)]
    assert said == last.update
    pull, tasks = source._pull, source._tasks
    await source.close()
    assert pull.done()
    await asyncio.wait(tasks, timeout=30)
    assert tasks[1].cancelled()
    assert await door.heard() is None
    door.close()


@pytest.mark.parametrize(
    "end", [None, Failed("it broke"), Status(False, 1, "sample", {}, finished=True), Status(False, 1, "sample", {})]
)
async def test_a_trainer_that_leaves_without_a_word_is_gone(tmp_path, end):
    source, door = await attached(run_of(tmp_path))
    await source.start()
    assert await door.heard() == b"the token"
    taken(source)
    if end is not None:
        door.say(end)
    await door.writer.drain()
    door.close()
    await asyncio.wait_for(source._tasks[0], 30)
    gone = end is None or (isinstance(end, Status) and not end.finished)
    assert [each for each in taken(source) if isinstance(each, Failed)] == [Failed(GONE)] * gone + [end] * isinstance(
        end, Failed
    )
    await source.close()


class Engine:
    """An engine that starts, unless the test says that it does not."""

    starts, jobs = True, []

    def __init__(self, prestarted=None):
        self.sent, self.closed = [], False

    async def start(self, job):
        self.jobs.append(job)
        if not self.starts:
            raise OSError("no such program")

    async def send(self, command):
        self.sent.append(command)

    async def events(self):
        yield Failed("gone")

    async def close(self):
        self.closed = True


@pytest.fixture
def engines(monkeypatch):
    monkeypatch.setattr("rlplay.link.client.EngineProcess", Engine)
    monkeypatch.setattr(Engine, "jobs", [])


def live(path, **job):
    return LiveSource(Job(scenario=Scenario(name="n", title="t", question="q"), run=str(path), **job))


async def test_a_start_that_failed_is_tried_again_as_a_start(engines, tmp_path, monkeypatch):
    monkeypatch.setattr(Engine, "starts", False)
    source = live(tmp_path / "run.rlplay")
    for _ in range(2):
        with pytest.raises(OSError, match="no such program"):
            await source.start()
    run_of(tmp_path)
    with pytest.raises(OSError, match="no such program"):
        await source.start()
    await source.close()
    assert [job.resume for job in Engine.jobs] == [False, False, True]


async def test_a_new_run_takes_the_place_of_a_file_that_is_there(engines, tmp_path):
    source = live(run_of(tmp_path))
    await source.close()
    await source.start()
    assert [type(event) async for event in source.events()] == [Failed], "it has no past"
    assert not Engine.jobs[0].resume


async def test_a_run_that_goes_on_brings_its_past_and_an_engine_that_is_started_again_does_not(engines, tmp_path):
    source = live(run_of(tmp_path), resume=True)
    for command in (Pause(), FOREVER):
        await source.send(command)
    await source.start()
    first = source._engine
    await source.send(Rewind(1))
    assert first.sent == [Pause(), FOREVER, Rewind(1)]
    past, failed = [event async for event in source.events()]
    assert (past.history.updates, failed) == ([1, 2, 3, 4], Failed("gone"))
    await source.start()
    assert first.closed
    assert source._engine.sent == []
    assert [type(event) async for event in source.events()] == [Failed]
    await source.close()
    assert source._engine.closed

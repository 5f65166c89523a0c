"""The screen's end of the wire against real engine processes with a pretended driver."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from rlplay.link import client, framing
from rlplay.link.client import EngineProcess
from rlplay.link.messages import (
    COMMANDS,
    Advance,
    AnyEvent,
    EndProbe,
    Failed,
    Loading,
    LogLine,
    Pause,
    Recorded,
    RecordView,
    Rewind,
    Set,
    Status,
    Trust,
)
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.questions import Estimate, Estimated, Peek, Peeked, Prefix
from rlplay.trace.records import Changed, Finished, Looked, Notice, Rewound, Sampled
from rlplay.trusted import Grants, follow

ROOT = Path(__file__).parents[2]
FAKE = (sys.executable, "-m", "tests.link.fake_engine")


def job(manner: str = "normal") -> Job:
    return Job(scenario=Scenario(name=manner, title="", question=""), run="/runs/x.rlplay")


class Screen:
    """Collects an engine's events and waits for the one that matters."""

    def __init__(self, engine: EngineProcess) -> None:
        self.engine = engine
        self.seen: list[AnyEvent] = []
        self._events = engine.events()

    async def until(self, condition: Callable[[Any], bool], within: float = 20.0) -> Any:
        async with asyncio.timeout(within):
            async for event in self._events:
                self.seen.append(event)
                if condition(event):
                    return event
        raise AssertionError(f"the events ended: {self.seen[-5:]}")

    async def to_the_end(self, within: float = 20.0) -> list[AnyEvent]:
        async with asyncio.timeout(within):
            self.seen += [event async for event in self._events]
        return self.seen

    def records(self, kind: type) -> list[Any]:
        return [event.record for event in self.seen if isinstance(event, Recorded) and isinstance(event.record, kind)]


@pytest.fixture
async def screen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Screen]:
    """A screen whose engine has been started; the parameter is its manner."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    engine = EngineProcess(FAKE)
    await engine.start(job(getattr(request, "param", "normal")))
    yield Screen(engine)
    await engine.close(grace=3.0)


def idle(event: AnyEvent) -> bool:
    return isinstance(event, Status) and not event.running


def running(event: AnyEvent) -> bool:
    return isinstance(event, Status) and event.running


def notice(event: AnyEvent) -> bool:
    return isinstance(event, Recorded) and isinstance(event.record, Notice)


async def test_updates_run_and_then_the_engine_stops(screen: Screen) -> None:
    await screen.engine.send(Advance("update", 2))
    await screen.until(lambda event: idle(event) and event.update == 2)
    assert [record.update for record in screen.records(Finished)] == [1, 2]
    assert any(isinstance(event, Loading) for event in screen.seen)
    partial = [record for record in screen.records(Sampled) if not record.done]
    assert partial[0].position == 1
    await screen.engine.close()
    assert screen.engine.exit_status == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there is no niceness")
async def test_the_screen_comes_first_where_processor_time_is_short(screen: Screen) -> None:
    await screen.until(idle)
    process = screen.engine._process
    assert process is not None
    assert os.getpriority(os.PRIO_PROCESS, process.pid) > os.getpriority(os.PRIO_PROCESS, 0)
    session = Path(f"/proc/{process.pid}/autogroup")
    assert not session.exists() or session.read_text().endswith(" nice 5\n")


async def test_pause_stops_a_free_run_and_a_rewind_goes_back(screen: Screen) -> None:
    await screen.engine.send(Advance("forever"))
    await screen.until(lambda event: running(event) and event.update >= 2)
    await screen.engine.send(Pause())
    stopped = await screen.until(idle)
    await screen.engine.send(Rewind(1))
    back = await screen.until(idle)
    assert back.update == 1
    assert screen.records(Rewound) == [Rewound(update=1, abandoned=stopped.update)]


async def test_a_setting_changes_while_running(screen: Screen) -> None:
    await screen.engine.send(Advance("forever"))
    await screen.engine.send(Set({"epsilon": 0.1}))
    status = await screen.until(lambda event: running(event) and event.settings["epsilon"] == 0.1)
    assert status.running
    assert screen.records(Changed)[0].previous == 0.2
    await screen.engine.send(Advance("update", 1))
    await screen.until(idle)


async def test_a_look_is_noted_and_stops_nothing(screen: Screen) -> None:
    await screen.engine.send(RecordView("entropy", 0, 0))
    await screen.engine.send(Advance("forever"))
    await screen.engine.send(RecordView("credit", 2, 1))
    status = await screen.until(lambda event: running(event) and len(screen.records(Looked)) == 2)
    assert status.running
    assert [(seen.lens, seen.completion, seen.token) for seen in screen.records(Looked)] == [
        ("entropy", 0, 0), ("credit", 2, 1),
    ]  # fmt: skip


async def test_what_is_refused_is_a_notice(screen: Screen) -> None:
    await screen.engine.send(Set({"colour": "red"}))
    refused = await screen.until(notice)
    assert refused.record.level == "warning"
    assert "unknown setting 'colour'" in refused.record.text
    await screen.engine.send(Rewind(7))
    assert "cannot rewind to update 7" in (await screen.until(notice)).record.text


@pytest.mark.parametrize("screen", ["failing"], indirect=True)
async def test_an_error_in_training_leaves_the_engine_alive_and_a_full_disk_ends_it(screen: Screen) -> None:
    await screen.engine.send(Advance("token"))
    found = (await screen.until(notice)).record
    assert "found no answer" in found.text
    assert "Traceback" in found.detail
    await screen.engine.send(Advance("phase"))
    assert "Lower num_prompts" in (await screen.until(notice)).record.text
    await screen.engine.send(Advance("update"))
    failed = await screen.until(lambda event: isinstance(event, Failed))
    assert "disk full" in failed.text
    rest = await screen.to_the_end()
    assert sum(isinstance(event, Failed) for event in rest) == 1


@pytest.mark.parametrize("screen", ["unloadable"], indirect=True)
async def test_a_job_that_cannot_be_loaded_says_why(screen: Screen) -> None:
    events = await screen.to_the_end()
    (failed,) = [event for event in events if isinstance(event, Failed)]
    assert failed.text == "no model at /nowhere; give --model a folder or a name"


@pytest.mark.parametrize("screen", ["dying"], indirect=True)
async def test_a_killed_engine_is_reported_with_its_last_words(screen: Screen) -> None:
    await screen.until(idle)
    await screen.engine.send(Advance("token"))
    failed = await screen.until(lambda event: isinstance(event, Failed))
    assert "SIGKILL" in failed.text
    assert "All finished updates are saved." in failed.text
    assert "last words" in failed.detail
    await screen.engine.send(Advance("token"))
    await screen.to_the_end()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
async def test_an_engine_that_is_stopped_goes_on_where_it_was_and_can_be_ended(screen: Screen) -> None:
    await screen.engine.send(Advance("forever"))
    await screen.until(lambda event: running(event) and event.update >= 1)
    process = screen.engine._process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    await screen.engine.send(Pause())
    process.send_signal(signal.SIGCONT)
    stopped = await screen.until(idle)
    updates = [record.update for record in screen.records(Finished)]
    assert updates[: stopped.update] == list(range(1, stopped.update + 1))
    process.send_signal(signal.SIGSTOP)
    await screen.engine.close(grace=0.1)
    assert screen.engine.exit_status == -signal.SIGKILL


@pytest.mark.parametrize("screen", ["noisy"], indirect=True)
async def test_anything_may_be_printed(screen: Screen) -> None:
    await screen.until(idle)
    await screen.engine.send(Advance("update"))
    await screen.until(lambda event: idle(event) and event.update == 1)
    log = [event.text for event in screen.seen if isinstance(event, LogLine)]
    assert "[bold]after" in log
    assert "100%" in log
    assert max(map(len, log)) == 2000


@pytest.mark.parametrize("screen", ["sleeping"], indirect=True)
async def test_a_busy_engine_is_ended_by_force(screen: Screen) -> None:
    await screen.until(idle)
    await screen.engine.send(Advance("update"))
    await screen.until(lambda event: isinstance(event, LogLine) and "now busy" in event.text)
    began = time.monotonic()
    await screen.engine.close(grace=0.1)
    assert time.monotonic() - began < 2.0
    assert screen.engine.exit_status not in (None, 0)
    assert await screen.to_the_end()


async def test_an_engine_that_is_still_starting_is_ended_at_once() -> None:
    screen = await _started(sys.executable, "-c", "import time; time.sleep(60)")
    began = time.monotonic()
    await screen.engine.close(grace=30.0)
    assert time.monotonic() - began < 5.0
    assert screen.engine.exit_status == -signal.SIGTERM


async def _started(*argv: str) -> Screen:
    engine = EngineProcess(argv)
    await engine.start(job())
    return Screen(engine)


class Writer:
    """The other half of a connection, as far as a screen needs it that refuses."""

    closed = False

    def close(self) -> None:
        self.closed = True


async def test_only_the_first_connection_with_the_token_is_the_engines() -> None:
    """A function of the user's knows the token, too, and could otherwise take the engine's place."""
    engine = EngineProcess(FAKE)
    engine._connected = asyncio.get_running_loop().create_future()

    async def refused(sent: str) -> bool:
        reader, writer = asyncio.StreamReader(), Writer()
        reader.feed_data(framing.pack(sent.encode()))
        reader.feed_eof()
        await engine._accept(reader, writer)  # type: ignore[arg-type]
        return writer.closed

    token = engine._token
    assert len(token) == 64
    sent = ["", "x" * 64, token[:-1], token + "x" * 256, token, token]
    assert [await refused(each) for each in sent] == [True, True, True, True, False, True]
    said = [engine._events.get_nowait() for _ in range(engine._events.qsize())]
    assert len(said) == 5
    assert all(isinstance(event, LogLine) and event.level == "warning" for event in said)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "exit status 0"),
        (3, "exit status 3"),
        (-1, "killed (SIGHUP)"),
        (-15, "killed (SIGTERM)"),
        (-9, "killed (SIGKILL), usually by the system running out of memory"),
        (-99, "killed (signal 99)"),
    ],
)
def test_an_end_in_words(status: int, words: str) -> None:
    assert client._describe_exit(status) == words


@pytest.mark.skipif(sys.platform != "linux", reason="no list of open files elsewhere")
async def test_an_engine_that_has_ended_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    left = []
    for _ in range(2):
        screen = await _started(*FAKE)
        await screen.until(idle)
        await screen.engine.close()
        before = len(screen.seen)
        assert len(await screen.to_the_end()) == before
        left.append((len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())))
    assert left[0] == left[1]
    assert left[0][1] == 1, "only this test"


async def test_an_engine_that_talks_nonsense_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    screen = await _started(*FAKE, "garbling")
    failed = await screen.until(lambda event: isinstance(event, Failed))
    assert "invalid message" in failed.text
    await screen.to_the_end()
    await screen.engine.close()


async def test_an_engine_that_dies_before_it_reports() -> None:
    screen = await _started(sys.executable, "-c", "import sys; sys.exit('no module named torch')")
    failed = await screen.until(lambda event: isinstance(event, Failed))
    assert "exit status 1" in failed.text
    assert failed.detail == "no module named torch"
    await screen.to_the_end()
    await screen.engine.close()


async def test_an_engine_that_never_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CONNECT_WITHIN", 0.05)
    screen = await _started(sys.executable, "-c", "import time; time.sleep(60)")
    failed = await screen.until(lambda event: isinstance(event, Failed))
    assert "did not connect" in failed.text
    await screen.to_the_end()
    await screen.engine.close()


async def test_an_engine_that_cannot_be_started() -> None:
    screen = await _started("/nowhere/python")
    (failed,) = await screen.to_the_end()
    assert isinstance(failed, Failed)
    assert "/nowhere/python" in failed.text
    await screen.engine.close()


async def test_a_question_is_answered_while_the_engine_runs_and_it_runs_on(screen: Screen) -> None:
    await screen.engine.send(Advance("forever"))
    await screen.until(running)
    await screen.engine.send(Peek(Prefix("What?", [1, 2])))
    answer = await screen.until(lambda event: isinstance(event, Peeked))
    assert answer.prefix == Prefix("What?", [1, 2])
    await screen.until(lambda event: isinstance(event, Recorded))
    assert all(event.running for event in screen.seen[screen.seen.index(answer) :] if isinstance(event, Status))


async def test_an_estimate_grows_until_the_next_command_and_ends_with_what_it_has(screen: Screen) -> None:
    await screen.engine.send(Estimate(Prefix("What?"), count=10**9))
    await screen.until(lambda event: isinstance(event, Estimated) and event.count > 5)
    await screen.engine.send(EndProbe())
    last = await screen.until(lambda event: isinstance(event, Estimated) and event.done)
    assert last.count > 5
    await screen.engine.send(Peek(Prefix("And now?")))
    await screen.until(lambda event: isinstance(event, Peeked))


async def test_a_question_that_cannot_be_answered_says_why_and_records_nothing(screen: Screen) -> None:
    await screen.engine.send(Peek(Prefix("")))
    answer = await screen.until(lambda event: isinstance(event, Peeked))
    assert answer.refused == "the prompt is empty"
    assert not screen.records(Notice)


async def test_a_file_of_the_current_folder_takes_no_librarys_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queue.py").write_text("raise RuntimeError('not the library')\n")
    monkeypatch.chdir(tmp_path)
    process = await asyncio.create_subprocess_exec(
        *client.ENGINE[:-2], "-c", "import queue; queue.Queue()", stderr=asyncio.subprocess.PIPE
    )
    assert (await process.communicate())[1] == b""


async def test_what_nobody_has_read_is_dropped_when_the_screen_ends() -> None:
    engine = EngineProcess(FAKE)
    engine._events.put_nowait(LogLine("info", "unread"))
    await engine.close()
    assert await Screen(engine).to_the_end() == []


async def test_what_the_user_names_goes_to_the_engine_before_what_follows(tmp_path: Path) -> None:
    engine = EngineProcess(FAKE)
    for step in (0, 1, 1):
        follow([str(tmp_path / f"{step}.py")])
        await engine.send(Pause())
    first, second = ([str(tmp_path / f"{step}.py") for step in range(count)] for count in (1, 2))
    wanted = [Trust(Grants(followed=first)), Pause(), Trust(Grants(followed=second)), Pause(), Pause()]
    sent = [engine._commands.get_nowait() for _ in range(engine._commands.qsize())]
    assert sent == [framing.pack(COMMANDS.encode(command)) for command in wanted]

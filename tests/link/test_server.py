"""The engine's end of the wire when the screen misbehaves or is gone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rlplay.link import framing
from rlplay.link.messages import (
    COMMANDS,
    EVENTS,
    Advance,
    AnyCommand,
    AnyEvent,
    Begin,
    LogLine,
    Pause,
    Recorded,
    Status,
    Trust,
)
from rlplay.link.server import ScreenLink
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.records import Sampled
from rlplay.trusted import Grants, UntrustedError, source

ROOT = Path(__file__).parents[2]


class Connection:
    """The screen's half of a connection, blocking."""

    def __init__(self, manner: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(20)
            host, port = server.getsockname()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.link.fake_engine"],
                env={**os.environ, "PYTHONPATH": str(ROOT), framing.ADDRESS: f"{host}:{port}", framing.TOKEN: "word"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self.socket, _ = server.accept()
        self.socket.settimeout(20)
        assert framing.receive(self.socket) == b"word"
        scenario = Scenario(name=manner, title="", question="")
        self.say(Begin(Job(scenario=scenario, run="/runs/x.rlplay")))

    def say(self, command: AnyCommand) -> None:
        self.socket.sendall(framing.pack(COMMANDS.encode(command)))

    def events(self) -> Iterator[AnyEvent]:
        while data := framing.receive(self.socket):
            yield EVENTS.decode(data)

    def printed(self, text: str) -> None:
        assert self.process.stdout is not None
        next(line for line in self.process.stdout if text in line)

    def end(self) -> None:
        self.socket.close()
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    made = Connection(getattr(request, "param", "normal"))
    yield made
    made.end()


def test_an_idle_engine_ends_with_the_screen(connection: Connection) -> None:
    next(event for event in connection.events() if isinstance(event, Status))
    connection.socket.close()
    assert connection.process.wait(timeout=20) == 0


def test_a_running_engine_ends_with_the_screen_at_its_next_token(connection: Connection) -> None:
    connection.say(Advance("forever"))
    next(event for event in connection.events() if isinstance(event, Recorded) and isinstance(event.record, Sampled))
    connection.socket.close()
    assert connection.process.wait(timeout=20) == 0
    assert connection.process.stdout is not None
    assert "closed" in connection.process.stdout.read()


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "is not set"),
        ({framing.ADDRESS: "127.0.0.1:1", framing.TOKEN: "word"}, "no screen listens at 127.0.0.1:1"),
    ],
)
def test_an_engine_without_a_screen_says_so(environment: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ScreenLink.connect(environment)


@pytest.fixture
def linked() -> Iterator[tuple[socket.socket, ScreenLink]]:
    """A screen's socket, and the engine's end of it."""
    screen, engine = socket.socketpair()
    screen.settimeout(20)
    link = ScreenLink(engine)
    with closing(screen), closing(link):
        yield screen, link


def test_commands_arrive_until_the_screen_is_gone(linked: tuple[socket.socket, ScreenLink]) -> None:
    screen, link = linked
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "screen")
    for command in (Pause(), Advance("update")):
        screen.sendall(framing.pack(COMMANDS.encode(command)))
    assert [link.commands.get(timeout=20) for _ in range(2)] == [Pause(), Advance("update")]
    assert not link.gone.is_set()
    screen.shutdown(socket.SHUT_RDWR)
    assert link.commands.get(timeout=20) is None
    assert link.gone.is_set()


def test_an_invalid_command_is_reported_and_skipped(linked: tuple[socket.socket, ScreenLink]) -> None:
    screen, link = linked
    screen.sendall(framing.pack(b"\x81\xa4type\xa6sudden") + framing.pack(COMMANDS.encode(Pause())))
    assert link.commands.get(timeout=20) == Pause()
    complaint = EVENTS.decode(framing.receive(screen) or b"")
    assert isinstance(complaint, LogLine)
    assert (complaint.level, complaint.text[:40]) == ("error", "the engine did not understand a command:")


def test_a_screen_that_sends_too_much_is_hung_up_on(linked: tuple[socket.socket, ScreenLink]) -> None:
    screen, link = linked
    screen.sendall(b"\xff\xff\xff\xff")
    assert link.commands.get(timeout=20) is None
    assert link.gone.is_set()


def test_an_event_that_is_too_long_is_named_instead(
    linked: tuple[socket.socket, ScreenLink], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen, link = linked
    monkeypatch.setattr(framing, "LIMIT", 200)
    for length in (100, 300):
        link.send(LogLine("info", "x" * length))
    events = [EVENTS.decode(framing.receive(screen) or b"") for _ in range(2)]
    assert events[0] == LogLine("info", "x" * 100)
    assert isinstance(events[1], LogLine)
    assert events[1].text.startswith("LogLine was not shown: a message of ")


def test_what_is_sent_to_a_screen_that_is_gone_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScreenLink, "_listen", lambda self: None)
    screen, engine = socket.socketpair()
    link = ScreenLink(engine)
    screen.close()
    assert not link.gone.is_set()
    link.send(LogLine("info", "hello"))
    assert link.gone.is_set()
    link.close()


def test_an_end_that_the_engine_makes_is_no_loss_of_the_screen(linked: tuple[socket.socket, ScreenLink]) -> None:
    screen, link = linked
    listening = [thread for thread in threading.enumerate() if thread.name == "screen"]
    link.close()
    for thread in listening:
        thread.join(20)
        assert not thread.is_alive()
    assert framing.receive(screen) is None
    assert not link.gone.is_set()
    assert link.commands.empty()
    assert link._socket.fileno() == -1
    link.close()


def test_the_engine_sends_its_token_first_and_then_waits_as_long_as_it_takes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        link = ScreenLink.connect({framing.ADDRESS: f"{host}:{port}", framing.TOKEN: "word"})
        screen, _ = server.accept()
    with closing(screen), closing(link):
        screen.settimeout(20)
        assert framing.receive(screen) == b"word"
        assert link._socket.gettimeout() is None
        assert link._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_what_the_user_trusts_holds_before_the_next_command_is_there(
    tmp_path: Path, linked: tuple[socket.socket, ScreenLink]
) -> None:
    screen, link = linked
    file = tmp_path / "mine.py"
    file.write_text("x = 1\n")
    with pytest.raises(UntrustedError):
        source(file)
    for command in (Trust(Grants(followed=[str(file)])), Pause()):
        screen.sendall(framing.pack(COMMANDS.encode(command)))
    assert isinstance(link.commands.get(timeout=20), Pause)
    assert source(file) == b"x = 1\n"

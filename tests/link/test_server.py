"""The engine's end of the wire when the screen misbehaves or is gone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
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
    assert connection.process.wait(timeout=2) == 0


def test_a_running_engine_ends_with_the_screen_at_its_next_token(connection: Connection) -> None:
    connection.say(Advance("forever"))
    next(event for event in connection.events() if isinstance(event, Recorded) and isinstance(event.record, Sampled))
    connection.socket.close()
    assert connection.process.wait(timeout=2) == 0
    assert connection.process.stdout is not None
    assert "closed" in connection.process.stdout.read()


def test_an_invalid_command_is_reported_and_skipped(connection: Connection) -> None:
    connection.socket.sendall(framing.pack(b"\x81\xa4type\xa6sudden"))
    connection.say(Advance("update"))
    complaint = next(event for event in connection.events() if isinstance(event, LogLine))
    assert "did not understand" in complaint.text
    next(event for event in connection.events() if isinstance(event, Status) and event.update == 1)


def test_a_screen_that_sends_too_much_is_hung_up_on(connection: Connection) -> None:
    connection.socket.sendall(b"\xff\xff\xff\xff")
    assert connection.process.wait(timeout=5) == 0


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


def test_what_the_user_trusts_holds_before_the_next_command_is_there(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = 1\n")
    with pytest.raises(UntrustedError):
        source(file)
    screen, engine = socket.socketpair()
    link = ScreenLink(engine)
    with closing(screen), closing(link):
        for command in (Trust(Grants(followed=[str(file)])), Pause()):
            screen.sendall(framing.pack(COMMANDS.encode(command)))
        assert isinstance(link.commands.get(timeout=20), Pause)
    assert source(file) == b"x = 1\n"

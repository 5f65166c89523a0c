"""Frames, messages and printed lines survive however the stream is cut."""

from __future__ import annotations

import asyncio
import itertools
import re
import socket
import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlplay.link import framing
from rlplay.link.lines import LONGEST, lines
from rlplay.link.messages import (
    COMMANDS,
    EVENTS,
    Advance,
    AnyCommand,
    AnyEvent,
    Begin,
    Failed,
    Loading,
    LogLine,
    Pause,
    Recorded,
    Rewind,
    Set,
    Status,
    Stop,
)
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.codec import RECORDS
from rlplay.trace.text import visible
from tests.recorded import synthetic_update

VALUES = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text()


def stream(data: bytes, cuts: list[int]) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in itertools.pairwise(edges):
        reader.feed_data(data[start:end])
    reader.feed_eof()
    return reader


@given(st.lists(st.binary(max_size=200), max_size=5), st.lists(st.integers(0, 10_000)), st.integers(0, 5))
def test_frames_come_back_however_the_stream_is_cut(bodies: list[bytes], cuts: list[int], missing: int) -> None:
    data = b"".join(map(framing.pack, bodies))
    sent = data[: max(0, len(data) - missing)]

    async def read_all() -> list[bytes]:
        reader = stream(sent, cuts)
        return [body for body in [await framing.read(reader) for _ in range(6)] if body is not None]

    expected = bodies
    while expected and missing > 0:  # what was cut off takes whole frames with it
        missing -= len(expected[-1]) + 4
        expected = expected[:-1]
    assert asyncio.run(read_all()) == expected


async def test_a_frame_over_the_limit_is_refused_before_it_is_read() -> None:
    reader = stream(struct.pack(">I", framing.LIMIT + 1), [])
    with pytest.raises(framing.FrameError, match="over the limit"):
        await framing.read(reader)
    with pytest.raises(framing.FrameError, match="over the limit of 3"):
        await framing.read(stream(framing.pack(b"four"), []), limit=3)


def test_a_message_over_the_limit_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "LIMIT", 3)
    assert framing.pack(b"abc") == b"\0\0\0\3abc"
    with pytest.raises(framing.FrameError, match="4 bytes"):
        framing.pack(b"four")


def test_a_frame_over_the_limit_is_refused_by_a_socket_too() -> None:
    one, other = socket.socketpair()
    with one, other:
        one.sendall(framing.pack(b"x" * 5) + framing.pack(b"y" * 4))
        with pytest.raises(framing.FrameError, match="5 bytes is over the limit of 4"):
            framing.receive(other, 4)


def test_a_socket_gives_whole_frames_and_then_none() -> None:
    mine, yours = socket.socketpair()
    with mine, yours:
        mine.sendall(framing.pack(b"one") + framing.pack(b"") + framing.pack(b"cut")[:-1])
        mine.shutdown(socket.SHUT_WR)
        assert [framing.receive(yours) for _ in range(3)] == [b"one", b"", None]


@given(st.lists(st.binary(max_size=40).filter(lambda part: not re.search(rb"[\r\n]", part))), st.lists(st.integers(0)))
def test_lines_come_back_however_the_output_is_cut(parts: list[bytes], cuts: list[int]) -> None:
    async def read_all() -> list[str]:
        return [line async for line in lines(stream(b"\r\n".join(parts), cuts))]

    assert asyncio.run(read_all()) == [visible(part.decode(errors="replace")) for part in parts if part]


class Chunks(asyncio.StreamReader):
    """Output that arrives piece by piece."""

    def __init__(self, *chunks: bytes) -> None:
        super().__init__()
        self.chunks = list(chunks)

    async def read(self, n: int = -1) -> bytes:
        return self.chunks.pop(0) if self.chunks else b""


async def test_a_line_may_arrive_in_pieces() -> None:
    pieces = Chunks(b"hello wor", b"ld\nb", b"y", b"e", b"\n\rlast")
    assert [line async for line in lines(pieces)] == ["hello world", "bye", "last"]
    long = Chunks(b"x" * 5 * LONGEST, b"more", b" of it\nnext", b"\n")
    assert [line async for line in lines(long)] == ["x" * (LONGEST - 1) + "…", "next"]


async def test_only_a_line_that_is_too_long_is_cut() -> None:
    found = [line async for line in lines(stream(b"x" * LONGEST + b"\n" + b"y" * (LONGEST + 1) + b"\n", []))]
    assert found == ["x" * LONGEST, "y" * (LONGEST - 1) + "…"]


async def test_a_line_without_end_is_cut_once() -> None:
    endless = stream(b"a" * 1_000_000 + b"\nnext\n" + b"b" * 300_000, [])
    found = [line async for line in lines(endless)]
    assert [(line[0], len(line)) for line in found] == [("a", LONGEST), ("n", 4), ("b", LONGEST)]


@given(st.text(), VALUES)
def test_commands_come_back(name: str, value: Any) -> None:
    job = Job(scenario=Scenario(name=name, title="t", question="q", settings={"x": value}), run="r")
    sent: list[AnyCommand] = [Begin(job), Set({name: value}), Advance("phase", 3), Pause(), Rewind(2), Stop()]
    assert [COMMANDS.decode(COMMANDS.encode(command)) for command in sent] == sent


@given(st.text(), st.dictionaries(st.text(), VALUES))
def test_events_come_back(text: str, settings: dict[str, Any]) -> None:
    status = Status(True, 3, "score", settings, kept=2)
    sent: list[AnyEvent] = [Loading(text, 0.5), status, LogLine("info", text), Failed(text, text)]
    assert [EVENTS.decode(EVENTS.encode(event)) for event in sent] == sent


def test_records_travel_in_events() -> None:
    for record in synthetic_update(1):
        event = EVENTS.decode(EVENTS.encode(Recorded(record)))
        assert isinstance(event, Recorded)
        assert RECORDS.encode(event.record) == RECORDS.encode(record)


def test_bytes_that_are_no_message_are_refused() -> None:
    with pytest.raises(msgspec.MsgspecError):
        EVENTS.decode(b"\xc1")

"""Screens and engines that are forked from this process, with what is imported here: most of a start is importing."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import msgspec

from rlplay.cli import main as cli
from tests.terminal import Terminal, running

SPARES = 5
"""Engines that a screen can start, one after the other."""


def warm_up() -> None:
    """Import what screens and engines need, once. No thread may be started here: a fork would not have it."""
    os.environ["TERM"], os.environ["COLORTERM"] = "xterm-256color", "truecolor"  # Textual reads these as it is imported
    for name in ("rlplay.engine.driver", "rlplay.ui.start", "rlplay.link.client"):
        importlib.import_module(name)


def screen(words: list[str], environment: dict[str, str]) -> Terminal:
    """A screen whose engines are forked before it begins: later, a fork would share its open databases."""

    def play() -> None:
        os.environ.update(environment)
        _open_streams()
        spares = [_Spare() for _ in range(SPARES)]

        async def start(*argv: str, env: dict[str, str], stdin: int, **_: Any) -> _Process:
            assert argv[-1] == "rlplay.engine.engine_process"
            return await spares.pop().begin(env, stdin)

        no_other = mock.patch("rlplay.link.prestarted.Prestarted", side_effect=OSError)
        with mock.patch("asyncio.create_subprocess_exec", start), no_other:
            cli.main(words)

    return Terminal(play, 100, 30, env=environment)


class _Spare:
    """A process that waits for its environment and its files, and then is an engine; without a screen it ends."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._pid = os.fork()
        if not self._pid:
            self._socket.close()
            _wait(theirs)
        theirs.close()

    async def begin(self, env: dict[str, str], stdin: int) -> _Process:
        """Let it be an engine, in a session of its own."""
        (out, its_out), (err, its_err) = os.pipe(), os.pipe()
        socket.send_fds(self._socket, [msgspec.json.encode(env)], [stdin, its_out, its_err])
        for each in (its_out, its_err):
            os.close(each)
        self._socket.close()
        return _Process(self._pid, await _reader(out), await _reader(err))


class _Process:
    """As asyncio's, of a child that was there already."""

    def __init__(self, pid: int, stdout: asyncio.StreamReader, stderr: asyncio.StreamReader) -> None:
        self.pid, self.stdout, self.stderr = pid, stdout, stderr
        self.returncode: int | None = None
        self._end = asyncio.create_task(self._ended())

    async def _ended(self) -> int:
        _, status = await asyncio.to_thread(os.waitpid, self.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    async def wait(self) -> int:
        return await asyncio.shield(self._end)

    def terminate(self) -> None:
        os.kill(self.pid, 15)

    def kill(self) -> None:
        os.kill(self.pid, 9)


async def _reader(file: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(file, "rb")
    )
    return reader


def _wait(screen: socket.socket) -> NoReturn:
    status = 1
    try:
        said, files, _, _ = socket.recv_fds(screen, 1 << 20, 3)
        if said:
            for standard, file in enumerate(files):
                os.dup2(file, standard)
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            os.setsid()
            os.environ.clear()
            os.environ.update(msgspec.json.decode(said, type=dict[str, str]))
            _open_streams()
            from rlplay.engine.engine_process import main

            status = main()
    finally:
        os._exit(status)


def _open_streams() -> None:
    """Those of this process still know the files that they had before the fork."""
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", buffering=1, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, closefd=False)  # type: ignore[misc]  # noqa: SIM115


def engine_of(terminal: Terminal) -> int | None:
    """The engine of a screen: its child with a session of its own."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            _, parent, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(parent) == terminal.pid and session == entry.name and running(int(entry.name)):
                return int(entry.name)
    return None

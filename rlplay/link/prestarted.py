"""An engine's process that is started before there is an event loop or a job: it imports its libraries meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from rlplay.link import framing

ENGINE = (sys.executable, "-P", "-m", "rlplay.engine.engine_process")
"""Without the current folder on its path: a file there, such as queue.py, would take the place of a library."""


def environment(host: str, port: int, token: str) -> Mapping[str, str]:
    """The environment of an engine that is to connect to `host` and `port`, and to send `token` first."""
    given = {framing.ADDRESS: f"{host}:{port}", framing.TOKEN: token}
    return {**os.environ, **given, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}


class Prestarted:
    """Such a process. An `EngineProcess` takes it over, or `discard` ends it; so does the end of this process."""

    def __init__(self, argv: Sequence[str] = ENGINE) -> None:
        """Start `argv`. Raises OSError if the system cannot."""
        self.token = secrets.token_hex(32)
        self.listening = socket.create_server(("127.0.0.1", 0))
        host, port = self.listening.getsockname()
        theirs, self.alive = os.pipe()
        """The end of a pipe: once it is closed, also by a crash, the engine is ended."""
        try:
            self._popen = subprocess.Popen(
                argv,
                env=environment(host, port, self.token),
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # the screen handles ctrl+c, not the engine
            )
        except OSError:
            self.listening.close()
            os.close(self.alive)
            raise
        finally:
            os.close(theirs)

    def discard(self) -> None:
        """End the process, which nobody has taken over."""
        self.listening.close()
        os.close(self.alive)
        self._popen.kill()
        self._popen.communicate()

    async def adopted(self) -> AdoptedProcess:
        """The process as asyncio has its own."""
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        return AdoptedProcess(self._popen, await _reader(self._popen.stdout), await _reader(self._popen.stderr))


class AdoptedProcess:
    """A process that asyncio has not started, with what an engine needs of `asyncio.subprocess.Process`."""

    def __init__(
        self, popen: subprocess.Popen[bytes], stdout: asyncio.StreamReader, stderr: asyncio.StreamReader
    ) -> None:
        self._popen, self.stdout, self.stderr = popen, stdout, stderr

    @property
    def returncode(self) -> int | None:
        """The exit status, minus the signal's number if one killed it; None until `wait` has seen its end."""
        return self._popen.returncode

    async def wait(self) -> int:
        """Wait for its end; returns the exit status."""
        return await asyncio.to_thread(self._popen.wait)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._popen.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._popen.kill()


async def _reader(pipe: IO[bytes]) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


@contextlib.contextmanager
def prestart(if_so: bool = True) -> Iterator[Prestarted | None]:
    """Start an engine for a job to come, and discard it if the block, which finds out which, raises.

    None if not `if_so`, on Windows, where asyncio cannot adopt it, and where it cannot be started. Then an engine is
    started as usual, and that also says why it cannot.
    """
    engine = None
    if if_so and os.name == "posix":
        with contextlib.suppress(OSError):
            engine = Prestarted()
    try:
        yield engine
    except BaseException:
        if engine is not None:
            engine.discard()
        raise

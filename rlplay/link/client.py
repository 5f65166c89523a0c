"""The screen's end of the wire: starts the engine, exchanges messages with it, and reports how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import secrets
import signal
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, Literal

import msgspec

from rlplay import trusted
from rlplay.link import framing
from rlplay.link.lines import lines
from rlplay.link.messages import COMMANDS, EVENTS, AnyCommand, AnyEvent, Begin, Failed, LogLine, Status, Stop, Trust
from rlplay.link.prestarted import ENGINE, AdoptedProcess, Prestarted, environment
from rlplay.scenario.schema import Job

CONNECT_WITHIN = 60.0
"""Seconds within which an engine must connect; it does so before it imports anything heavy."""
_TOKEN_WITHIN, _TERMINATE_WITHIN, _KILL_WITHIN = 10.0, 1.0, 10.0
"""Seconds for a connection to send its token, and for the process to end after each signal."""

_PENDING = 256  # events that may wait for the screen; then the engine waits
_LAST_LINES = 30  # lines of standard error shown after a crash
_TOKEN_BYTES = 256


_Process = asyncio.subprocess.Process | AdoptedProcess


class EngineProcess:
    """One engine in its own process. Start it, read `events` until they end, and always close it."""

    def __init__(self, argv: Sequence[str] = ENGINE, prestarted: Prestarted | None = None) -> None:
        """Run `argv`, or take over a process that was `prestarted`."""
        self._argv, self._prestarted = argv, prestarted
        self._token = secrets.token_hex(32) if prestarted is None else prestarted.token
        self._events: asyncio.Queue[AnyEvent | None] = asyncio.Queue(_PENDING)
        self._commands: asyncio.Queue[bytes] = asyncio.Queue()
        self._connected: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] | None = None
        self._process: _Process | None = None
        self._alive: int | None = None  # an end of a pipe: once it is closed, also by a crash, the engine is ended
        self._tasks: list[asyncio.Task[None]] = []
        self._last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._granted: trusted.Grants | None = None
        self._explained = False
        self._ready = False
        self._closing = False

    async def start(self, job: Job) -> None:
        """Start the process with `job` and return at once; errors arrive as a `Failed` event."""
        self._connected = asyncio.get_running_loop().create_future()
        await self.send(Begin(job))
        if self._prestarted is not None:
            self._alive, listening = self._prestarted.alive, self._prestarted.listening
            server = await asyncio.start_server(self._accept, sock=listening, limit=framing.BUFFER)
            self._process = await self._prestarted.adopted()
            self._start_task(self._supervise(self._process, server))
            return
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=framing.BUFFER)
        host, port = server.sockets[0].getsockname()[:2]
        theirs, self._alive = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv,
                env=environment(host, port, self._token),
                stdin=theirs,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # the screen handles ctrl+c, not the engine
            )
        except OSError as error:
            server.close()
            await self._fail(f"The engine cannot be started: {self._argv[0]}: {error}; check the Python installation")
            await self._events.put(None)
            return
        finally:
            os.close(theirs)
        self._start_task(self._supervise(self._process, server))

    async def events(self) -> AsyncIterator[AnyEvent]:
        """The engine's events, and its output as `LogLine`s; ends after the process has. For one reader only."""
        while (event := await self._events.get()) is not None:
            yield event

    async def send(self, command: AnyCommand) -> None:
        """Send a command, also before the engine has connected; after its end this does nothing."""
        if (known := trusted.grants()) != self._granted:
            self._granted = known
            self._commands.put_nowait(framing.pack(COMMANDS.encode(Trust(known))))
        self._commands.put_nowait(framing.pack(COMMANDS.encode(command)))

    @property
    def exit_status(self) -> int | None:
        """The exit status of the process, minus the signal's number if one killed it; None while it runs."""
        return None if self._process is None else self._process.returncode

    async def close(self, grace: float = 5.0) -> None:
        """Ask the engine to stop; after `grace` seconds, terminate it.

        An engine that is still starting has nothing to save and is terminated at once.
        """
        self._closing = True
        process = self._process
        if process is not None:
            await self.send(Stop())
            draining = asyncio.create_task(self._drain())
            for force, patience in (
                (None, grace if self._ready else 0.0),
                (process.terminate, _TERMINATE_WITHIN),
                (process.kill, _KILL_WITHIN),
            ):
                if force is not None:
                    with contextlib.suppress(ProcessLookupError):
                        force()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(self._tasks[0]), patience)
                    break
            draining.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._alive is not None:
            os.close(self._alive)
            self._alive = None
        while not self._events.empty():
            self._events.get_nowait()
        self._events.put_nowait(None)

    async def _drain(self) -> None:
        """Discard events, so that the engine does not wait for a screen that no longer reads."""
        while True:
            await self._events.get()

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    async def _supervise(self, process: _Process, server: asyncio.Server) -> None:
        """Handle output and messages from the start of the process to its end."""
        assert process.stdout is not None
        assert process.stderr is not None
        logging = [
            self._start_task(self._log(process.stdout, "info")),
            self._start_task(self._log(process.stderr, "warning")),
        ]
        receiving = self._start_task(self._receive(process, server))
        status = await process.wait()
        assert self._connected is not None
        if not self._connected.done():
            receiving.cancel()
        # A child process of the engine may keep its output open after the engine has ended.
        _, unfinished = await asyncio.wait([*logging, receiving], timeout=1.0)
        for task in unfinished:
            task.cancel()
        if not self._closing and not self._explained:
            text = f"The engine ended: {_describe_exit(status)}. All finished updates are saved."
            await self._fail(text, "\n".join(self._last_lines))
        await self._events.put(None)

    async def _receive(self, process: _Process, server: asyncio.Server) -> None:
        assert self._connected is not None
        try:
            reader, writer = await asyncio.wait_for(self._connected, CONNECT_WITHIN)
        except TimeoutError:
            await self._fail(
                f"The engine did not connect within {CONNECT_WITHIN:.0f} s; see the log and start it again"
            )
            process.kill()
            return
        finally:
            server.close()
        writing = self._start_task(self._write(writer))
        try:
            while (data := await framing.read(reader)) is not None:
                event = EVENTS.decode(data)
                self._explained = self._explained or isinstance(event, Failed)
                self._ready = self._ready or isinstance(event, Status)
                await self._events.put(event)
        except (framing.FrameError, msgspec.MsgspecError) as error:
            await self._fail(f"The engine sent an invalid message ({error}) and was stopped; start it again")
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        finally:
            writing.cancel()
            writer.close()

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(await self._commands.get())
                await writer.drain()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Accept the one connection with the token; any program on this machine may try to connect."""
        assert self._connected is not None
        try:
            token = await asyncio.wait_for(framing.read(reader, _TOKEN_BYTES), _TOKEN_WITHIN)
        except (framing.FrameError, TimeoutError):
            token = None
        if token is not None and hmac.compare_digest(token, self._token.encode()) and not self._connected.done():
            self._connected.set_result((reader, writer))
        else:
            writer.close()
            await self._events.put(LogLine("warning", "refused a connection to the engine's port without its token"))

    async def _log(self, stream: asyncio.StreamReader, level: Literal["info", "warning"]) -> None:
        async for line in lines(stream):
            if level == "warning":
                self._last_lines.append(line)
            await self._events.put(LogLine(level, line))

    async def _fail(self, text: str, detail: str = "") -> None:
        self._explained = True
        await self._events.put(Failed(text, detail))


def _describe_exit(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    hint = ", usually by the system running out of memory" if name == "SIGKILL" else ""
    return f"killed ({name}){hint}"

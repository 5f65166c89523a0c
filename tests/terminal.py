"""The real program in a pseudo-terminal: press keys, wait for what the screen shows."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pyte

_KEYS = {
    "space": " ",
    "enter": "\r",
    "escape": "\x1b",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "f12": "\x1b[24~",
}
QUERY = re.compile(r"\x1b\[[<>=?][0-9;$]*[^0-9;$hl]|\x1b[P_^].*?\x1b\\", re.S)
"""Questions to a terminal and private settings that pyte would draw as text."""

FRAME, LOOK = 0.01, 0.2
"""Seconds without a byte after which a frame is whole; seconds between two looks at a screen that never rests."""


class Terminal:
    """One program on a screen of `columns` x `rows`."""

    def __init__(
        self,
        argv: list[str] | Callable[[], object],
        columns: int = 160,
        rows: int = 45,
        env: dict[str, str] | None = None,
    ) -> None:
        """`argv` is a command line, or a function that the forked process calls."""
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self.screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.started = self._came = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # Before the program begins, or it may ask for the size too early and never hear of the change.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            for name in ("COLUMNS", "LINES"):  # they would go before the terminal's own size
                os.environ.pop(name, None)
            colours = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
            if callable(argv):
                _call(argv)
            os.execvpe(argv[0], argv, os.environ | colours | (env or {}))

    def text(self) -> str:
        """What the screen shows."""
        screen = self.screen  # whose own `display` takes several times as long
        rows = (screen.buffer[y] for y in range(screen.lines))
        return "\n".join("".join([row[x].data for x in range(screen.columns)]).rstrip() for row in rows)

    def read(self, patience: float) -> int:
        """Take what the program has written, waiting up to `patience` seconds for it; returns how many bytes."""
        data = self.receive(patience)
        self.draw(data)
        return len(data)

    def receive(self, patience: float) -> bytes:
        """What the program has written, not drawn yet."""
        if not select.select([self.fd], [], [], patience)[0]:
            return b""
        try:
            return os.read(self.fd, 1 << 16)
        except OSError:  # the program has ended
            return b""

    def draw(self, data: bytes) -> None:
        """Bring the screen up to date with bytes received."""
        self._stream.feed(QUERY.sub("", self._decoder.decode(data)))

    def wait_for(self, pattern: str, timeout: float = 30) -> float:
        """Seconds until the screen matches; AssertionError with the screen if it never does."""
        began, news = time.monotonic(), 1
        while not (news and re.search(pattern, self.text(), re.S)):
            news = self._read_frame()
            assert time.monotonic() - began < timeout, f"{pattern!r} never came in {timeout} s:\n{self.text()}"
        return max(0, self._came - began)

    def _read_frame(self) -> int:
        """As `read`, but until the program rests: a frame comes in many pieces, and none but the last shows it all."""
        end, news = time.monotonic() + LOOK, 0
        while time.monotonic() < end and (more := self.read(FRAME if news else 0.05)):
            news += more
            self._came = time.monotonic()
        return news

    def settle(self, quiet: float = 0.5) -> None:
        """Read until the program has written nothing for `quiet` seconds."""
        while self.read(quiet):
            pass

    def press(self, key: str) -> None:
        """One key, by name or as the character it types."""
        os.write(self.fd, _KEYS.get(key, key).encode())

    def wait_for_exit(self, timeout: float = 10) -> int:
        """The exit status, once the program has ended by itself."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            self.read(0.05)
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"still running after {timeout} s:\n{self.text()}")

    def kill(self) -> None:
        """SIGKILL, if the program is still there."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0

    def close(self) -> None:
        """End the program and give the terminal back; nothing can be read any more."""
        self.kill()
        os.close(self.fd)


def _call(work: Callable[[], object]) -> NoReturn:
    status = 1
    try:
        work()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def rlplay(*arguments: str) -> list[str]:
    """The command line of the real program under this interpreter."""
    return [sys.executable, "-m", "rlplay", *arguments]


def cpu_seconds(terminal: Terminal) -> float:
    """The processor time of the program so far: beside other programs it says more than the clock."""
    fields = Path(f"/proc/{terminal.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def child_of(pid: int, containing: str) -> int | None:
    """The process id of a child of `pid` whose command line contains a text."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
            command = Path(f"/proc/{entry}/cmdline").read_text()
            if int(stat[1]) == pid and containing in command:
                return int(entry)
    return None


def running(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def ended(pid: int, timeout: float) -> bool:
    """Whether a process ends within `timeout` seconds; it need not be a child, which alone could be waited for."""
    if not hasattr(os, "pidfd_open"):  # macOS
        exit_of = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
        with contextlib.closing(select.kqueue()) as queue, contextlib.suppress(ProcessLookupError):
            return bool(queue.control([exit_of], 1, timeout))
        return True
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], timeout)[0])
    finally:
        os.close(process)

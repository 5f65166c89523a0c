"""Functions from the user's Python files: loaded again when the file changes, with their errors in one line."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import traceback
import types
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Protocol

from rlplay.neighbours import import_from
from rlplay.trace.text import visible
from rlplay.trusted import UntrustedError, check_module, source

LIMIT = 600.0
"""Seconds that a call of a user's function may take, unless RLPLAY_REWARD_SECONDS is another number."""
_DIGITS = 8
_LONGEST = 1000
"""Characters of an error's message."""


class OwnError(ValueError):
    """A file of the user's that cannot be used: one line with the file, the place and what to do."""


class UserCode(Protocol):
    """A function of the user's, from wherever it comes."""

    @property
    def place(self) -> str:
        """What it comes from, for a message."""

    name: str

    def current(self) -> Callable[..., Any]:
        """The function as its source defines it now. Raises OwnError, one line, if it cannot be had."""

    def failed(self, error: BaseException) -> OwnError:
        """The error that the function raised, in one line with its place."""


class UserFunction:
    """A user's function as its file defines it now, so that the user can fix a mistake while the run waits.

    Raises OwnError, one line, if the file cannot be run or has no such function.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self._seen: tuple[int, int] | None = None
        self._current: Callable[..., Any] | None = None
        self._failure: OwnError | None = None

    @property
    def place(self) -> str:
        """What it comes from, for a message."""
        return str(self.path)

    def current(self) -> Callable[..., Any]:
        """The function, loaded again if its file has changed."""
        try:
            found = self.path.stat()
        except OSError as error:  # an editor may be replacing it
            if self._current is None:
                raise OwnError(f"{self.path}: {error.strerror}") from None
            return self._current
        stamp = (found.st_mtime_ns, found.st_size)
        if stamp != self._seen:
            self._seen, self._failure = stamp, None
            try:
                self._current = _function(self.path, self.name)
            except OwnError as error:
                self._failure = error
                if isinstance(error.__cause__, UntrustedError):
                    self._seen = None  # the user may come to trust it as it is
        if self._failure is not None or self._current is None:
            raise self._failure or OwnError(f"{self.path}: no function {self.name!r}")
        return self._current

    def failed(self, error: BaseException) -> OwnError:
        """The error that the function raised, in one line with the place in the user's file."""
        return OwnError(blame(self.path, error))


class ImportedFunction:
    """A function of an installed module, imported because the user has named it; only a new run imports it anew.

    Raises OwnError, one line, if the module cannot be imported or has no such function.
    """

    def __init__(self, module: str, name: str) -> None:
        self.place, self.name = module, name
        try:
            check_module(module)
        except UntrustedError as error:
            raise OwnError(str(error)) from error
        with contained(module, lambda error: _not_imported(module, error)):
            imported = importlib.import_module(module)
        self._function = _of_module(imported, module, name)
        self._file = Path(getattr(imported, "__file__", None) or module)

    def current(self) -> Callable[..., Any]:
        """The function."""
        return self._function

    def failed(self, error: BaseException) -> OwnError:
        """The error that the function raised, in one line with the place in the module's file."""
        return OwnError(f"{self.place}: {self.name}: {blame(self._file, error)}")


def _not_imported(module: str, error: BaseException) -> OwnError:
    return OwnError(f"{module}: {_in_one_line(error)}; install the package, or name another module")


@contextmanager
def contained(what: str, failed: Callable[[BaseException], OwnError]) -> Iterator[None]:
    """Run the user's code: whatever it raises but a ctrl+c becomes what `failed` makes of it.

    It can neither end the process with os._exit nor take longer than `within_limit` allows. A process that it forks
    ends with it.
    """
    process = os.getpid()
    try:
        with _no_end(process), within_limit(what):
            yield
    except (KeyboardInterrupt, OwnError):
        raise
    except BaseException as error:  # a script that ends itself must not end the run
        raise failed(error) from error
    finally:
        if os.getpid() != process:
            _end(0)


_end, _ends = os._exit, threading.Lock()
_inside = 0


@contextmanager
def _no_end(process: int) -> Iterator[None]:
    """Let os._exit raise SystemExit in this process, in all of its threads."""
    global _inside  # noqa: PLW0603 - os._exit is one for all threads

    def refuse(status: int) -> NoReturn:
        if os.getpid() != process:  # a process that it has forked may end
            _end(status)
        raise SystemExit(f"os._exit({status})")

    with _ends:
        _inside += 1
        os._exit = refuse
    try:
        yield
    finally:
        with _ends:
            _inside -= 1
            if not _inside:
                os._exit = _end


class _TooSlow(BaseException):
    """Raised inside a user's function that has had its time; no `except Exception` there keeps it."""


@contextmanager
def within_limit(what: str) -> Iterator[None]:
    """Abandon what the user's code does in the context once it has taken `LIMIT` seconds, with an OwnError.

    The environment variable RLPLAY_REWARD_SECONDS sets another limit. It works in the main thread alone, of systems
    with signals, and cannot end what never lets go of the interpreter, such as a hopeless regular expression.
    """
    given = os.environ.get("RLPLAY_REWARD_SECONDS", "")
    limit = float(given) if given.isascii() and given.isdecimal() and 0 < len(given) < _DIGITS else LIMIT
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGUSR2"):
        yield
        return
    thread, over = threading.get_ident(), threading.Event()

    def give_up(_signal: int, _frame: object) -> None:
        if not over.is_set():
            raise _TooSlow

    def wait() -> None:
        seconds = limit
        while not over.wait(seconds):
            signal.pthread_kill(thread, signal.SIGUSR2)
            seconds = 1.0  # again, in case the function has caught it

    before = signal.signal(signal.SIGUSR2, give_up)
    clock = threading.Thread(target=wait, name="time limit", daemon=True)
    clock.start()
    try:
        yield
    except _TooSlow:
        over.set()
        raise OwnError(f"{what} takes more than {limit:g} s; RLPLAY_REWARD_SECONDS sets another limit") from None
    finally:
        over.set()
        clock.join()
        signal.signal(signal.SIGUSR2, before)


def names_function(name: str) -> bool:
    """Whether `name` means a function of the user's, `FILE.py:FUNCTION` or `MODULE:FUNCTION`, and not a bundled one."""
    return ":" in name


def _function(path: Path, name: str) -> Callable[..., Any]:
    return _of_module(_module(path), str(path), name)


def _of_module(module: types.ModuleType, place: str, name: str) -> Callable[..., Any]:
    function = getattr(module, name, None)
    if not callable(function):
        defined = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise OwnError(f"{place}: no function {name!r}; it has {', '.join(defined) or 'none'}")
    found: Callable[..., Any] = function
    return found


def _module(path: Path) -> types.ModuleType:
    """The user's file, run again. It may import files from its folder, also later, inside a call."""
    module = types.ModuleType(f"rlplay_user_{path.stem}_{zlib.crc32(str(path.resolve()).encode()):08x}")
    module.__file__ = str(path)
    # Dataclasses and pickle look their module up here.
    sys.modules[module.__name__] = module
    try:
        code = compile(source(path), path, "exec")
    except UntrustedError as error:
        raise OwnError(str(error)) from error
    except SyntaxError as error:
        place = path if error.filename is None else error.filename
        raise OwnError(f"{place}:{error.lineno}: SyntaxError: {error.msg}") from error
    except Exception as error:
        raise OwnError(blame(path, error)) from error
    import_from(path.resolve().parent, partial(source, imported=True))
    with contained(str(path), lambda error: OwnError(blame(path, error))):
        # Not by importlib: its cache cannot tell two versions of the same second and length apart.
        exec(code, vars(module))
    return module


def blame(path: Path, error: BaseException) -> str:
    """`FILE:LINE: Kind: message`, with the last line of the user's file in the traceback."""
    user = path.resolve()
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == user]
    place = f"{path}:{lines[-1]}" if lines else str(path)
    return f"{place}: {_in_one_line(error)}"


def _in_one_line(error: BaseException) -> str:
    try:
        words = str(error)[:_LONGEST]
    except Exception:  # its own __str__ fails
        words = "its message cannot be read"
    return f"{type(error).__name__}: {visible(' '.join(words.split()))}"

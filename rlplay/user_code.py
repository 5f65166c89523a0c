"""Functions from the user's Python files: loaded again when the file changes, with their errors in one line."""

from __future__ import annotations

import importlib
import sys
import traceback
import types
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from rlplay.containment import OwnError, contained
from rlplay.neighbours import import_from
from rlplay.trace.text import visible
from rlplay.trusted import UntrustedError, check_module, source

_LONGEST = 1000
"""Characters of an error's message."""


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
        found = imported(module)
        self._function = _of_module(found, module, name)
        self._file = Path(getattr(found, "__file__", None) or module)

    def current(self) -> Callable[..., Any]:
        """The function."""
        return self._function

    def failed(self, error: BaseException) -> OwnError:
        """The error that the function raised, in one line with the place in the module's file."""
        return OwnError(f"{self.place}: {self.name}: {blame(self._file, error)}")


def imported(module: str, part: str | None = None) -> types.ModuleType:
    """An installed module that the user trusts, or a `part` of it.

    Raises OwnError, one line, if the module is not trusted or cannot be imported.
    """
    try:
        check_module(module)
    except UntrustedError as error:
        raise OwnError(str(error)) from error
    with contained(module, lambda error: _not_imported(module, error)):
        return importlib.import_module(part or module)


def _not_imported(module: str, error: BaseException) -> OwnError:
    return OwnError(f"{module}: {in_one_line(error)}; install the package, or name another module")


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
    return f"{place}: {in_one_line(error)}"


def in_one_line(error: BaseException) -> str:
    """`Kind: message` of an error, without control characters."""
    try:
        words = str(error)[:_LONGEST]
    except Exception:  # its own __str__ fails
        words = "its message cannot be read"
    return f"{type(error).__name__}: {visible(' '.join(words.split()))}"

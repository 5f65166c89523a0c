"""The user's own choices: `FILE.py:FUNCTION` as a surrogate, or as the function that turns rewards into advantages.

Like the built-in ones, such a function is written over an array namespace `xp` and takes its arguments by name:

    def soft_clip(xp, ratio, advantages, epsilon):
        \"\"\"A clip without a corner.\"\"\"
        return -epsilon * xp.tanh((ratio - 1) / epsilon) * advantages

Its file runs only if a scenario, an option or a knob named it in this process, and `rlplay.trusted` lets it. A recorded
run that names one is shown without running it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlplay.algorithms.own_trial import check_imports, place_of, try_out
from rlplay.algorithms.scales import Scale
from rlplay.algorithms.surrogates import Surrogate
from rlplay.containment import OwnError, contained
from rlplay.trace.kinds import SomeSettings
from rlplay.user_code import UserFunction

OWN = ("surrogate", "scale_rewards")
"""The settings that take a function of the user's."""
SUFFIXES = (".yaml", ".yml")
"""The suffixes of an algorithm's file."""

_named: dict[str, UserFunction] = {}
_rows: dict[tuple[str, str], tuple[Callable[..., Any], Any]] = {}
"""The latest version of each function, and its row, by setting and name."""


def is_own(name: str) -> bool:
    """Whether `name` means one of the user's functions: `FILE.py:FUNCTION`."""
    return ".py:" in name


def absolute_files(named: SomeSettings, folder: Path) -> SomeSettings:
    """The `named` settings with absolute paths for the files in them; relative paths count from `folder`."""
    return {
        name: str(folder.absolute() / Path(value).expanduser()) if names_file(name, value) else value
        for name, value in named.items()
    }


def names_file(setting: str, value: Any) -> bool:
    """Whether the value of a setting names a user's file, with a function or an algorithm."""
    if not isinstance(value, str) or setting not in (*OWN, "algorithm"):
        return False
    return value.endswith(SUFFIXES) if setting == "algorithm" else is_own(value)


def functions_in(named: SomeSettings) -> list[str]:
    """The user's functions that settings name themselves, each `FILE.py:FUNCTION`; not those in an algorithm's file."""
    return [value for name, value in named.items() if name in OWN and names_file(name, value)]


def allow_all(settings: Any) -> None:
    """Allow every function that the settings name; only for what the user starts or sets, never for a recording.

    Raises OwnError, one line with the file, the line and what to do.
    """
    for setting in OWN:
        if is_own(getattr(settings, setting)):
            allow(setting, getattr(settings, setting), settings)


def allow(setting: str, name: str, settings: Any) -> None:
    """Allow the function `name` for a setting from now on, after a trial on a few numbers.

    Raises OwnError, one line with the file, the line and what to do.
    """
    file, _, function = name.rpartition(":")
    if not Path(file).is_file():
        raise OwnError(f"{setting}={name}: there is no file {file}; correct the path, or put the file back")
    check_imports(Path(file))
    used = _named.setdefault(name, UserFunction(Path(file), function))
    try_out(used.path, setting, _guarded(used, used.current()), settings)


def allow_running(held: SomeSettings) -> None:
    """Allow the functions that a live run's engine already trains with, even if their files are broken now."""
    for name in OWN:
        value = held.get(name)
        if isinstance(value, str) and is_own(value) and value not in _named:
            file, _, function = value.rpartition(":")
            _named[value] = UserFunction(Path(file), function)


def own_choice(setting: str, name: str, settings: Any) -> Any:
    """The row of an allowed function as its file defines it now; for any other, a row without a computation.

    A new version is tried out first, under the `settings`. If it fails, the row's computation raises that error.
    """
    function = _named.get(name)
    if function is None:
        return _row(setting, name, None, f"the function {name}, which a recording does not run")
    try:
        current = function.current()
    except OwnError as error:
        return _failing(setting, name, error)
    key = setting, name
    if key not in _rows or _rows[key][0] is not current:
        compute, about = _guarded(function, current), (inspect.getdoc(current) or "").partition("\n")[0]
        try:
            check_imports(function.path)
            try_out(function.path, setting, compute, settings)
        except OwnError as error:  # not kept: other settings may suit it
            return _failing(setting, name, error)
        _rows[key] = current, _row(setting, name, compute, about)
    return _rows[key][1]


def place(name: str) -> str:
    """Where an allowed function is, with its name: `FILE:FIRST-LAST: FUNCTION`."""
    function = _named[name]
    return f"{place_of(function.path, function.current())}: {function.name}"


def _failing(setting: str, name: str, error: OwnError) -> Any:
    """A row for a function with a mistake: its description is the error message, and its `compute` raises the error."""

    def failing(_xp: Any) -> Any:
        raise error

    return _row(setting, name, failing, str(error))


def _row(setting: str, name: str, compute: Callable[..., Any] | None, about: str) -> Any:
    if setting == "surrogate":
        return Surrogate(name, compute, about, clipped=_flat)
    return Scale(name, compute, about, equation=about)


def _flat(_settings: Any, state: int) -> tuple[str, str]:
    """The text for a token at which the function's gradient is 0."""
    head = f"{'▲' if state > 0 else '▼'} clipped: S does not change with ℓ here, though A is not 0"
    return head, "Its gradient is 0: moving it further gains nothing"


def _guarded(function: UserFunction, current: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(current)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        with contained(function.place, function.failed):
            return current(*args, **kwargs)

    return guarded

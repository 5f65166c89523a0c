"""The user's own choices: `FILE.py:FUNCTION` as a surrogate, or as the function that turns rewards into advantages.

Like the built-in ones, such a function is written over an array namespace `xp` and takes its arguments by name:

    def soft_clip(xp, ratio, advantages, epsilon):
        \"\"\"A clip without a corner.\"\"\"
        return -epsilon * xp.tanh((ratio - 1) / epsilon) * advantages

Its file runs only if a scenario, an option or a knob named it in this process. A recorded run that names one is shown
without running it.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlplay.algorithms.arrays import NumpyArrays
from rlplay.algorithms.choice import argument_names, call_choice
from rlplay.algorithms.scales import Scale
from rlplay.algorithms.surrogates import Surrogate
from rlplay.spelling import did_you_mean
from rlplay.user_code import OwnError, UserFunction

SURROGATE_ARGUMENTS = ("ratio", "advantages", "logprobs", "old_logprobs", "ref_logprobs", "log_ratio", "mask")
"""What a surrogate may take besides settings, each [N, L]."""
ADVANTAGE_ARGUMENTS = ("outcomes", "group", "lengths", "returns", "baseline", "raw", "values", "token_rewards", "mask")
"""What an advantage may take besides settings: `outcomes`, `group` and `lengths` [N], the others [N, L]."""

OWN = ("surrogate", "scale_rewards")
"""The settings that a function of the user's own may stand for."""
SUFFIXES = (".yaml", ".yml")
"""What the file of an algorithm ends in."""

_named: dict[str, UserFunction] = {}
_rows: dict[tuple[str, str], tuple[Callable[..., Any], Any]] = {}
"""The latest version of each function, and its row, by setting and name."""


def is_own(name: str) -> bool:
    """Whether `name` means one of the user's functions: `FILE.py:FUNCTION`."""
    return ".py:" in name


def absolute_files(settings: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """`settings` with absolute paths for the files in them; relative paths count from `folder`."""
    return {
        name: str(folder.absolute() / value) if names_file(name, value) else value for name, value in settings.items()
    }


def names_file(setting: str, value: Any) -> bool:
    """Whether the value of a setting names a file of the user's: a function of theirs, or an algorithm."""
    if not isinstance(value, str) or setting not in (*OWN, "algorithm"):
        return False
    return value.endswith(SUFFIXES) if setting == "algorithm" else is_own(value)


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
        raise OwnError(f"{setting}={name}: there is no file {file}")
    source = Path(file).read_bytes()
    if any(library == "torch" for library in _imported(source, file)):
        raise OwnError(f"{file} imports torch; write the function with xp, so that the screen can evaluate it too")
    _named.setdefault(name, UserFunction(Path(file), function)).current()
    row = own_choice(setting, name)
    _check_names(file, row.compute, SURROGATE_ARGUMENTS if setting == "surrogate" else ADVANTAGE_ARGUMENTS, settings)
    with np.errstate(all="ignore"):
        tried = call_choice(row.compute, NumpyArrays, _trial(), settings)
    if not isinstance(tried, np.ndarray) or not np.issubdtype(tried.dtype, np.floating):
        raise OwnError(f"{file}: {function} must return an array, a number for each token; it gave {_kind(tried)}")
    if not _fits(tried.shape):
        raise OwnError(f"{file}: {function} gives an array of shape {list(tried.shape)} for tokens of [2, 3]")


def allow_running(settings: Mapping[str, Any]) -> None:
    """Let the functions that a live run's engine trains with be read here too, whatever state their files are in."""
    for name in OWN:
        value = settings.get(name)
        if isinstance(value, str) and is_own(value) and value not in _named:
            file, _, function = value.rpartition(":")
            _named[value] = UserFunction(Path(file), function)


def _kind(value: Any) -> str:
    return "nothing: return is missing" if value is None else type(value).__name__


def _fits(shape: tuple[int, ...]) -> bool:
    """Whether an array broadcasts to the two answers of three tokens that a function is tried on."""
    return len(shape) <= 2 and all(size in (1, length) for size, length in zip(shape[::-1], (3, 2), strict=False))


def own_choice(setting: str, name: str) -> Any:
    """The row of an allowed function as its file defines it now; for any other, a row without a computation."""
    function = _named.get(name)
    if function is None:
        return _row(setting, name, None, f"the function {name}, which a recording does not run")
    try:
        current = function.current()
    except OwnError as error:  # raised when something computes with the row; the screen shows it as the equation
        return _row(setting, name, _failing(error), str(error))
    key = setting, name
    if key not in _rows or _rows[key][0] is not current:
        about = (inspect.getdoc(current) or "").partition("\n")[0]
        _rows[key] = current, _row(setting, name, _guarded(function, current), about)
    return _rows[key][1]


def _failing(error: OwnError) -> Callable[..., Any]:
    def failing(_xp: Any) -> Any:
        raise error

    return failing


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
        try:
            return current(*args, **kwargs)
        except (Exception, SystemExit) as error:
            raise function.failed(error) from error

    return guarded


def _check_names(file: str, compute: Callable[..., Any], quantities: tuple[str, ...], settings: Any) -> None:
    known = [*quantities, *settings.__struct_fields__]
    if list(inspect.signature(compute).parameters)[:1] != ["xp"]:
        raise OwnError(f"{file}: the first argument of {compute.__name__} must be xp, the array namespace")
    for name in argument_names(compute):
        if name not in known:
            near = did_you_mean(name, known) or f"; it may take {', '.join(quantities)} and settings"
            raise OwnError(
                f"{file}: {compute.__name__} takes {name!r}, which is neither a quantity nor a setting{near}"
            )


def _imported(source: bytes, file: str) -> list[str]:
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise OwnError(f"{file}:{error.lineno}: SyntaxError: {error.msg}") from error
    named = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    named += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return [name.partition(".")[0] for name in named]


def _trial() -> dict[str, Any]:
    """Two answers of three tokens, the last of them padding."""
    new, old = np.array([[-0.4, -1.2, -0.7], [-2.0, -0.1, -0.7]]), np.array([[-0.5, -1.0, -0.7], [-1.0, -0.3, -0.7]])
    mask, side = np.array([[True, True, True], [True, True, False]]), np.array([[0.5] * 3, [-0.5] * 3])
    return {
        "ratio": np.exp(new - old), "advantages": side, "logprobs": new, "old_logprobs": old, "ref_logprobs": old,
        "log_ratio": new - old, "mask": mask, "outcomes": np.array([1.0, 0.0]), "group": np.array([0, 0]),
        "lengths": np.array([3, 2]), "returns": side + 0.5, "baseline": side * 0 + 0.5, "raw": side, "values": side,
        "token_rewards": side, "epsilon": 0.2, "epsilon_high": 0.2,
    }  # fmt: skip

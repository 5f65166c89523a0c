"""The trial of a user's function: its arguments and its result are checked on a few numbers before anything uses it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlplay.algorithms.arrays import NumpyArrays
from rlplay.algorithms.choice import argument_names, call_choice
from rlplay.algorithms.expression_text import equation
from rlplay.algorithms.symbols import Expression, Symbols
from rlplay.algorithms.symbols import name as symbol
from rlplay.containment import OwnError
from rlplay.spelling import did_you_mean
from rlplay.trace.text import quote

SURROGATE_ARGUMENTS = ("ratio", "advantages", "logprobs", "old_logprobs", "ref_logprobs", "log_ratio", "mask")
"""What a surrogate may take besides settings, each [N, L]."""
ADVANTAGE_ARGUMENTS = ("outcomes", "group", "lengths", "returns", "baseline", "raw", "values", "token_rewards", "mask")
"""What an advantage may take besides settings: `outcomes`, `group` and `lengths` [N], the others [N, L]."""


def check_imports(file: Path) -> None:
    """Raises OwnError, one line, if a file imports torch or is no Python."""
    try:
        tree = ast.parse(file.read_bytes())
    except SyntaxError as error:
        raise OwnError(f"{file}:{error.lineno}: SyntaxError: {error.msg}") from error
    except (OSError, ValueError) as error:
        raise OwnError(f"{file}: {error}") from None
    named = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    named += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    if any(name.partition(".")[0] == "torch" for name in named):
        raise OwnError(f"{file} imports torch; write the function with xp, so that the screen can evaluate it too")


def try_out(file: Path, setting: str, compute: Callable[..., Any], settings: Any) -> None:
    """Call a function on two answers of three tokens, in numpy and as an equation.

    Raises OwnError, one line with the file, the lines and what to do.
    """
    place = f"{place_of(file, compute)}: {compute.__name__}"
    _check_names(place, compute, SURROGATE_ARGUMENTS if setting == "surrogate" else ADVANTAGE_ARGUMENTS, settings)
    before = trial()
    given = {name: values.copy() for name, values in before.items()}
    with np.errstate(all="ignore"):
        found = call_choice(compute, NumpyArrays, given | BOUNDS, settings)
    if not isinstance(found, np.ndarray) or not np.issubdtype(found.dtype, np.floating):
        raise OwnError(f"{place} must return an array, a number for each token; it gave {_kind(found)}")
    if not fits(found.shape):
        raise OwnError(f"{place} gives an array of shape {list(found.shape)} for tokens of [2, 3]")
    for name, values in before.items():
        if not np.array_equal(values, given[name]):
            raise OwnError(
                f"{place} changes {name} in place; compute a new array: {name} = {name} * 2, not {name} *= 2"
            )
    _check_equation(place, compute, before, settings)


def _check_equation(place: str, compute: Callable[..., Any], quantities: Mapping[str, Any], settings: Any) -> None:
    symbols = {quantity: symbol(quantity) for quantity in quantities}
    try:
        found = call_choice(compute, Symbols, symbols | BOUNDS, settings)
    except OwnError:  # no equation can hold it; its description is shown instead
        return
    try:
        if isinstance(found, Expression):
            equation(found)
    except ValueError as error:
        raise OwnError(f"{place}: {error}") from None


def place_of(file: Path, compute: Callable[..., Any]) -> str:
    """Where a function is: `FILE:FIRST-LAST`, its lines."""
    code = getattr(inspect.unwrap(compute), "__code__", None)
    if code is None:
        return str(file)
    last = max((line for *_, line in code.co_lines() if line is not None), default=code.co_firstlineno)
    return f"{file}:{code.co_firstlineno}" + (f"-{last}" if last > code.co_firstlineno else "")


def fits(shape: tuple[int, ...]) -> bool:
    """Whether an array of this shape broadcasts to the two answers of three tokens of `trial`."""
    return len(shape) <= 2 and all(size in (1, length) for size, length in zip(shape[::-1], (3, 2), strict=False))


BOUNDS = {"epsilon": 0.2, "epsilon_high": 0.2}
"""The clip bounds of a trial: a setting may leave the upper one to the lower one."""


def trial() -> dict[str, Any]:
    """The quantities of two answers of three tokens, the last of them padding."""
    new, old = np.array([[-0.4, -1.2, -0.7], [-2.0, -0.1, -0.7]]), np.array([[-0.5, -1.0, -0.7], [-1.0, -0.3, -0.7]])
    mask, side = np.array([[True, True, True], [True, True, False]]), np.array([[0.5] * 3, [-0.5] * 3])
    return {
        "ratio": np.exp(new - old), "advantages": side, "logprobs": new, "old_logprobs": old, "ref_logprobs": old,
        "log_ratio": new - old, "mask": mask, "outcomes": np.array([1.0, 0.0]), "group": np.array([0, 0]),
        "lengths": np.array([3, 2]), "returns": side + 0.5, "baseline": side * 0 + 0.5, "raw": side, "values": side,
        "token_rewards": side,
    }  # fmt: skip


def _kind(value: Any) -> str:
    return "nothing: return is missing" if value is None else type(value).__name__


def _check_names(place: str, compute: Callable[..., Any], quantities: tuple[str, ...], settings: Any) -> None:
    known = [*quantities, *settings.__struct_fields__]
    if list(inspect.signature(compute).parameters)[:1] != ["xp"]:
        raise OwnError(f"{place} must take xp, the array namespace, as its first argument")
    for name in argument_names(compute):
        if name not in known:
            near = did_you_mean(name, known) or f"; it may take {', '.join(quantities)} and settings"
            raise OwnError(f"{place} takes {quote(name)}, which is neither a quantity nor a setting{near}")

"""A learner's lines on the batch at hand, compared number by number with what the engine computes. Changes nothing."""

from __future__ import annotations

import contextlib
import io
import math
import random
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlplay.containment import OwnError, contained
from rlplay.engine.state import State
from rlplay.engine.tensors import Tensors
from rlplay.engine.written_material import material
from rlplay.exercises import exercise_called
from rlplay.exercises.check import Case, Check
from rlplay.exercises.checks import CHECKS
from rlplay.exercises.verdict import judged
from rlplay.trace.questions import BothNumbers, Tried, TryCode
from rlplay.trace.records import Array
from rlplay.trace.text import visible

SECONDS = 3.0
"""How long a learner's lines may take on the whole batch."""
_FILE = "<your lines>"
_PRINTED = 400
"""Characters of what the lines print that are kept."""
_LONGEST = 300


class LinesError(OwnError):
    """Lines that give no numbers: one line of words, and the number of the line at fault, 0 if none is."""

    def __init__(self, words: str, line: int = 0) -> None:
        super().__init__(words)
        self.line = line


def try_code(question: TryCode, state: State) -> Tried:
    """What the learner's lines make of the batch. Raises ValueError, one line, if the batch does not suit them."""
    exercise, check = exercise_called(question.exercise), CHECKS[question.exercise]
    cases = [*check.cases(material(state)), *check.made_up()]
    printed = io.StringIO()
    try:
        yours = _numbers(question.code, check, cases, printed)
    except LinesError as error:
        return Tried(question.exercise, question.number, error=str(error), line=error.line, printed=_start(printed))
    engine = _engine_numbers(check, cases)
    found = judged(exercise, cases, yours, engine, lambda code: _or_none(code, check, cases))
    places = [(place, case.made_up) for case in cases for place in case.places]

    def both(at: int) -> BothNumbers:
        place, made_up = places[at]
        return BothNumbers(place.label, place.completion, place.token, float(yours[at]), float(engine[at]), made_up)

    return Tried(
        question.exercise, question.number, compared=found.compared - bool(check.gradient_of),  # not the loss
        unit=check.unit, passed=found.first is None,
        first=None if found.first is None else both(found.first), rows=[both(at) for at in found.shown],
        remark=found.remark, printed=_start(printed),
    )  # fmt: skip


def _start(printed: io.StringIO) -> str:
    return printed.getvalue()[:_PRINTED].rstrip()


def _or_none(code: str, check: Check, cases: Sequence[Case]) -> Array | None:
    """The numbers of a known wrong try; None where it fails on these cases."""
    try:
        return _numbers(code, check, cases, io.StringIO())
    except LinesError:
        return None


def _engine_numbers(check: Check, cases: Sequence[Case]) -> Array:
    """What the engine's own functions give."""
    return np.concatenate([case.answers if case.answers is not None else _of_engine(check, case) for case in cases])


def _of_engine(check: Check, case: Case) -> Array:
    arguments = _arguments(check, case)
    given: Tensor = next((x for x in arguments.values() if isinstance(x, Tensor)), torch.zeros(()))
    return _read(check, case, arguments, check.reference(Tensors(given), **arguments))


def _numbers(code: str, check: Check, cases: Sequence[Case], printed: io.StringIO) -> Array:
    """The numbers that the function in `code` gives in all `cases`. Raises LinesError."""
    found = []
    with _as_before(), contained("this", _failed, SECONDS), contextlib.redirect_stdout(printed), torch.enable_grad():
        function = _defined(code, check.function)
        for case in cases:
            arguments = _arguments(check, case)
            found.append(_read(check, case, arguments, function(**_with_namespace(function, arguments))))
    return np.concatenate(found)


def _with_namespace(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments; with the array namespace for a function that is written as the engine's own are."""
    code = getattr(function, "__code__", None)
    if code is None or "xp" not in code.co_varnames[: code.co_argcount]:
        return dict(arguments)
    like = next(x for x in arguments.values() if isinstance(x, Tensor))
    return {"xp": Tensors(like), **arguments}


def _defined(code: str, name: str) -> Callable[..., Any]:
    """The function `name` that the lines define."""
    namespace: dict[str, Any] = {"torch": torch, "math": math, "np": np, "__name__": "exercise"}
    exec(compile(code, _FILE, "exec"), namespace)
    function = namespace.get(name)
    if not callable(function):
        raise LinesError(f"there is no function {name}: keep the line that begins with def {name}")
    found: Callable[..., Any] = function
    return found


def _arguments(check: Check, case: Case) -> dict[str, Any]:
    """The arguments of a call, made anew for each: arrays as tensors, lists as copies."""
    found: dict[str, Any] = {
        name: torch.tensor(value)
        if isinstance(value, np.ndarray)
        else list(value)
        if isinstance(value, list)
        else value
        for name, value in case.arguments.items()
    }
    if check.gradient_of:
        found[check.gradient_of].requires_grad_()
    return found


def _read(check: Check, case: Case, arguments: Mapping[str, Any], result: Any) -> Array:
    """The numbers of a result, one for each place. Raises LinesError where it is none."""
    if result is None or result is ...:
        raise LinesError("the function returns nothing yet: end it with return")
    if check.gradient_of:
        return _pulls(case, arguments[check.gradient_of], result)
    if case.shape is None:
        return _of_mapping(case, result)
    values = _array(result)
    if values.shape != case.shape:
        values = _stretched(values, case.shape)
    return values[_inside(case)].reshape(-1)


def _inside(case: Case) -> Array:
    return np.ones(case.shape or (), dtype=bool) if case.inside is None else case.inside


def _pulls(case: Case, leaf: Tensor, loss: Any) -> Array:
    """How hard a loss pulls on each token, as the colour Credit has it: −∂L/∂ℓ × tokens; and the loss."""
    if not isinstance(loss, Tensor):
        raise LinesError(f"the loss is a {type(loss).__name__}: compute it from logprobs, so that it has a gradient")
    if loss.numel() != 1:
        raise LinesError(f"the loss is one number; yours has the shape {list(loss.shape)}")
    found = None
    if loss.requires_grad:
        (found,) = torch.autograd.grad(loss.reshape(()), leaf, allow_unused=True)
    gradient = torch.zeros_like(leaf) if found is None else found
    pulls = (-gradient * float(_inside(case).sum())).numpy()
    return np.append(pulls[_inside(case)], loss.item())


def _of_mapping(case: Case, result: Any) -> Array:
    if not isinstance(result, Mapping):
        raise LinesError(
            f"the function returns a {type(result).__name__}; a dictionary with a number for each is needed"
        )
    missing = [place.label for place in case.places if place.label not in result]
    if missing:
        raise LinesError(f"the dictionary has no number for {missing[0]}")
    return np.array([float(result[place.label]) for place in case.places])


def _array(result: Any) -> Array:
    try:
        if isinstance(result, Tensor):
            return np.asarray(result.detach().double().numpy())
        return np.array(
            [float(each) for each in result] if isinstance(result, list | tuple) else result, dtype=np.float64
        )
    except (TypeError, ValueError):
        raise LinesError(f"the function returns a {type(result).__name__} that holds no plain numbers") from None


def _stretched(values: Array, shape: tuple[int, ...]) -> Array:
    """A result of another shape as numbers of each place, where it can be nothing else."""
    with contextlib.suppress(ValueError):
        if values.ndim == len(shape):
            return np.broadcast_to(values, shape)
    wanted = f"{' × '.join(map(str, shape))} numbers" if shape else "one number"
    given = f"{' × '.join(map(str, values.shape))} numbers" if values.shape else "one number"
    raise LinesError(f"the function returns {given}; {wanted} are needed here" if shape else
                     f"the function returns {given}; one number is needed")  # fmt: skip


def _failed(error: BaseException) -> LinesError:
    """What stopped the lines, with the number of the line."""
    if isinstance(error, SyntaxError):
        return LinesError(f"{type(error).__name__}: {error.msg}", error.lineno or 0)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == _FILE and frame.lineno]
    try:
        words = " ".join(str(error)[:_LONGEST].split())
    except Exception:  # its own __str__ fails
        words = "its message cannot be read"
    return LinesError(f"{type(error).__name__}: {visible(words)}", lines[-1] if lines else 0)


@contextlib.contextmanager
def _as_before() -> Iterator[None]:
    """Leave the process's random numbers and torch's modes as they are."""
    numbers, arrays, graded = random.getstate(), np.random.get_state(), torch.is_grad_enabled()
    threads, kind, device = torch.get_num_threads(), torch.get_default_dtype(), torch.get_default_device()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    except LinesError:
        raise
    except OwnError as error:  # the limit of time
        raise LinesError(str(error)) from None
    except KeyboardInterrupt as error:  # by the lines themselves: the engine's process gets no ctrl+c
        raise _failed(error) from None
    finally:
        random.setstate(numbers)
        np.random.set_state(arrays)
        torch.set_grad_enabled(graded)
        torch.set_default_dtype(kind)
        if torch.get_default_device() != device:
            torch.set_default_device(None)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)

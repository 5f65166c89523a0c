"""The one place through which all of the recorder's code runs inside a training: what fails there ends there."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from rlplay.record.saying import said_by, say

T = TypeVar("T")
Call = tuple[tuple[Any, ...], dict[str, Any]]
"""The positional and the named arguments of a call."""
_ABSENT = object()
_OF = "__rlplay_of__"
"""Holds a wrapper itself, as copies of it have this too, its hooks, and what was there before it."""


class Part(StrEnum):
    """What fails by itself, in the words that say so."""

    RECORDING = "the recording ends"
    ANSWERS = "answers and rewards are no longer recorded"
    NUMBERS = "log-probabilities and derivatives are no longer recorded"
    METRICS = "the metrics of each step are no longer recorded"
    WEIGHTS = "how far the weights move is no longer recorded"
    STEERING = "the run can no longer be steered"
    TEACHERS = "who taught a token can no longer be asked"
    COUNT = "the processes no longer tell each other their tokens"
    END = "something stays on the trainer after training"


_ALWAYS = (Part.COUNT, Part.END)
"""What goes on when the recording has ended: other processes wait for it, or hooks would stay."""


class Guard:
    """Runs the recorder's work. Of a part that fails it says so once, on standard error, and runs nothing more.

    A disk that fails, or a failure in `Part.RECORDING`, ends all parts. The trainer's own exceptions pass.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        """`say` notes in the recording what was also printed."""
        self.seconds = 0.0  # spent in work
        self.where = ""  # the recording's path
        self._say = say
        self._lost: set[Part] = set()
        self._depth = 0

    def __call__(self, part: Part, work: Callable[..., T], *values: Any) -> T | None:
        """What `work(*values)` returns; None if it fails, or if its part has failed before."""
        if not self.alive(part):
            return None
        began = time.perf_counter()
        self._depth += 1
        try:
            return work(*values)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # Rust's panics are no Exception
            self._lose(part, error)
            return None
        finally:
            self._depth -= 1
            self.seconds += time.perf_counter() - began if not self._depth else 0.0

    def alive(self, part: Part) -> bool:
        """Whether a part is still recorded."""
        return part not in self._lost and (Part.RECORDING not in self._lost or part in _ALWAYS)

    def leave_out(self, part: Part) -> None:
        """Record nothing of a part from now on, without a word."""
        self._lost.add(part)

    def _lose(self, part: Part, error: BaseException) -> None:
        over = part is Part.RECORDING or isinstance(error, OSError)
        self._lost |= {part, Part.RECORDING} if over else {part}
        reason = said_by(error)
        if not over:
            self.remark(f"{part} ({reason}); the rest is recorded, and training goes on")
        elif self.where:
            self.remark(f"the recording at {self.where} ends here ({reason}); training goes on")
        else:
            self.remark(f"nothing is recorded ({reason}); training goes on")

    def remark(self, text: str) -> None:
        """Say something about the recording, on standard error and in it; nothing else happens if that fails."""
        say(text)
        if Part.RECORDING not in self._lost:
            with contextlib.suppress(Exception):
                self._say(text)


def no_hook(*_: Any, **__: Any) -> None:
    """What a copy of a model has in place of the recorder's hook."""


class _Passed:
    """A forward hook that stays behind when its model is copied, pickled or sent to another process."""

    def __init__(self, call: Callable[[dict[str, Any], Any], object]) -> None:
        self._call = call

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def __call__(self, _module: Any, _values: Any, options: dict[str, Any], out: Any) -> None:
        self._call(options, out)

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial, (no_hook,)

    def __deepcopy__(self, _memo: Any) -> Callable[..., None]:
        return no_hook


class Hooks:
    """Wrappers around a trainer's methods and hooks on its models, until `remove`."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._wraps: list[tuple[Any, str, Any, Any]] = []
        self._handles: list[Any] = []
        self._on = True

    def wrap(
        self,
        owner: Any,
        name: str,
        part: Part,
        *,
        before: Callable[[Call], None] | None = None,
        after: Callable[[Call, Any], None] | None = None,
        failed: Callable[[], None] | None = None,
    ) -> None:
        """Call these around `owner.name`, which gets the same arguments as ever and returns the same object.

        `failed` is called when the method raises. Raises AttributeError if the owner has no such method.
        """
        inner, own = getattr(owner, name), vars(owner).get(name, _ABSENT)

        @functools.wraps(inner)
        def wrapped(*values: Any, **options: Any) -> Any:
            if self._on and before is not None:
                self._guard(part, before, (values, options))
            try:
                found = inner(*values, **options)
            except BaseException:
                if self._on and failed is not None:
                    self._guard(Part.END, failed)
                raise
            if self._on and after is not None:
                self._guard(part, after, (values, options), found)
            return found

        wrapped.__dict__[_OF] = wrapped, self, own
        setattr(owner, name, wrapped)
        self._wraps.append((owner, name, wrapped, own))

    def forward(self, model: nn.Module, part: Part, work: Callable[[dict[str, Any], Any], None]) -> None:
        """Call `work` with the named arguments and the result of each forward pass."""

        hook = _Passed(functools.partial(self._guard, part, work))
        self._handles.append(model.register_forward_hook(hook, with_kwargs=True))

    def gradient(self, values: Tensor, part: Part, work: Callable[[Tensor], None]) -> None:
        """Call `work` with the derivative of the loss by `values` in the backward pass."""

        def differentiated(gradient: Tensor) -> None:
            self._guard(part, work, gradient)

        values.register_hook(differentiated)  # type: ignore[no-untyped-call]

    def remove(self) -> None:
        """Leave trainer and models as they were; a wrapper that somebody else has wrapped does nothing any more."""
        self._on = False
        for handle in self._handles:
            handle.remove()
        for owner, name, wrapped, before in reversed(self._wraps):
            if vars(owner).get(name) is not wrapped:
                continue
            if (own := _living(before)) is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, own)
        self._handles, self._wraps = [], []


def _living(found: Any) -> Any:
    """What was there before the wrappers that other recorders could not take away, as something was around them."""
    while (of := getattr(found, _OF, None)) is not None and of[0] is found and not of[1]._on:
        found = of[2]
    return found


def argument(call: Call, place: int, name: str) -> Any:
    """An argument of a call, by position or by name; None if it was not given."""
    values, options = call
    return values[place] if len(values) > place else options.get(name)

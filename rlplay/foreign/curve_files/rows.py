"""What every reader of curves offers: rows of numbers, as far as the file has been written."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rlplay.foreign.foreign_run import ForeignRunError

Scalars = dict[str, float]
LAST_STEP = 10**9
"""Steps beyond it are no steps: something else was logged under that name."""
LONGEST_LINE = 2**24
"""Bytes of a line with the numbers of one step."""
MEDIA = "_type"
"""The key by which W&B and trackio mark a table, a picture or a histogram."""
_COMPARED = 4096
"""Bytes of the first and the last line that was read, by which a file is known again: a copy has another inode."""
_WORDS = {"nan": math.nan, "infinity": math.inf, "-infinity": -math.inf, "inf": math.inf, "-inf": -math.inf}
"""How JSON files write what JSON has no number for."""


class Row(NamedTuple):
    """Numbers that were logged together, under the names of the file."""

    step: int
    scalars: Scalars


class StartedAgainError(Exception):
    """The file is another one than before: all that was read from it is void."""


class CurveLog(Protocol):
    """A file, or several of one run, with numbers by step; it may still grow."""

    path: Path
    """Where the run is, as a user would name it."""
    source: str
    """Who wrote it, such as "TensorBoard"."""
    goes_back: bool
    """Whether a step below the last one means that training went back there; else rows just come late."""

    def about(self) -> dict[str, Any]:
        """What else the file says of the run, as arguments of `beginning`. Raises ForeignRunError if it is damaged."""

    def fresh(self) -> list[Row]:
        """The rows that came since the last call. Raises ForeignRunError if the file is damaged.

        Raises StartedAgainError if the file was replaced; the next call begins with its first row.
        """


def as_step(value: Any) -> int | None:
    """A step, from a number; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LAST_STEP:
        return None
    return int(value) if value == int(value) else None


def as_number(value: Any) -> float | None:
    """A number, also one that JSON cannot write and the file spells; None if it is none."""
    if isinstance(value, str):
        return _WORDS.get(value.lower())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def numbers(logged: Mapping[Any, Any], prefix: str = "", depth: int = 4) -> Iterator[tuple[str, float]]:
    """The numbers among what was logged; those in a nested mapping under `outer/inner`."""
    for name, value in logged.items():
        if isinstance(value, Mapping):
            if depth and MEDIA not in value:
                yield from numbers(value, f"{prefix}{name}/", depth - 1)
        elif (number := as_number(value)) is not None:
            yield f"{prefix}{name}", number


def model_in(options: Mapping[str, Any]) -> str:
    """The model that the options of a trainer name; "" if none does."""
    return str(options.get("model_name_or_path") or options.get("_name_or_path") or "")


def parsed(text: str | bytes) -> Any:
    """What a JSON text says. Raises ValueError, also where it is nested too deeply or has too long a number."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


_STEPS = ("train/global_step", "trainer/global_step", "eval/global_step", "global_step", "step")
"""Names under which trainers log their own step beside their numbers."""


class Clock:
    """The trainer's steps of a log that counts its own calls: `wandb.log` and `trackio.log` do.

    Where a trainer logs its step as a number, rows without it belong to the last one, as W&B's `step_sync` has it.
    """

    def __init__(self) -> None:
        self._last: int | None = None

    def row(self, logged: Mapping[str, Any], call: Any) -> Iterator[Row]:
        """The row of one call; none if it holds no number or no step. Names that begin with _ are of the log itself."""
        steps = (as_step(logged.get(name)) for name in _STEPS)
        self._last = next((step for step in steps if step is not None), self._last)
        step = as_step(call) if self._last is None else self._last
        own = {name: value for name, value in logged.items() if not name.startswith("_") and name not in _STEPS}
        if step is not None and (scalars := dict(numbers(own))):
            yield Row(step, scalars)


class Tail:
    """The lines that were added to a text file since the last look, the last one only if it is whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.restart()

    def restart(self) -> None:
        """Begin with the first line again."""
        self._offset, self._first, self._last = 0, b"", b""

    def lines(self) -> Iterable[bytes]:
        """The new lines. Raises ValueError if one is too long, StartedAgainError if what was read is not there now."""
        with self.path.open("rb") as file:
            for place, seen in ((0, self._first), (self._offset - len(self._last), self._last)):
                file.seek(place)
                if file.read(len(seen)) != seen:
                    self.restart()
                    raise StartedAgainError
            while line := file.readline(LONGEST_LINE + 1):
                if not line.endswith(b"\n"):
                    if len(line) > LONGEST_LINE:
                        raise ValueError(f"a line has more than {LONGEST_LINE} bytes")
                    return
                self._offset += len(line)
                self._first, self._last = self._first or line[:_COMPARED], line[-_COMPARED:]
                yield line


def read_rows(log: CurveLog, forget: Callable[[], None]) -> list[Row]:
    """The rows that came since the last call; `forget` is called first if the file is another one than before.

    Raises ForeignRunError if the file is damaged or cannot be read.
    """
    try:
        try:
            return log.fresh()
        except StartedAgainError:
            forget()
            return log.fresh()
    except StartedAgainError:
        raise ForeignRunError(f"{log.path} is being written anew; look again later") from None
    except OSError as error:
        raise ForeignRunError(f"{log.path} cannot be read ({error.strerror or error})") from None

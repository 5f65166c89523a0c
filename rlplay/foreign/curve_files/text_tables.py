"""Reads curves from lines of text: JSON lines with a step, as several trainers write them, and CSV.

verl, `trainer.logger=file`: {"step": N, "data": {…}} in PROJECT/EXPERIMENT.jsonl (FileLogger in
verl/utils/tracking.py, 0.9.1; its JSON has null for NaN and infinities). prime-rl: {"step": N, "time": …, …} in
monitors/file/metrics.jsonl, several rows a step and rows without one (monitors/file/monitor.py at 048a6e2).
tinker-cookbook: {"step": N, …} in log_path/metrics.jsonl, which a resumed run cuts off (stores/training_store.py,
0.6.1).
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlplay.foreign.curve_files.rows import (
    LONGEST_LINE,
    Row,
    Scalars,
    StartedAgainError,
    Tail,
    as_number,
    as_step,
    numbers,
    parsed,
)
from rlplay.foreign.foreign_run import ForeignRunError

METRICS = "metrics.jsonl"
_STEPS = ("step", "global_step", "train/global_step", "_step", "Step", "iteration")
_APART = ("time", "timestamp", "producer")


class JsonLines:
    """Files of JSON lines, each with a step; rows that come late replace those of the same step."""

    goes_back = False

    def __init__(self, path: Path, files: Sequence[Path], source: str) -> None:
        """The run `path`, of which these are the files: prime-rl's trainer and orchestrator each write one."""
        self.path, self.source = path, source
        self._tails = [Tail(file) for file in files]

    def about(self) -> dict[str, Any]:
        """Nothing: what stands beside the file is not read."""
        return {}

    def fresh(self) -> list[Row]:
        """The whole lines that came since the last call, those without a step left out."""
        try:
            return [row for tail in self._tails for row in metric_lines(tail)]
        except (StartedAgainError, ForeignRunError, OSError):
            for tail in self._tails:  # also what came of the other files is not handed over
                tail.restart()
            raise


def metric_lines(tail: Tail) -> list[Row]:
    """The rows of the new lines of a file. Raises ForeignRunError if one is damaged, StartedAgainError if it is cut."""
    found: list[Row] = []
    try:
        for line in tail.lines():
            if line.strip():
                logged = parsed(line)
                if not isinstance(logged, dict):
                    raise ValueError("a line is not a mapping")
                if (row := _row(logged)) is not None:
                    found.append(row)
    except ValueError as error:
        raise ForeignRunError(f"{tail.path} is damaged ({error}); copy it again") from None
    return found


def _row(logged: dict[str, Any]) -> Row | None:
    step = next((step for name in _STEPS if (step := as_step(logged.get(name))) is not None), None)
    inner = logged.get("data")
    own = logged
    if isinstance(inner, dict) and set(logged) == {"step", "data"}:
        own = {name: math.nan if value is None else value for name, value in inner.items()}
    scalars = {k: v for k, v in numbers(own) if k not in _STEPS and k not in _APART}
    return Row(step, scalars) if step is not None and scalars else None


def who_wrote(path: Path) -> str:
    """The source of a file of JSON lines by its first one with a step; "" if it is none of metrics."""
    try:
        with path.open("rb") as file:
            for line in (file.readline(LONGEST_LINE) for _ in range(50)):
                if not line.endswith(b"\n"):
                    return ""
                logged = parsed(line)
                if not isinstance(logged, dict):
                    return ""
                if _row(logged) is None:
                    continue
                if set(logged) == {"step", "data"}:
                    return "verl"
                return "prime-rl" if "time" in logged else "tinker-cookbook" if _of_tinker(logged) else "JSON lines"
    except (OSError, ValueError):
        pass
    return ""


def _of_tinker(logged: dict[str, Any]) -> bool:
    return any(name.startswith(("env/all/", "optim/", "progress/")) for name in logged)


class CsvTable:
    """A file with a heading and a row for each step."""

    source = "CSV"
    goes_back = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tail, self._heading = Tail(path), list[str]()

    def about(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def fresh(self) -> list[Row]:
        """The whole lines that came since the last call."""
        found: list[Row] = []
        try:
            for line in self._tail.lines():
                cells = next(csv.reader(io.StringIO(line.decode(errors="replace"), newline="")), [])
                if not self._heading:
                    self._heading = cells
                elif (row := self._row(cells)) is not None:
                    found.append(row)
        except StartedAgainError:
            self._heading = []
            raise
        except (ValueError, csv.Error) as error:
            raise ForeignRunError(f"{self.path} is damaged ({error}); copy it again") from None
        return found

    def _row(self, cells: list[str]) -> Row | None:
        given = dict(zip(self._heading, map(_number, cells), strict=False))
        step = next((step for name in _STEPS if (step := as_step(given.get(name))) is not None), None)
        scalars = Scalars({k: v for k, v in given.items() if v is not None and k and k not in _STEPS})
        return Row(step, scalars) if step is not None and scalars else None


def is_table(path: Path) -> bool:
    """Whether a file begins with a heading that names a step."""
    try:
        with path.open("rb") as file:
            line = file.readline(LONGEST_LINE).decode(errors="replace")
        return any(name in _STEPS for name in next(csv.reader([line]), []))
    except (OSError, csv.Error):
        return False


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return as_number(cell)

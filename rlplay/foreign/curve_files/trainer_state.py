"""Reads transformers' `trainer_state.json`, in the output folder or in a checkpoint: its `log_history`.

Each entry of the history (TrainerState in transformers/trainer_callback.py) has `step`, `epoch` and what the trainer
logged. The file is written anew with each checkpoint, and the newest one holds what all others do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlplay.foreign.curve_files.rows import Row, StartedAgainError, as_step, numbers, parsed
from rlplay.foreign.foreign_run import ForeignRunError

NAME = "trainer_state.json"
PATTERNS = (NAME, f"checkpoint-*/{NAME}")
_LARGEST = 2**28


class TrainerState:
    """The history of a trainer, from the newest of its files."""

    source = "transformers"
    goes_back = True

    def __init__(self, path: Path) -> None:
        """The file `path`, or the newest in that folder and its checkpoints."""
        self.path = path
        self._seen: tuple[Path, int, int] | None = None
        self._rows: list[Row] = []
        self._given = 0

    def about(self) -> dict[str, Any]:
        """Nothing: the file holds no options of the trainer."""
        return {}

    def fresh(self) -> list[Row]:
        """The entries that came since the last call."""
        newest = _newest(self.path)
        stat = newest.stat()
        if self._seen == (seen := (newest, stat.st_mtime_ns, stat.st_size)):
            return []
        rows = _history(newest)
        before, self._rows, self._seen = self._rows[: self._given], rows, seen
        if repr(rows[: len(before)]) != repr(before):  # NaN is not equal to itself
            self._given = 0
            raise StartedAgainError
        fresh, self._given = rows[self._given :], len(rows)
        return fresh


def _newest(path: Path) -> Path:
    if path.is_file():
        return path
    found = [each for pattern in PATTERNS for each in path.glob(pattern) if each.is_file()]
    if not found:
        raise ForeignRunError(f"{path} has no {NAME} any more")
    return max(found, key=lambda each: each.stat().st_mtime_ns)


def _history(path: Path) -> list[Row]:
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError(f"it has more than {_LARGEST} bytes")
        history = parsed(path.read_bytes())["log_history"]
        entries = [entry for entry in history if isinstance(entry, dict)]
    except (ValueError, LookupError, TypeError) as error:
        raise ForeignRunError(f"{path} cannot be read as the state of a trainer ({error})") from None
    rows = ((as_step(entry.get("step")), entry) for entry in entries)
    own = [(step, {k: v for k, v in entry.items() if k != "step"}) for step, entry in rows if step is not None]
    return [Row(step, dict(numbers(entry))) for step, entry in own]

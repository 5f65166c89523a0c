"""Reads folders where a trainer leaves a file for each update: TRL's completions, verl's and prime-rl's rollouts."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from rlplay.algorithms.settings import Settings
from rlplay.foreign import rows
from rlplay.foreign.assemble import Batch, finished
from rlplay.foreign.source import ForeignRunError, beginning
from rlplay.record.format import Ended, Rollouts
from rlplay.trace.records import AnyRecord, Started

Row = dict[str, Any]
SETTLED = 1.0
"""Seconds after which a file that nobody wrote to is taken to be complete, if it is the newest."""


@dataclass(frozen=True)
class Layout:
    """Where a trainer leaves its files, and what their rows say; `number` finds the update in a path."""

    source: str
    pattern: str
    number: re.Pattern[str]
    read: Callable[[Path], list[Row]]
    rollouts: Callable[[int, list[Row]], Rollouts]


def _lines(path: Path) -> list[Row]:
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not all(isinstance(row, dict) for row in found):
        raise ValueError("a line is not a mapping")
    return found


def _parquet(path: Path) -> list[Row]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise ForeignRunError(f'{path} needs pyarrow: pip install "rlplay[parquet]"') from None
    found: list[Row] = parquet.read_table(path).to_pylist()
    return found


LAYOUTS = (
    Layout("TRL", "completions/completions_*.parquet", re.compile(r"completions_(\d+)\.parquet$"), _parquet, rows.trl),
    Layout("TRL", "completions_*.parquet", re.compile(r"completions_(\d+)\.parquet$"), _parquet, rows.trl),
    Layout("prime-rl", "step_*/rank_*.jsonl", re.compile(r"step_(\d+)/"), _lines, rows.prime_rl),
    Layout("prime-rl", "token_exports/step_*/rank_*.jsonl", re.compile(r"step_(\d+)/"), _lines, rows.prime_rl),
    Layout("verl", "*.jsonl", re.compile(r"(\d+)\.jsonl$"), _lines, rows.verl),
)


def layout_of(folder: Path) -> Layout | None:
    """The layout of the files in a folder; None if it is none of them."""
    return next((layout for layout in LAYOUTS if any(_files(folder, layout))), None)


def _files(folder: Path, layout: Layout) -> Iterator[tuple[int, Path]]:
    for path in folder.glob(layout.pattern):
        if found := layout.number.search(path.relative_to(folder).as_posix()):
            yield int(found[1]), path


class Files:
    """A folder with one file, or one file for each process, for every update."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self.path, self._layout = path, layout
        self._settings = Settings()
        self._done = 0

    def started(self) -> Started:
        """What is known of the run: its trainer, and nothing of its settings."""
        first = min(self._updates(), default=0)
        return beginning(self._layout.source, title=f"{self._layout.source} · {self.path.name}", run_id=str(first))

    def place(self) -> dict[str, Any]:
        """The last update read."""
        return {"update": self._done}

    def resume(self, place: Mapping[str, Any]) -> None:
        """Go on after this update."""
        self._done = place.get("update", 0)

    def fresh(self) -> list[AnyRecord]:
        """The updates whose files are complete: there are later ones, or they have not changed for a moment."""
        updates, found = self._updates(), list[AnyRecord]()
        for number in sorted(updates):
            settled = time.time() - max(path.stat().st_mtime for path in updates[number]) > SETTLED
            if number > self._done and (settled or number < max(updates)):
                found += self._records(number, updates[number])
                self._done = number
        return found

    def _updates(self) -> dict[int, list[Path]]:
        found: dict[int, list[Path]] = {}
        for number, path in sorted(_files(self.path, self._layout)):
            found.setdefault(number, []).append(path)
        return found

    def _records(self, number: int, paths: list[Path]) -> list[AnyRecord]:
        content: list[Row] = []
        for path in paths:
            try:
                content += self._layout.read(path)
            except (ValueError, OSError) as error:
                raise ForeignRunError(f"{path} cannot be read as a file of {self._layout.source} ({error})") from None
        if not content:
            return []
        try:
            rollouts = self._layout.rollouts(number, content)
        except (KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise ForeignRunError(f"{paths[0]} is not a file of {self._layout.source}: {what}") from None
        made = Batch([rollouts]).records(number, self._settings)
        return [*made, finished(Ended(update=number, metrics=rows.metrics(rollouts), seconds=0.0))]

"""Reads folders where a trainer leaves files for each update, while they grow."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rlplay.algorithms.setting_values import decoded
from rlplay.algorithms.settings import Settings
from rlplay.foreign.answer_rows import metrics
from rlplay.foreign.assemble import GatheredBatch, finished
from rlplay.foreign.foreign_run import ForeignRunError, beginning, known_settings
from rlplay.foreign.layouts import LAYOUTS, FileLayout, Row
from rlplay.foreign.token_texts import TokenTexts
from rlplay.record.format import Ended, Rollouts, Step
from rlplay.trace.records import AnyRecord, Started

_DIGITS = 9
"""Of an update's number in a name."""
SETTLED = 1.0
"""Seconds after which a file that nobody wrote to is taken to be complete, if it is the newest."""
FIRST_UPDATE = 900.0
"""Seconds without any file of a training pass after which it is taken that the trainer writes none."""
PATIENCE = 60.0
"""Seconds for which a file that cannot be read yet is taken to be half written."""


def layout_of(folder: Path) -> FileLayout | None:
    """The layout of the files in a folder; None if it is none of them."""
    return next((each for each in LAYOUTS if any(_files(folder, each)) and _is_there(folder, each.beside)), None)


def _is_there(folder: Path, pattern: str) -> bool:
    return not pattern or any(folder.glob(pattern))


def _files(folder: Path, layout: FileLayout) -> Iterator[tuple[int, Path]]:
    return _numbered(folder, layout.pattern, layout.number)


def _numbered(folder: Path, pattern: str, number: re.Pattern[str]) -> Iterator[tuple[int, Path]]:
    for path in folder.glob(pattern):
        found = number.search(path.relative_to(folder).as_posix())
        if found and len(found[1]) <= _DIGITS:
            yield int(found[1]), path


class HalfWrittenError(Exception):
    """A file is not complete yet, or has just been renamed."""


class Files:
    """A folder with one file, or one file for each process, for every update."""

    def __init__(self, path: Path, layout: FileLayout) -> None:
        self.path, self._layout = path, layout
        self._about = layout.about(path)
        self._settings = decoded(known_settings(self._about.get("settings", {})))
        self._texts = TokenTexts(path)
        self._done = 0
        self._first = layout.first

    def started(self) -> Started:
        """What is known of the run: its trainer, and what a configuration beside the files says."""
        source = self._layout.source
        return beginning(source, title=f"{source} · {self.path.name}", **self._about)

    def place(self) -> dict[str, Any]:
        """The last update read, and the number that the trainer gave the first one."""
        return {"update": self._done, "first": self._first}

    def resume(self, place: Mapping[str, Any]) -> None:
        """Go on after this update."""
        self._done = place.get("update", 0)
        self._first = place.get("first", self._layout.first)

    def fresh(self) -> list[AnyRecord]:
        """The updates whose files are complete: there are later ones, or they have not changed for a moment."""
        updates, found = self._updates(), list[AnyRecord]()
        if updates and max(updates) < self._done:
            raise ForeignRunError(
                f"{self.path} ends at update {max(updates)}, but its update {self._done} was read before; another run "
                "in the same folder needs the copy gone: 'rlplay runs' lists it, 'rlplay rm' deletes it"
            )
        for number in sorted(number for number in updates if number > self._done):
            try:
                if not self._complete(number, updates):
                    break
                found += self._records(number, updates[number])
            except HalfWrittenError:
                break
            self._done = number
        return found

    def _complete(self, number: int, updates: Mapping[int, list[Path]]) -> bool:
        """Whether nothing more will be written of an update."""
        if not self._layout.companions:
            return number < max(updates) or self._settled(updates[number])
        followed = [each for each in updates if len(updates[each]) > 1]
        if number in followed:
            return number < max(followed) or self._settled(updates[number])
        if followed:
            return number < max(followed)
        # Where nothing has followed yet, a trainer may be at its first update, or write no such files.
        return number + 1 < max(updates) or min(map(age, updates[number])) > FIRST_UPDATE

    def _settled(self, paths: list[Path]) -> bool:
        if self._layout.marker and any(self.path.glob(self._layout.marker)):  # this version of the trainer writes them
            return all((path.parent / Path(self._layout.marker).name).exists() for path in paths)
        return min(map(age, paths)) > SETTLED

    def _updates(self) -> dict[int, list[Path]]:
        files = sorted(_files(self.path, self._layout))
        if self._first is None and files:
            self._first = min(files[0][0], 1)
        found: dict[int, list[Path]] = {}
        for number, path in files:
            found.setdefault(number + (self._first == 0), []).append(path)  # rlplay's first update is 1
        for number, path in sorted(_numbered(self.path, self._layout.companions or "-", self._layout.companion)):
            if (update := number + (self._first == 0)) in found:
                found[update].append(path)
        return found

    def _records(self, number: int, paths: list[Path]) -> list[AnyRecord]:
        content: list[Row] = []
        for path in paths:
            content += read(path, self._layout)
        own = number - (self._first == 0)
        return records(number, own, content, paths[0], self._layout, self._settings, self._texts)


def age(path: Path) -> float:
    """Seconds since somebody wrote to a file. Raises HalfWrittenError if it is gone."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        raise HalfWrittenError from None


def read(path: Path, layout: FileLayout) -> list[Row]:
    """The rows of a file. Raises HalfWrittenError if it is young and not whole, ForeignRunError if it is damaged."""
    try:
        return layout.read(path)
    except ForeignRunError:
        raise
    except (ValueError, OSError, LookupError, TypeError, AttributeError, OverflowError) as error:
        if age(path) < PATIENCE:
            raise HalfWrittenError from None
        raise ForeignRunError(f"{path} cannot be read as a file of {layout.source} ({error})") from None


def records(
    number: int,
    own: int,
    content: list[Row],
    path: Path,
    layout: FileLayout,
    settings: Settings,
    texts: TokenTexts | None = None,
) -> list[AnyRecord]:
    """The records of an update, which is the step `own` of its trainer, from the rows that `path` and others hold.

    Raises ForeignRunError if they do not fit.
    """
    if not content:
        return []
    try:
        rollouts, step = layout.rollouts(number, content), layout.step(number, content)
    except ForeignRunError as error:
        raise ForeignRunError(f"{path}: {error}") from None
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError, msgspec.MsgspecError) as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ForeignRunError(f"{path} is not a file of {layout.source}: {what}") from None
    return made_of(number, own, rollouts, step, settings, texts)


def made_of(
    number: int, own: int, rollouts: Rollouts, step: Step | None, settings: Settings, texts: TokenTexts | None = None
) -> list[AnyRecord]:
    """The records of an update, which is the step `own` of its trainer."""
    if not len(rollouts.group):
        return []
    rollouts = rollouts if texts is None else texts.spelled(rollouts)
    batch, numbers = GatheredBatch([rollouts]), metrics(rollouts)
    made = batch.records(number, settings)
    if step is not None:
        stepped = batch.stepped(number, [(0, step)], settings)
        made.append(stepped)
        numbers |= stepped.metrics
    return [*made, finished(Ended(update=number, metrics=numbers, seconds=0.0, trainer_steps=(own, own)))]

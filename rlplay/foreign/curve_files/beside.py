"""Curves that stand beside a recording of the same run, joined to its updates by the trainer's own steps."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from rlplay.foreign.curve_files.event_files import EventFiles
from rlplay.foreign.curve_files.formats import METRIC_FILES, curve_log, event_folders, open_json_lines
from rlplay.foreign.curve_files.names import NAMES, known_as
from rlplay.foreign.curve_files.rows import CurveLog, Scalars, read_rows
from rlplay.foreign.curve_files.trainer_state import NAME as TRAINER_STATE
from rlplay.foreign.curve_files.trainer_state import TrainerState
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.trace.history import History
from rlplay.trace.metrics import describe
from rlplay.trace.over_steps import over_steps
from rlplay.trace.records import AnyRecord, Finished, Logged

_LABELS = {"W&B": "wandb", "transformers": "trainer_state", "JSON lines": "jsonl"}
"""What a metric's name begins with, where that is not the name of the source in small letters."""
_KNOWN = {*NAMES.values()}
_OF_ANSWERS = ("completions", "token_exports")
"""Folders of answers in an output folder, which may be named instead of it."""
_SAME = 1e-4
"""Two numbers that differ by less are the same: event files have single precision."""
_MOSTLY, _COMPARED = 0.5, 200  # of the numbers; updates


class Beside:
    """The curves of a file, for the updates of a recording, which stay as they are recorded.

    What rlplay knows keeps its name, such as `kl`, anything else is `tensorboard/NAME`. The number of an update of
    several steps is made of those of its steps as TRL does.
    """

    def __init__(self, log: CurveLog, history: History) -> None:
        """`history` is what the run file holds, of this file's curves too."""
        self._log, self._history = log, history
        self._label = _LABELS.get(log.source, log.source.lower())
        self._known: dict[int, Scalars] = {}  # by step
        self._news: set[int] = set()  # steps with numbers that are not joined yet
        self._joined: dict[int, set[str]] = {}  # by update

    def fresh(self, records: Sequence[AnyRecord]) -> list[AnyRecord]:
        """What the file says of updates, after the recording has given these `records`. Raises ForeignRunError."""
        for record in records:
            self._history.add(record)
        self._take()
        ended = {record.update for record in records if isinstance(record, Finished)} & {*self._history.updates}
        steps, self._news = self._news, set()
        updates = {update for step in steps if (update := self._update_at(step)) is not None} | ended
        found = [Logged(update=update, metrics=self._lacking(update)) for update in sorted(updates)]
        for logged in found:
            self._history.add(logged)
        return [logged for logged in found if logged.metrics]

    def agrees(self, recording: bool) -> bool:
        """Whether the file is of the same run: most of the numbers that both have are the same.

        A `recording` has to have such numbers. Where words stand for tokens, only rewards are comparable, and without
        any it is enough that both know of an update.
        """
        self._take()
        alike, both = "" if recording else "rewards/", False
        pairs: list[tuple[float, float]] = []
        for update in self._history.updates[-_COMPARED:]:
            numbers, recorded = self._numbers(update), self._history.at(update)
            both = both or bool(numbers)
            known = [(numbers[name], recorded[name]) for name in numbers if name.startswith(alike) and name in recorded]
            pairs += [pair for pair in known if all(map(math.isfinite, pair))]
        same = sum(abs(one - other) <= _SAME * max(abs(one), abs(other), _SAME) for one, other in pairs)
        return same >= _MOSTLY * len(pairs) if pairs else both and not recording

    def _take(self) -> None:
        for step, scalars in read_rows(self._log, self._known.clear):
            own = {name: value for logged, value in scalars.items() if (name := known_as(logged))}
            self._known.setdefault(step, {}).update(own)
            self._news.add(step)

    def _update_at(self, step: int) -> int | None:
        """The update of a step; None if it has not ended yet."""
        if self._history.clock:
            return self._history.clock.update_at(step)
        return step if step in self._history.updates else None

    def _lacking(self, update: int) -> Scalars:
        """What the file has of an update and the run file has not."""
        there, joined = self._history.at(update), self._joined.setdefault(update, set())
        found: Scalars = {}
        for name, value in self._numbers(update).items():
            bare = name.removeprefix("eval_")
            called = name if bare in _KNOWN or describe(bare) is not None else f"{self._label}/{name}"
            if name not in there or called in joined:
                found[called] = value
        fresh = {name: v for name, v in found.items() if repr(there.get(name)) != repr(v)}  # NaN is not itself
        joined |= fresh.keys()
        return fresh

    def _numbers(self, update: int) -> Scalars:
        """The numbers of an update, from those of its steps."""
        first, last = self._history.clock.steps(update) or (update, update)
        steps = range(first, last + 1)  # as many as a recording says, so only the fewer are walked through
        few = last - first < len(self._known)
        known = (step for step in steps if step in self._known) if few else sorted(s for s in self._known if s in steps)
        rows = [self._known[step] for step in known]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: over_steps(name, [row[name] for row in rows if name in row]) for name in names}


def named(path: Path, history: History) -> Beside:
    """The curves at a path that the user has named. Raises ForeignRunError if there are none, or several runs."""
    log = curve_log(path)
    if log is None:
        raise ForeignRunError(f"{path} holds no curves that rlplay can read; docs/other-trainers.md lists what it can")
    return Beside(log, history)


def found(path: Path, recording: bool, history: History) -> Beside | None:
    """The curves in a trainer's output folder: event files in `runs`, its state, or a file of metrics.

    The folder is that of the `recording` at the path, or of the trainer's own files there. Only curves count whose
    numbers agree with those: a folder may hold the files of earlier runs.
    """
    folder = path.parent if recording or path.name in _OF_ANSWERS else path
    for log in _candidates(folder):
        beside = Beside(log, history)
        with contextlib.suppress(ForeignRunError):
            if beside.agrees(recording):
                return beside
    return None


def _candidates(folder: Path) -> Iterator[CurveLog]:
    for events in reversed(event_folders(folder / "runs")):
        yield EventFiles(events)
    if (folder / TRAINER_STATE).is_file():
        yield TrainerState(folder)
    if any((folder / name).is_file() for name in METRIC_FILES):
        yield open_json_lines(folder)

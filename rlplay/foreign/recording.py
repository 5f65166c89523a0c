"""Reads the folders that `rlplay.record` writes, with one part per process, while they grow."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from rlplay.algorithms.setting_values import decoded, fitting
from rlplay.algorithms.settings import Settings
from rlplay.foreign.assemble import GatheredBatch, finished
from rlplay.foreign.curve_files.names import known_as
from rlplay.foreign.foreign_run import ForeignRunError, beginning, known_settings
from rlplay.record.format import (
    Begun,
    Ended,
    Frame,
    Heldout,
    RecordingError,
    Remark,
    Rollouts,
    Setting,
    Step,
    part,
    parts,
    read_some,
)
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import AnyRecord, Changed, Evaluated, Notice, Started

BEHIND = 8
"""Updates after which a process that wrote nothing more is taken to be gone. Fewer prove nothing: the parts of a copy
are of different moments, and what is left out of an update then does not come back with the next copy."""
MOST_RANKS = 2**16
_FIRST = 2**12
"""Bytes of a part that hold its first frame."""
AT_ONCE = 2**22
"""Bytes of a part that are read at once: what a second computes, so that a screen need not wait for a long run."""
LAST = 2**31
"""After every optimizer step of an update."""


class Recording:
    """A recording in the folder `path`. What all processes have written, in the order of the first, is known."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begun: Begun | None = None
        self._settings = Settings()
        self._read: dict[str, int] = {}  # offset in each part up to which frames were taken
        self._passed: dict[str, int] = {}  # offset in each part up to which frames became records
        self._changed: SomeSettings = {}  # settings that changed since the beginning
        self._whole: dict[str, Any] = {"offsets": {}, "changed": {}}  # the last two at the end of the last whole update
        self._waiting: dict[int, list[tuple[int, Frame]]] = {}  # by rank: frames that others have not reached yet
        self._batch: GatheredBatch | None = None
        self._members: list[int] = []  # the ranks that the batch is of
        self._unread: set[int] = set()  # the ranks with more to read than was read at once

    def started(self) -> Started:
        """The beginning of the run, as its first process wrote it."""
        begun = self._begun or self._beginning()
        return beginning(
            begun.source, title=begun.title, settings=begun.settings, run_id=begun.run_id, seed=begun.seed,
            model=begun.model, parameters=begun.parameters, device=begun.device, dtype=begun.dtype,
            versions=begun.versions, ends=begun.ends,
        )  # fmt: skip

    def place(self) -> dict[str, Any]:
        """Offsets in the parts, and the settings that changed before them."""
        return dict(self._whole)

    def resume(self, place: Mapping[str, Any]) -> None:
        """Go on at such a place."""
        begun = self._begun or self._beginning()
        offsets, self._changed = dict(place.get("offsets", {})), dict(place.get("changed", {}))
        self._waiting, self._batch = {}, None
        self._read, self._passed = dict(offsets), dict(offsets)
        self._whole = {"offsets": offsets, "changed": dict(self._changed)}
        self._settings = decoded(known_settings(begun.settings | self._changed))

    def fresh(self) -> list[AnyRecord]:
        """New records: a batch once all processes have sampled, a step once all have made it.

        Of a long recording only the next ones; none if there are none.
        """
        begun = self._begun or self._beginning()
        found: list[AnyRecord] = []
        while not found:
            self._read_on()
            try:
                while (ready := self._ready(begun.ranks)) is not None:
                    found += self._records(begun, ready)
            except (LookupError, TypeError, ValueError, OverflowError, MemoryError, RecursionError) as error:
                what = f"{type(error).__name__}: {error}"
                raise ForeignRunError(f"{self.path} is damaged ({what}); copy it again") from None
            if not self._unread:
                break
        return found

    def _read_on(self) -> None:
        """Read the next frames of each process."""
        for path in parts(self.path):
            rank = int(path.stem.rpartition("-")[2])
            try:
                frames, more = read_some(path, self._read.get(path.name, 0), AT_ONCE)
            except RecordingError as error:
                raise ForeignRunError(str(error)) from None
            (self._unread.add if more else self._unread.discard)(rank)
            for end, frame in frames:
                self._read[path.name] = end
                self._waiting.setdefault(rank, []).append((end, frame))

    def _beginning(self) -> Begun:
        for path in parts(self.path):
            try:
                for _, frame in read_some(path, 0, _FIRST)[0][:1]:
                    if isinstance(frame, Begun) and not 1 <= frame.ranks <= MOST_RANKS:
                        raise RecordingError(f"{path} is damaged: it is of {frame.ranks} processes; copy it again")
                    if isinstance(frame, Begun):
                        self._begun = frame
                        self._settings = decoded(known_settings(frame.settings))
                        return frame
            except RecordingError as error:
                raise ForeignRunError(str(error)) from None
        raise ForeignRunError(f"{self.path} holds no recording yet; its trainer writes the first part when it begins")

    def _ready(self, ranks: int) -> list[tuple[int, Frame]] | None:
        """The next frame of the first process, and the same one of the others, with the ranks; None if one still lacks.

        A process that is `BEHIND` updates behind is taken to be gone.
        """
        leader = self._waiting.get(0) or []
        if not leader:
            return None
        frame = leader[0][1]
        same = [(0, frame)]
        for rank in range(1, ranks):
            self._skip(rank, frame)
            queue = self._waiting.get(rank) or []
            if not isinstance(frame, Rollouts | Step):
                continue
            if queue and _key(queue[0][1]) == _key(frame):
                same.append((rank, queue[0][1]))
            elif not queue and (rank in self._unread or leader[-1][1].update < frame.update + BEHIND):
                return None
        self._pass(0)
        if isinstance(frame, Ended):
            self._whole = {"offsets": dict(self._passed), "changed": dict(self._changed)}
        return same

    def _skip(self, rank: int, goal: Frame) -> None:
        """Pass what the process wrote before the frame `goal` of the first one."""
        queue = self._waiting.get(rank) or []
        # An end that comes later shows that the process has written no such frame.
        while queue and (not isinstance(queue[0][1], Rollouts | Step | Ended) or _key(queue[0][1]) < _key(goal)):
            self._pass(rank)

    def _pass(self, rank: int) -> None:
        end, _ = self._waiting[rank].pop(0)
        self._passed[part(self.path, rank).name] = end

    def _records(self, begun: Begun, frames: list[tuple[int, Frame]]) -> list[AnyRecord]:
        """The records that one frame of every process makes."""
        first = frames[0][1]
        match first:
            case Rollouts():
                self._batch = GatheredBatch([frame for _, frame in frames if isinstance(frame, Rollouts)])
                self._members = [rank for rank, _ in frames]
                return self._batch.records(first.update, self._settings)
            case Step() if self._batch is not None:
                of = self._members.index
                steps = [(of(rank), step) for rank, step in frames if rank in self._members and isinstance(step, Step)]
                return [self._batch.stepped(first.update, steps, self._settings)]
            case _:
                return self._of_first(begun, first)

    def _of_first(self, begun: Begun, first: Frame) -> list[AnyRecord]:
        """The record of a frame that holds for all processes."""
        match first:
            case Ended():
                return [finished(msgspec.structs.replace(first, metrics=_named(begun, first.metrics)))]
            case Heldout():
                return [
                    Evaluated(
                        update=first.update, metrics=first.metrics, prompts=first.prompts,
                        completions=first.completions, rewards=first.rewards, seconds=0.0,
                    )
                ]  # fmt: skip
            case Setting():
                value, previous = first.value, first.previous
                if not fitting({first.name: value}):
                    text = f"The trainer set {first.name} to {reprlib.repr(value)}, a value of another type: left out."
                    return [Notice(update=first.update, level="warning", text=text)]
                self._changed[first.name] = value
                self._settings = decoded(known_settings(begun.settings | self._changed))
                return [Changed(update=first.update, phase="sample", name=first.name, value=value, previous=previous)]
            case Remark():
                return [Notice(update=first.update, level="info", text=first.text)]
            case _:
                return []


def _named(begun: Begun, metrics: dict[str, float]) -> dict[str, float]:
    """Metrics by TRL's names; verl has others, which are recorded as they are."""
    if not begun.source.startswith("verl "):
        return metrics
    return {name: value for own, value in metrics.items() if (name := known_as(own))}


def _key(frame: Frame) -> tuple[int, int]:
    """The place of a frame in its process: the update, and in it -1 for the answers, the step, or the end."""
    if isinstance(frame, Rollouts):
        return frame.update, -1
    return (frame.update, frame.step) if isinstance(frame, Step) else (frame.update, LAST)

"""A recorded run in the order in which it happened, what going back discarded included: acts, each a list of frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rlplay.algorithms.setting_values import decoded
from rlplay.export.html.frames import Shown, Words, few, frame
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import (
    AnyRecord,
    Credited,
    Evaluated,
    Finished,
    Rewound,
    Sampled,
    Scored,
    Staged,
    Started,
    Stepped,
)
from rlplay.trace.run import Run
from rlplay.trace.update import Phase
from rlplay.worlds.world import World

TOKENS = 40_000
"""Tokens on a page, over all updates: some three megabytes."""
_DIGITS = 9
"""Significant digits of a metric, so that a count is whole."""
_OF_PHASE: tuple[tuple[type[Any], Phase], ...] = (
    (Sampled, "sample"), (Scored, "score"), (Credited, "credit"), (Stepped, "update"), (Finished, "after"),
)  # fmt: skip


class Playback:
    """Takes the records of a run one after another. `run` is what they add up to so far, `frames` what is shown."""

    def __init__(self, records: Sequence[AnyRecord], ends: Iterable[str], world: World | None, step_word: str) -> None:
        """The `records` of a run in `world`, if it has one, whose policy samples what `step_word` names."""
        self._records = [each for each in records if not (isinstance(each, Sampled) and not each.done)]
        self._at = 0
        self._world = world
        self.run = Run(kept=2, candidates=False)
        self.run.step_word = step_word
        self.words = Words(ends)
        self.act = self.stage = 0
        self.frames: list[Shown] = [{"update": 0, "act": 0, "metrics": {}}]
        sizes = [len(each.token_ids) for each in self._records if isinstance(each, Sampled)]
        self._room = int(TOKENS / max(len(sizes), 1))

    @property
    def under_way(self) -> bool:
        """Whether an update has begun and has not finished."""
        newest = self.run.newest
        return newest is not None and newest.sampled is not None and newest.finished is None

    @property
    def place(self) -> tuple[int, Phase | None]:
        """The number of the frame to show now, and the phase up to which; None: the whole update."""
        newest = self.run.newest
        if not self.under_way or newest is None:
            return len(self.frames) - 1, None
        return len(self.frames), newest.phase

    def settings(self) -> SomeSettings:
        """The settings that hold now, those that wait for their phase included."""
        return self.run.timeline.latest()

    def next_record(self) -> AnyRecord | None:
        """What happened next; None at the end."""
        return self._records[self._at] if self._at < len(self._records) else None

    def take(self) -> AnyRecord:
        """Let the next record happen."""
        record = self._records[self._at]
        self._at += 1
        self.run.add(record)
        match record:
            case Finished():
                self._show(record)
            case Evaluated():
                self.frames[-1]["metrics"] |= _metrics(record.metrics)
            case Staged():
                self.stage = record.index
            case Rewound() if record.abandoned > record.update or self.frames[-1]["update"] > record.update:
                self.act += 1
                self.frames.append({"update": record.update, "act": self.act, "metrics": {}, "back": True})
            case _:
                pass
        return record

    def until(self, wanted: Callable[[AnyRecord], bool]) -> bool:
        """Take records up to one that is `wanted`; False, and nothing more, if the run goes back or ends before it."""
        while (record := self.next_record()) is not None and not isinstance(record, Rewound):
            self.take()
            if wanted(record):
                self._take_what_belongs()
                return True
        return False

    def phase(self) -> bool:
        """Finish the next phase of the update; False as above."""
        newest = self.run.newest
        here = newest.phase if self.under_way and newest is not None else "after"
        phases = [phase for _, phase in _OF_PHASE]
        following = phases[(phases.index(here) + 1) % len(phases)]
        kind = next(kind for kind, phase in _OF_PHASE if phase == following)
        if not self.until(lambda record: isinstance(record, kind)):
            return False
        while kind is Stepped and isinstance(self.next_record(), Stepped):
            self.take()
        return True

    def rest(self) -> None:
        """Take every record that is left."""
        while self.next_record() is not None:
            self.take()

    def _take_what_belongs(self) -> None:
        """Held-out answers belong to the update before them, and what a run begins with to its start."""
        while isinstance(self.next_record(), Evaluated):
            self.take()

    def begin(self) -> None:
        """Take what comes before the first update."""
        while isinstance(self.next_record(), Started | Evaluated):
            self.take()

    def _show(self, record: Finished) -> None:
        update = self.run.newest
        if update is None or update.number != record.update:
            return
        settings = decoded(self.run.timeline.at(record.update))
        world = None if self._world is None else self._world.repainted(settings.squares)
        shown = frame(update, settings, world, self.words, self._room)
        self.frames.append({**shown, "act": self.act, "stage": self.stage, "metrics": _metrics(record.metrics)})


def _metrics(metrics: dict[str, float]) -> Shown:
    return dict(zip(metrics, few(metrics.values(), _DIGITS), strict=True))

"""Lets a thread judge what is tried: the digest of a large update takes longer than a key may."""

from __future__ import annotations

import asyncio

from rlplay.health.remedies.outcome import Outcome, Rehearsal
from rlplay.health.remedies.remedy import Remedy
from rlplay.ui.session.rehearsing import Arrived, Judged, Rehearsing


class Judging:
    """One answer after the other. A `Rehearsal` belongs to the thread that judges it, and only one does at a time."""

    def __init__(self, tried: Rehearsing) -> None:
        self._tried = tried
        self._task: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether there is something left to judge."""
        return bool(self._tried.arrived) or (self._task is not None and not self._task.done())

    def go_on(self) -> None:
        """Judge what has arrived; to be called again and again."""
        if self._tried.arrived and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._judge())

    def stop(self) -> None:
        """Judge no further; a thread comes to its end by itself."""
        if self._task is not None:
            self._task.cancel()

    async def _judge(self) -> None:
        while self._tried.arrived:
            arrived, remedies = self._tried.arrived.pop(0), [each.remedy for each in self._tried.candidates]
            try:
                judged, best = await asyncio.to_thread(_judged, arrived, remedies)
            except Exception as error:
                self._tried.fail(f"the answers cannot be judged: {str(error) or type(error).__name__}")
                return
            self._tried.judge(arrived.rehearsal, judged, best)


def _judged(arrived: Arrived, remedies: list[Remedy]) -> tuple[list[Judged | None], Remedy | None]:
    """Everything known of each remedy with one more answer, and the one that helped most."""
    rehearsal = arrived.rehearsal
    if arrived.begins:
        rehearsal.begin(arrived.place, remedies[arrived.place])
    rehearsal.take(arrived.answer)
    outcomes = {id(each.remedy): each for each in rehearsal.outcomes()}
    judged = [_of(rehearsal, place, outcomes.get(id(each))) for place, each in enumerate(remedies)]
    best = rehearsal.best()
    return judged, None if best is None else best.remedy


def _of(rehearsal: Rehearsal, place: int, outcome: Outcome | None) -> Judged | None:
    evidence, measure = rehearsal.evidence(place), rehearsal.measure
    if evidence is None:
        return None
    spot = evidence.place(measure.place)
    return Judged(measure.series(evidence), measure.of(evidence), spot, outcome)

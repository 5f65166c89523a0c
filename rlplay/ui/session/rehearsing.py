"""A repair that is tried before it is advised, as plain data: changed settings, and the unchanged run beside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import msgspec

from rlplay.health.digest import TokenPlace
from rlplay.health.finding import Evidence, Points
from rlplay.health.remedies.measures import measure
from rlplay.health.remedies.outcome import Outcome, Rehearsal
from rlplay.health.remedies.remedy import Remedy, Trial
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.rehearsals import Rehearse, Rehearsed
from rlplay.trace.update import Update

MOST = 20
"""Updates that each candidate is tried for, at most."""
BEFORE = 5
"""Updates of the run whose numbers are shown beside those that were tried."""

State = Literal["waiting", "under way", "tried", "refused", "stopped"]


class Judged(NamedTuple):
    """What is known of a candidate: the finding's own number at each update and over all, where the last update shows
    the problem best, and what became of the finding, None before all is tried."""

    points: Points
    number: float | None
    place: TokenPlace | None
    outcome: Outcome | None


class Arrived(NamedTuple):
    """An answer about the candidate at a place, for `rehearsal`; `begins` if it is the first about that."""

    rehearsal: Rehearsal
    place: int
    begins: bool
    answer: Rehearsed


@dataclass(eq=False)
class Candidate:
    """A remedy, or the unchanged run, and how far it has been tried."""

    remedy: Remedy
    own: bool = False  # the user's
    state: State = "waiting"
    refused: str = ""
    tried: int = 0  # updates
    ended: Update | None = None  # the last of these
    judged: Judged | None = None


class Rehearsing:
    """A `trial` under way. `version` changes with what there is to draw.

    Methods that need the engine return the question for it; `take` takes its answers, and `arrived` keeps them for
    somebody to judge.
    """

    def __init__(self, trial: Trial, before: Evidence, begins: object = None) -> None:
        """`before` is the run as it was examined; `begins` is another one for another state to begin from."""
        self.trial, self.before, self.begins = trial, before, begins
        self.measure = measure(before, trial.finding)
        self.points = [point for point in self.measure.series(before) if point[0] <= trial.since][-BEFORE:]
        self.beside = before.history.at(trial.since)  # the metrics before all of them
        self.candidates = [Candidate(each) for each in trial.branches]  # first the unchanged run
        self.updates = trial.updates  # that the next question asks for
        self.refused = ""  # why nothing at all can be tried
        self.version = 0
        self.arrived: list[Arrived] = []
        self.best: Candidate | None = None
        self._rehearsal = Rehearsal(trial, before)
        self._number = 0
        self._asked: list[Candidate] = []  # by the question under way

    @property
    def under_way(self) -> bool:
        """Whether the engine still answers."""
        return bool(self._asked)

    @property
    def current(self) -> Candidate | None:
        """The candidate that the engine tries now."""
        return next((each for each in self._asked if each.state == "under way"), None)

    @property
    def fresh(self) -> bool:
        """Whether a question would bring anything new: what was not tried to its end, or another number of updates."""
        return not self.under_way and bool(self._untried())

    def ask(self) -> Rehearse:
        """Try what has not been tried for so many updates yet."""
        asked = self._untried()
        if self.updates != self.trial.updates:
            self.trial = replace(self.trial, updates=self.updates)
            self._rehearsal = Rehearsal(self.trial, self.before)
        for each in asked:
            each.state, each.refused, each.tried, each.ended, each.judged = "waiting", "", 0, None, None
        asked[0].state, self._asked, self.refused, self.best = "under way", asked, "", None
        self._number += 1
        self.version += 1
        return Rehearse(self.trial.since, self.updates, [each.remedy.changes for each in asked], self._number)

    def _untried(self) -> list[Candidate]:
        again = self.updates != self.trial.updates
        return [each for each in self.candidates if again or each.state not in ("tried", "refused")]

    def add(self, changes: SomeSettings) -> None:
        """Try these settings of the user's as well."""
        if all(each.remedy.changes != changes for each in self.candidates):
            label = Remedy("", dict(changes)).text
            self.candidates.append(Candidate(Remedy(label, dict(changes)), own=True))
            self.version += 1

    def more(self, by: int) -> None:
        """Ask for more or fewer updates the next time."""
        self.updates = min(max(self.updates + by, 1), MOST)
        self.version += 1

    def take(self, answer: Rehearsed) -> None:
        """Take an answer of the engine; one to an earlier question is ignored."""
        if answer.number != self._number or not self._asked:
            return
        self.version += 1
        if answer.index < len(self._asked):
            self._take(self._asked[answer.index], answer)
        elif answer.refused:
            self.fail(answer.refused)
        if answer.done:
            self.end()

    def _take(self, candidate: Candidate, answer: Rehearsed) -> None:
        candidate.state = "under way"
        begins, place = not candidate.tried, self.candidates.index(candidate)
        if answer.records:
            candidate.ended = Update(answer.update)
            for record in answer.records:
                candidate.ended.add(record)
            candidate.tried += 1
        if candidate.tried >= self.trial.updates:
            candidate.state = "tried"
        if answer.refused:
            candidate.state, candidate.refused = "refused", answer.refused
        if candidate.state != "under way":
            following = next((each for each in self._asked if each.state == "waiting"), None)
            if following is not None:
                following.state = "under way"
        self.arrived.append(Arrived(self._rehearsal, place, begins, msgspec.structs.replace(answer, index=place)))

    def end(self) -> None:
        """Nothing more comes: what has not been tried to its end stays as far as it came."""
        for each in self._asked:
            if each.state in ("waiting", "under way"):
                each.state = "stopped"
        self._asked = []
        self.version += 1

    def fail(self, problem: str) -> None:
        """Nothing comes of it: why, in one line."""
        self.refused = problem
        self.end()

    def judge(self, rehearsal: Rehearsal, judged: list[Judged | None], best: Remedy | None) -> None:
        """Take what somebody has made of `arrived`, for each candidate; ignored if all are tried anew meanwhile."""
        if rehearsal is not self._rehearsal:
            return
        for candidate, each in zip(self.candidates, judged, strict=False):
            candidate.judged = each if candidate.tried or candidate.refused else None
        self.best = next((each for each in self.candidates if best is not None and each.remedy is best), None)
        self.version += 1

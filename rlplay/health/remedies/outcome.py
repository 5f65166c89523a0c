"""How a rehearsal is judged: each change beside the run as it is, over the same updates, prompts and random numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rlplay.algorithms.apply import apply_all
from rlplay.health.digest import TokenPlace
from rlplay.health.examine import problems
from rlplay.health.finding import Evidence, Points, Problem
from rlplay.health.health_of_run import Health
from rlplay.health.remedies.margin import gain
from rlplay.health.remedies.measures import REWARD, Measure, measure
from rlplay.health.remedies.remedy import Remedy, Trial
from rlplay.trace.history import History
from rlplay.trace.records import Array, Finished
from rlplay.trace.rehearsals import Rehearsed
from rlplay.trace.run import Run
from rlplay.trace.update import Update

Verdict = Literal["unchanged", "gone", "better", "same", "worse", "untold", "refused"]
"""What became of a finding: "gone" where the check sees it in the unchanged run and not here, and its number is better
as well; "untold" where a number is missing."""


@dataclass(frozen=True)
class ShownToken:
    """A token that shows the problem, in the first rehearsed update: its probability before and after that update.

    `same` says that it is the token of the unchanged run, after the same beginning.
    """

    place: TokenPlace
    text: str
    before: float
    after: float | None
    same: bool


@dataclass(frozen=True)
class Outcome:
    """What became of a finding with a remedy. `numbers` and `rewards` have a value per rehearsed update.

    `reward` and `kl` are those of the last one; where the remedy changes what is paid, `paid_alike` is False, and the
    reward is another one. `brings` are the problems that the run as it is does not have in these updates.
    """

    remedy: Remedy
    verdict: Verdict
    text: str
    number: float | None = None
    numbers: Points | tuple[()] = ()
    reward: float | None = None
    rewards: Points | tuple[()] = ()
    kl: float | None = None
    gold: dict[str, float] | None = None
    paid_alike: bool = True
    brings: tuple[Problem, ...] = ()
    token: ShownToken | None = None
    updates: int = 0
    costs_reward: bool = False
    """Whether the finding is gone or better, and the reward is clearly lower than that of the run as it is."""

    @property
    def helped(self) -> bool:
        """Whether the finding is gone or clearly better, and no other one came in its place."""
        return self.verdict in ("gone", "better") and not self.brings


class _Branch:
    """The updates that were rehearsed with one remedy."""

    def __init__(self, remedy: Remedy, base: Evidence, since: int) -> None:
        self.remedy, self.refused, self.updates = remedy, "", 0
        self._base, self._since = base, since
        self._run = Run(kept=2, candidates=False)
        self._health = Health(self._run)
        self._settings = apply_all(base.settings, remedy.changes) if remedy.changes else base.settings
        self.first: Update | None = None

    def take(self, answer: Rehearsed) -> None:
        """The records of the next update."""
        self.refused = answer.refused or self.refused
        for record in answer.records:
            self._run.add(record)
        if any(isinstance(record, Finished) for record in answer.records):
            update = self._run.find(answer.update)
            assert update is not None
            self._health.add(update)
            self.first = self.first or update
            self.updates += 1

    @property
    def evidence(self) -> Evidence | None:
        """These updates alone; None before the first has ended."""
        found = self._health.evidence(self._since + self.updates, {}) if self.updates else None
        if found is None:
            return None
        base = self._base
        return Evidence(
            found.last, self._since + 1, found.digests, found.history, self._settings, base.ends, base.on_record,
            base.source, found.held_out,
        )  # fmt: skip


def _with_past(run: Evidence, since: int, now: Evidence) -> Evidence:
    """The run up to `since` and the rehearsed updates: what some checks say is of how a run began."""
    points = [(0, name, n, x) for history, last in ((run.history, since), (now.history, now.last))
              for name in history.names()
              for n, x in zip(*history.between(name, run.first, last), strict=True)]  # fmt: skip
    history = History.of(sorted(points, key=lambda point: point[2]), [])
    digests = [*(each for each in run.digests if each.update <= since), *now.digests]
    return replace(now, first=run.first, digests=digests, history=history)


class Rehearsal:
    """Takes the answers to a `Trial`'s question, and says at any time what became of the finding so far."""

    def __init__(self, trial: Trial, run: Evidence) -> None:
        """`run` is the evidence in which the finding was found."""
        self.trial, self._run = trial, run
        self.measure: Measure = measure(run, trial.finding)
        self._branches = [_Branch(each, run, trial.since) for each in trial.branches]

    def take(self, answer: Rehearsed) -> None:
        """The next answer of the engine."""
        if 0 <= answer.index < len(self._branches):
            self._branches[answer.index].take(answer)

    def begin(self, place: int, remedy: Remedy) -> None:
        """Rehearse a remedy at a place: one more, or again what did not come to its end."""
        self._branches[place : place + 1] = [_Branch(remedy, self._run, self.trial.since)]

    def evidence(self, place: int) -> Evidence | None:
        """What the updates of a branch have shown so far; None before the first has ended."""
        return self._branches[place].evidence if place < len(self._branches) else None

    def outcomes(self) -> list[Outcome]:
        """The unchanged run first, then each remedy that has ended or that was refused."""
        control, *others = self._branches
        if not self._ended(control):
            return []
        evidence = control.evidence
        unchanged = _outcome(control, evidence, self.measure, "unchanged", "")
        return [unchanged, *(self._judged(each, control) for each in others if self._ended(each))]

    def best(self) -> Outcome | None:
        """The remedy that helped most: the finding gone before better, then by its number; None if none helped."""
        helped = [each for each in self.outcomes() if each.helped]
        sign = 1 if self.measure.more else -1
        return max(
            helped, default=None,
            key=lambda each: (each.verdict == "gone", each.number is None, sign * (each.number or 0.0)),
        )  # fmt: skip

    def _ended(self, branch: _Branch) -> bool:
        return bool(branch.refused) or branch.updates >= self.trial.updates

    def _judged(self, branch: _Branch, control: _Branch) -> Outcome:
        now, then = branch.evidence, control.evidence
        if branch.refused or now is None:
            return Outcome(branch.remedy, "refused", branch.refused, updates=branch.updates)
        if then is None:
            return _outcome(branch, now, self.measure, "untold", "The run as it is could not be rehearsed.")
        names, before = ({check.name for check, _ in problems(each)} for each in (now, then))
        verdict, text = self._verdict(now, then, self.trial.finding.name in before - names)
        of_run = {check.name for check, _ in problems(_with_past(self._run, self.trial.since, now))}
        brings = tuple(sorted((names & of_run) - before - {self.trial.finding.name}))
        outcome = _outcome(branch, now, self.measure, verdict, text, brings, control)
        return self._priced(outcome, now, then) if verdict in ("gone", "better") else outcome

    def _priced(self, outcome: Outcome, now: Evidence, then: Evidence) -> Outcome:
        """The outcome with what it costs: less of the same reward."""
        ours, theirs = REWARD.of(now), REWARD.of(then)
        less = outcome.paid_alike and gain(REWARD, REWARD.series(now), REWARD.series(then)) < 0
        if not less or ours is None or theirs is None:
            return outcome
        said = f"{outcome.text} It costs reward: {REWARD.shown(ours)} instead of {REWARD.shown(theirs)} on average."
        return replace(outcome, text=said, costs_reward=True)

    def _verdict(self, now: Evidence, then: Evidence, vanished: bool) -> tuple[Verdict, str]:
        ours, theirs = self.measure.of(now), self.measure.of(then)
        if theirs is not None and ours is None and self.measure.settles:
            return "gone", f"It has no {self.measure.name} any more."
        if ours is None or theirs is None:
            return "untold", f"These updates have no {self.measure.name}."
        gained = gain(self.measure, self.measure.series(now), self.measure.series(then))
        said = f"{self.measure.name} {self.measure.shown(ours)} instead of {self.measure.shown(theirs)}"
        if gained > 0:
            return ("gone", f"The check no longer sees it: {said}.") if vanished else ("better", f"{said}.")
        return ("worse", f"{said}.") if gained < 0 else ("same", f"{said}: no difference beyond chance.")


def _outcome(
    branch: _Branch, now: Evidence | None, measured: Measure, verdict: Verdict, text: str,
    brings: tuple[Problem, ...] = (), control: _Branch | None = None,
) -> Outcome:  # fmt: skip
    if now is None:
        return Outcome(branch.remedy, "refused", branch.refused)
    rewards, kls = now.known("reward"), now.known("kl")
    gold = {name[len("gold/") : -len("/mean")]: now.known(name)[-1][1] for name in now.history.names()
            if name.startswith("gold/") and name.endswith("/mean") and now.known(name)}  # fmt: skip
    return Outcome(
        branch.remedy, verdict, text, measured.of(now), measured.series(now),
        rewards[-1][1] if rewards else None, rewards, kls[-1][1] if kls else None, gold,
        not {"reward_weights", "squares"} & branch.remedy.changes.keys(), brings,
        _token(branch, now, measured.place, control), branch.updates,
    )  # fmt: skip


def _token(branch: _Branch, now: Evidence, place: str, control: _Branch | None) -> ShownToken | None:
    """The token that shows the problem: the control's, where the same one was sampled, else the branch's own."""
    first, digest = branch.first, now.digests[0] if now.digests else None
    if first is None or first.sampled is None or digest is None or digest.update != first.number:
        return None
    own = digest.places.get(place) or digest.places.get("longest")
    theirs = None if control is None or control.evidence is None else control.evidence.digests[0]
    known = None if theirs is None else theirs.places.get(place) or theirs.places.get("longest")
    same = control is None or (known is not None and _alike(first, control.first, known))
    here = known if same and known is not None else own
    if here is None:
        return None
    index = int(first.sampled.offsets[here.answer]) + here.token
    after = first.new_logprobs()
    return ShownToken(
        here, first.sampled.texts[index], float(np.exp(first.sampled.old_logprobs[index])),
        None if after is None or not np.isfinite(after[index]) else float(np.exp(after[index])), same,
    )  # fmt: skip


def _alike(one: Update, other: Update | None, place: TokenPlace) -> bool:
    """Whether both updates have the same prompt there, and the same tokens up to a place."""
    if other is None or one.sampled is None or other.sampled is None or place.answer >= len(one.sampled.group):
        return False
    a, b = (_beginning(each, place) for each in (one, other))
    asked, wanted = (each.prompts[int(each.group[place.answer])] for each in (one.sampled, other.sampled))
    return asked == wanted and len(a) == place.token + 1 and np.array_equal(a, b)


def _beginning(update: Update, place: TokenPlace) -> Array:
    assert update.sampled is not None
    begin, end = (int(x) for x in update.sampled.offsets[place.answer : place.answer + 2])
    return update.sampled.token_ids[begin : min(end, begin + place.token + 1)]

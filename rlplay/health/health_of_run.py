"""The health of a run as it grows: takes its updates one by one, or reads a recorded run, and examines it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rlplay.algorithms.setting_values import decoded
from rlplay.health.digest import Digest, digest
from rlplay.health.examine import findings
from rlplay.health.finding import Evidence, Finding
from rlplay.scenario.reproduction import check_understood, scenario_of
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.run import Run
from rlplay.trace.runfile import RunReader
from rlplay.trace.update import Update

FIRST, LAST = 5, 30
"""Updates whose answers are looked at in a recorded run: how it began, and what it does now."""
MOST = 400
"""Digests kept of a run that grows; each takes some kilobytes."""


class UpdateDigest(NamedTuple):
    """An update's digest, with the state of the update that it is of."""

    number: int
    state: tuple[str, int]
    digest: Digest


def digest_update(update: Update) -> UpdateDigest | None:
    """The digest of an update as far as it has come, made by any thread; None before its answers are all sampled."""
    state, made = _state(update), digest(update)
    return None if made is None else UpdateDigest(update.number, state, made)


class Health:
    """The digests of a run's updates, which somebody else gives it. It belongs to one thread."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._digests: dict[int, UpdateDigest] = run.by_update()

    def add(self, update: Update) -> None:
        """Take an update as far as it has come; the same state again costs nothing."""
        if not self.holds(update) and (made := digest_update(update)) is not None:
            self.keep(made)

    def keep(self, made: UpdateDigest) -> None:
        """Take an update whose digest has been made already."""
        self._digests[made.number] = made
        if len(self._digests) > MOST:
            self._thin()

    def holds(self, update: Update) -> bool:
        """Whether an update has been taken in its present state."""
        known = self._digests.get(update.number)
        return known is not None and known.state == _state(update)

    def knows(self, number: int) -> bool:
        """Whether an update has been taken to its end."""
        return number in self._digests and self._digests[number].digest.finished

    def evidence(self, last: int, recorded: SomeSettings) -> Evidence | None:
        """What is known up to update `last`, with the settings on record; None before any answer or number is.

        It begins with the stage of that update.
        """
        history, started = self.run.history, self.run.started
        first = max((border for border in history.stage_borders if border <= last), default=0)
        known = [self._digests[n].digest for n in sorted(self._digests) if first <= n <= last]
        if not known and not any(first <= n <= last for n in history.updates):
            return None
        ends, source = ({}, "") if started is None else (started.ends, started.source)
        before = 0 if started is None else scenario_of(started).made_before
        held_out = self.run.evaluations.learned
        return Evidence(last, first, known, history, decoded(recorded), ends, recorded.keys(), source, held_out, before)

    def _thin(self) -> None:
        """Forget every second update but the newest ones and the first ones of each stage."""
        numbers, borders = sorted(self._digests), [0, *self.run.history.stage_borders]
        begun = {n for border in borders for n in [each for each in numbers if each >= border][:FIRST]}
        for number in [n for n in numbers[:-LAST] if n not in begun][::2]:
            del self._digests[number]

    def findings(self, last: int, recorded: SomeSettings) -> list[Finding]:
        """The problems up to update `last`, the gravest first."""
        run = self.evidence(last, recorded)
        return [] if run is None else findings(run)


def _state(update: Update) -> tuple[str, int]:
    return update.phase, len(update.steps)


def wanted(detailed: list[int], last: int) -> list[int]:
    """The updates to look at for the health at update `last`: the first ones and the newest, ascending."""
    known = [n for n in detailed if n <= last]
    return sorted({*known[:FIRST], *known[-LAST:]})


def examine_run(path: Path) -> tuple[Evidence | None, list[Finding]]:
    """Read a recorded run and examine it at its last finished update. RunFileError if it cannot be read."""
    with RunReader(path) as reader:
        check_understood(reader)
        run = Run.recorded(reader)
        health = Health(run)
        detailed = reader.detailed()
        last = max(reader.updates(), default=0)
        for number in wanted(detailed, last):
            health.add(reader.load(number))
        run.evaluations.expect(run.history.series("eval_reward")[0])
        for number in run.evaluations.missing:
            run.evaluations.take(number, reader.held_out(number))
        found = health.evidence(last, run.timeline.at(last))
    return found, [] if found is None else findings(found)


def undone(path: Path) -> int:
    """The last update that a recorded run had finished before it went back to its start; 0 if it is not there."""
    with RunReader(path) as reader:
        if reader.updates():
            return 0
        return max((number for kind, number, _ in reader.events() if kind == "finished"), default=0)

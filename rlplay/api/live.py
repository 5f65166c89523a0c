"""Training step by step in Python: the same engine that the screen drives, in this process."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from rlplay.algorithms.own_choices import functions_in
from rlplay.api.recorded import RecordedRun, held_out_answers, with_tokens
from rlplay.api.teachers import Asker, Teachers, find_teachers, held_out_target
from rlplay.engine.driver import Driver
from rlplay.scenario.command_line import with_changes
from rlplay.scenario.job import new_job
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Job
from rlplay.scenario.script import Until
from rlplay.scenario.trust import code_of, places_of
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import AnyRecord, Evaluated, Finished, Notice
from rlplay.trace.rehearsals import Rehearse, Rehearsed
from rlplay.trace.run import Run
from rlplay.trace.runfile import RunReader
from rlplay.trace.targets import target_at
from rlplay.trace.update import Phase
from rlplay.trusted import agree, consequences, contents, follow, place, strange


class Live:
    """A run that trains when it is told to. `run` reads what is recorded so far; leaving the context closes both."""

    def __init__(self, job: Job) -> None:
        """Load model and task of the job; raises ValueError, one line, if something is missing or does not fit."""
        self._folded = Run(kept=1, candidates=False)
        self._driver = Driver(job, self._take)
        self._driver.load(lambda _what, _share: None)
        self._open = True
        self.run = RecordedRun(Path(job.run))

    @property
    def settings(self) -> SomeSettings:
        """The settings with every change, those that wait for the next phase included."""
        return asdict(self._driver.status().settings)

    def update(self, count: int = 1) -> dict[str, float]:
        """Train to the end of `count` updates, the one under way included; returns the last one's metrics.

        If training fails or is interrupted, the run is back at the end of the last finished update.
        """
        self._advance("update", count)
        return self._folded.history.at(self._driver.status().update)

    def phase(self) -> Phase:
        """Go on to the end of one phase and return its name: sample, score, credit, update or after."""
        ended = self._driver.status().phase
        self._advance("phase", 1)
        return ended

    def teachers(
        self,
        answer: int | None = None,
        token: int | None = None,
        *,
        candidate: int | str | None = None,
        held_out: int | None = None,
        update: int | None = None,
        by: int | None = None,
    ) -> Teachers:
        """Who taught a token of an answer what it does: which tokens moved its log-probability in an update.

        `answer` and `token` count from 0, as `run.completions` and `position`; without a token it is the whole answer.
        `candidate` is another token in its place: its text, if it is on record there, or its id. `held_out` is a
        held-out answer instead, of the newest evaluation by then. The newest update moved it unless `update` names
        another; `by` names an earlier one, whose tokens then have the shares. Training is where it was afterwards.
        Raises ValueError, one line, if there is no such token or it cannot be told.
        """
        self._check_open()
        chosen = self._driver.status().update if update is None else update
        if not chosen:
            raise ValueError("no update has ended yet: update() trains one")
        with RunReader(self.run.path) as reader:
            asker, own = Asker(self._driver), with_tokens(reader, chosen)
            if held_out is not None:
                if not (answer is token is candidate is None):
                    raise ValueError("held_out is a whole answer; leave out answer, token and candidate")
                target = held_out_target(asker, held_out_answers(reader, chosen), held_out)
            elif answer is None:
                raise ValueError("which answer? answer=0 is the first of the update, held_out=0 the first held-out one")
            else:
                target = target_at(own, answer, token, candidate)
            return find_teachers(asker, reader, own, target, answer, by)

    def set(self, **settings: Any) -> None:
        """Change settings from the next phase on. Raises ValueError, one line, if they do not fit together."""
        self._check_open()
        follow(place(entry) for entry in functions_in(settings))
        self._driver.set(settings)

    def rehearse(self, *changes: SomeSettings, updates: int = 5) -> list[list[dict[str, float]]]:
        """What `updates` updates from here would be with each of `changes`: the metrics of each, by change and update.

        Each begins where training is, with the same prompts and random numbers, and an empty one changes nothing: it is
        what update() would do. Training is where it was afterwards. A change that cannot be tried, or ends early, is a
        warning, and has fewer updates. Raises ValueError, one line, if nothing can be rehearsed from here.
        """
        self._check_open()
        for settings in changes:
            follow(place(entry) for entry in functions_in(settings))
        found = [list[dict[str, float]]() for _ in changes]
        question = Rehearse(self._driver.status().update, updates, list(changes))
        for answer in self._driver.answers(question, lambda: False):
            assert isinstance(answer, Rehearsed)
            if answer.refused:
                warnings.warn(f"{changes[answer.index]}: {answer.refused}", stacklevel=2)
            elif not answer.done:
                measured = [each.metrics for each in answer.records if isinstance(each, Finished | Evaluated)]
                found[answer.index].append({name: value for each in measured for name, value in each.items()})
        return found

    def close(self) -> None:
        """Keep the state in a snapshot and close the run, which `rlplay resume` continues; twice does no harm."""
        if self._open:
            self._open = False
            self.run.close()
            self._driver.close()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, record: AnyRecord) -> None:
        """Take a record; what the screen would show as a notice is a warning."""
        self._folded.add(record)
        if isinstance(record, Notice) and record.level != "info":
            warnings.warn(record.text, stacklevel=2)

    def _advance(self, until: Until, count: int) -> None:
        self._check_open()
        if left := self._driver.advance(until, count, lambda: False):
            waiting = len(self._driver.asks())
            raise ValueError(f"{waiting} pairs wait for your labels, {left} {until}s are left: set(labeller='gold')")

    def _check_open(self) -> None:
        if not self._open:
            raise ValueError("this run is closed; rlplay.play starts another, 'rlplay resume' continues it")


def play(
    scenario: str | Path,
    *,
    out: str | Path | None = None,
    device: str = "auto",
    model: str | None = None,
    teacher: str | None = None,
    environment: str | None = None,
    seed: int | None = None,
    trust: bool = False,
    **settings: Any,
) -> Live:
    """Load a scenario, a bundled name or a YAML file, and stop before its first update; its script is not played.

    `teacher` is as after `rlplay --teacher`, `environment` as after `rlplay --environment`,
    `reasoning-gym:chain_sum` for one.
    `settings` are as after `rlplay --set`; `out` is where the run file goes, by default among the runs. Code that the
    scenario's file names runs only with `trust`, or if it was trusted before. Raises ValueError, one line, for what the
    command line refuses too.
    """
    sets = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in settings.items()]
    chosen = with_changes(load(scenario), model=model, teacher=teacher, environment=environment, seed=seed, sets=sets)
    follow(each for each in places_of(environment or "") if environment)
    follow(place(entry) for entry in functions_in(settings))
    _ask_trust(code_of(chosen), trust)
    return Live(new_job(chosen, None if out is None else Path(out), device))


def _ask_trust(code: list[str], trusted: bool) -> None:
    seen = contents(code)
    if (asked := strange(code)) and not trusted:
        raise ValueError(f"it would {consequences(asked)}; read that first, then add trust=True")
    if code:
        agree(seen)

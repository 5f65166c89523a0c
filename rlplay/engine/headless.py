"""A script played without a screen: the same driver, its records turned into lines and a verdict.

Exit status: 0 all expectations hold, 1 one does not, 2 bad input, 130 interrupted (the run is saved).
"""

from __future__ import annotations

import os
import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from rlplay.engine.report import Report
from rlplay.engine.run_status import RunStatus
from rlplay.health.finding import Finding
from rlplay.health.run import examine_run
from rlplay.processes import in_several, is_first
from rlplay.scenario.claim import Expect
from rlplay.scenario.expect import Outcome, check, not_reached
from rlplay.scenario.interpreter import Interpreter, Reveal, goes_back_to
from rlplay.scenario.schema import Job
from rlplay.scenario.script import Ask, Change, Exercise, Prefer, Rewind, Say, Step, Train, Watch, You
from rlplay.scenario.world import step_word
from rlplay.trace.history import History
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import AnyRecord, Choice, Evaluated, Finished, Notice, Rewound, Sampled
from rlplay.trace.update import Update

Sink = Callable[[AnyRecord], None]
HOLDS, FAILS, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
_ASK_TO_STOP = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Engine(Protocol):
    """What is needed of `rlplay.engine.driver.Driver`."""

    def load(self, progress: Callable[[str, float], None]) -> None: ...
    def advance(self, until: Any, count: int, interrupted: Callable[[], bool]) -> int: ...
    def set(self, changes: SomeSettings) -> None: ...
    def rewind(self, update: int) -> None: ...
    def asks(self) -> list[int]: ...
    def prefer(self, pair: int, choice: Choice) -> None: ...
    def status(self) -> RunStatus: ...
    def close(self) -> None: ...


class Player:
    """Plays the steps of one script on one engine, at most `limit` training updates of it.

    `step_word` names what the policy samples.
    """

    def __init__(self, report: Report, limit: int | None, step_word: str = "token") -> None:
        self.report = report
        self.limit = limit
        self.step_word = step_word
        self.stopped = threading.Event()
        self.trained = 0
        self.history = History()
        self.current = Update(0)
        self.last: Update | None = None
        self.outcomes: list[Outcome] = []
        self.watched: list[Expect] = []  # what is said as soon as it holds

    def take(self, record: AnyRecord) -> None:
        """The engine's sink: remember what expectations need, report what a reader wants."""
        self.history.add(record)
        match record:
            case Sampled():
                self.report.flush()
                if record.update != self.current.number or self.current.finished is not None:
                    self.current = Update(record.update, self.step_word)
            case Finished():
                self.trained += 1
                self.report.finished(record)
            case Evaluated():
                self.report.evaluated(record)
            case Rewound():
                self.current = Update(record.update, self.step_word)
                self.report.note(f"back to the state after update {record.update}")
            case Notice():
                self.report.note(f"{record.level}: {record.text}")
            case _:
                pass
        self.current.add(record)
        if isinstance(record, Finished):
            self.last = self.current
            for claim in [each for each in self.watched if check(each, self.history, self.last).passed]:
                self.watched.remove(claim)
                self.report.say(claim.text)

    def stops(self) -> bool:
        """Whether ctrl+c asks this process, or another that trains the run, to stop."""
        if not in_several():
            return self.stopped.is_set()
        from rlplay.engine import ranks  # which loads torch

        return any(ranks.anywhere(self.stopped.is_set()))

    def play(self, steps: Sequence[Step], engine: Engine) -> None:
        """Play `steps` to the end, or until the limit or an interrupt; the rest is marked as not reached."""
        script, over = Interpreter(steps), False
        while (action := script.action) is not None:
            over = over or self.stops()
            if isinstance(action, Reveal):
                for claim in action.claims:
                    self.expect(claim, reached=not over)
                if action.asked is not None and not over:
                    self.report.reveal(action.asked)
            elif not over:
                over = not self.act(action, engine)
            script.done()
        self.report.flush()

    def act(self, step: Step, engine: Engine) -> bool:
        """Carry out one step; False if the limit or an interrupt cut it short."""
        match step:
            case Say():
                self.watched.clear()
                self.report.say(step.text)
            case Ask():
                self.report.ask(step)
            case You() | Exercise():
                return self.in_place_of_learner(step, engine)
            case Watch():
                self.watched.append(step.claim)
            case Train():
                return self.go(step, engine)
            case Change():
                engine.set(step.settings)
            case Prefer(choices):
                for place, choice in enumerate(choices):
                    waiting = engine.asks()
                    if place and not waiting:  # identical answers need no label, so there may be fewer pairs
                        break
                    engine.prefer(next(iter(waiting), 0), choice)
            case Rewind():
                # What follows it cannot be played any more: better a run that shows what was.
                if self.limit is not None and self.trained >= self.limit:
                    return False
                self.back(step, engine)
            case _:
                pass
        return True

    def in_place_of_learner(self, step: You | Exercise, engine: Engine) -> bool:
        """Do what the learner is asked for, and check that it solves an exercise."""
        self.report.say(step.text)
        if isinstance(step, You):
            return self.act(step.step, engine)
        if not all(self.act(each, engine) for each in step.solution):
            return False
        for claim in step.claims:
            self.expect(claim, reached=True)
        return True

    def back(self, step: Rewind, engine: Engine) -> None:
        """To the end of an update, as the step says."""
        done = engine.status().update
        target = goes_back_to(step, done, under_way=self.current.number > done)
        if target < 0:
            self.report.note("undo: this is the start of the run")
        else:
            engine.rewind(target)

    def go(self, step: Train, engine: Engine) -> bool:
        """Advance by one step's count, within the limit. Raises ValueError where pairs wait for labels."""
        _check_labelled(engine)
        if step.until == "update":
            left = step.count if self.limit is None else min(step.count, self.limit - self.trained)
            if left > 0:
                engine.advance("update", left, self.stops)
                _check_labelled(engine)
            return left == step.count and not self.stops()
        for _ in range(step.count):
            if self.stops() or (self.limit is not None and self.trained >= self.limit):
                return False
            _check_labelled(engine)
            engine.advance(step.until, 1, self.stops)
        return not self.stops()

    def expect(self, claim: Expect, reached: bool) -> None:
        """Check one claim and report it."""
        self.outcomes.append(check(claim, self.history, self.last) if reached else not_reached(claim))
        self.report.outcome(self.outcomes[-1])


def _check_labelled(engine: Engine) -> None:
    if waiting := len(engine.asks()):
        raise ValueError(
            f"{waiting} pairs of update {engine.status().update + 1} wait for labels: play the run on the screen "
            "(without 'run'), put '- prefer: [a, b, …]' into the script after '- phase: 1', or set labeller=gold"
        )


def run(
    job: Job,
    steps: Sequence[Step],
    updates: int | None,
    report: Report,
    engine: Callable[[Job, Sink], Engine],
) -> int:
    """Play `steps` (none: the run's updates that are left) on a new engine and report; returns the exit status.

    `updates` caps the training updates; of a run that is resumed, it is how many to add.
    """
    player = Player(report, updates, step_word(job.scenario.world))
    driver = engine(job, player.take)
    driver.load(report.loading)  # which may download for minutes: ctrl+c ends it at once, as nothing is lost
    with _interrupts(player.stopped):
        try:
            player.play(steps or _what_is_left(job, updates, driver), driver)
        finally:
            driver.close()
    if player.stops():
        again = resume_command(job.run)
        report.note(f"interrupted; all finished updates are saved. To continue: {again}")
        return INTERRUPTED
    passed = all(outcome.passed is not False for outcome in player.outcomes)
    if is_first():
        report.result(passed, player.outcomes, job.run, _findings(Path(job.run)))
    return HOLDS if passed else FAILS


def resume_command(run: str, mended: bool = False) -> str:
    """What continues a recorded run, in as many processes; `mended`: with the user's code as it will be then."""
    several = ["--processes", os.environ["WORLD_SIZE"]] if in_several() else []
    return shlex.join(["rlplay", "run", "--resume", run, *several, *["--trust"] * mended])


def _findings(run: Path) -> list[Finding]:
    """What is wrong with the recorded run; of a resumed one, over all of its updates."""
    return examine_run(run)[1] if run.exists() else []


def _what_is_left(job: Job, updates: int | None, engine: Engine) -> list[Step]:
    if job.resume and updates is not None:
        return [Train("update", updates)]
    left = job.scenario.max_updates - engine.status().update
    return [Train("update", left)] if left > 0 else []


@contextmanager
def _interrupts(stopped: threading.Event) -> Iterator[None]:
    """The first ctrl+c asks to stop at the next token, as SIGTERM and SIGHUP do; the second is Python's own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask_to_stop(_signal: int, _frame: object) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()

    before = {each: signal.signal(each, ask_to_stop) for each in _ASK_TO_STOP}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)

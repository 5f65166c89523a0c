"""A script played without a screen: the same driver, its records turned into lines and a verdict.

Exit status: 0 all expectations hold, 1 one does not, 2 bad input, 130 interrupted (the run is saved).
"""

from __future__ import annotations

import os
import shlex
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from rlplay.engine.run_report import Report
from rlplay.engine.run_status import RunStatus
from rlplay.exercises import exercise_called
from rlplay.health.finding import Finding
from rlplay.health.health_of_run import examine_run
from rlplay.processes import in_several, is_first
from rlplay.scenario.claim import Expect
from rlplay.scenario.expect import ClaimResult, check, not_reached
from rlplay.scenario.player import ScriptPlayer
from rlplay.scenario.scenario_world import step_word
from rlplay.scenario.schema import Job
from rlplay.scenario.script import Ask, Exercise, Pace, Step, Train, Write, You
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.questions import AnyAnswer, AnyQuestion, Tried, TryCode, refusal
from rlplay.trace.records import AnyRecord, Choice, Evaluated, Finished, Notice, Rewound, Sampled
from rlplay.trace.run import Run
from rlplay.trace.runfile import RunFileError, RunReader
from rlplay.trace.teachers import AnyTeachingAnswer, TakeAway, Teach, refuse_teaching
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
    def withhold(self, update: int, tokens: list[int]) -> None: ...
    def prefer(self, pair: int, choice: Choice) -> None: ...
    def answers(self, question: AnyQuestion, interrupted: Callable[[], bool]) -> Iterator[AnyAnswer]: ...
    def status(self) -> RunStatus: ...
    def close(self) -> None: ...


class HeadlessRun:
    """Plays scripts on one engine, at most `limit` training updates of it, and reports what its records say.

    They add up to `run`. The presenter and the engine of its scripts are this object itself, which never waits.
    """

    def __init__(self, report: Report, limit: int | None, run: Run) -> None:
        self.report = report
        self.limit = limit
        self.stopped = threading.Event()
        self.trained = 0
        self.run = run
        self.outcomes: list[ClaimResult] = []
        self._engine: Engine
        self._script = ScriptPlayer([], self, self)

    def take(self, record: AnyRecord) -> None:
        """The engine's sink: remember what expectations need, report what a reader wants."""
        self.run.add(record)
        match record:
            case Sampled():
                self.report.flush()
            case Finished():
                self.trained += 1
                self.report.finished(record)
                self._script.speak_up()
            case Evaluated():
                self.report.evaluated(record)
            case Rewound():
                self.report.note(f"back to the state after update {record.update}")
            case Notice():
                self.report.note(f"{record.level}: {record.text}")
            case _:
                pass

    def stops(self) -> bool:
        """Whether ctrl+c asks this process, or another that trains the run, to stop."""
        if not in_several():
            return self.stopped.is_set()
        from rlplay.engine import ranks  # which loads torch

        return any(ranks.anywhere(self.stopped.is_set()))

    def play(self, steps: Sequence[Step], engine: Engine) -> None:
        """Play `steps` to the end, or until the limit or an interrupt; the rest is marked as not reached."""
        self._engine, script = engine, ScriptPlayer(steps, self, self)
        self._script = script
        while script.action is not None and not self.stops() and _without_a_loop(script.play()):
            pass
        for step in script.steps[script.at :]:
            if isinstance(step, Expect):
                self._tell(not_reached(step))
        self.report.flush()

    def say(self, text: str) -> None:
        """Report a text of the script."""
        self.report.say(text)

    remark = say

    async def ask(self, question: Ask) -> bool:
        """Report a question."""
        self.report.ask(question)
        return True

    async def turn(self, task: You | Exercise) -> bool:
        """Report what a learner is asked for; nobody does it."""
        self.report.say(task.text)
        return False

    async def write(self, task: Write) -> None:
        """Report a writing exercise; that its solution does not agree with the engine counts as a failed claim."""
        self.report.say(task.text)
        question = TryCode(task.exercise, exercise_called(task.exercise).solution)
        try:
            (tried,) = self._engine.answers(question, self.stops)
        except ValueError as error:
            tried = refusal(question, str(error))
        assert isinstance(tried, Tried)
        if tried.passed:
            self.report.note(f"the solution agrees with the engine: {tried.compared} {tried.unit}")
        else:
            found = tried.refused or tried.error or "it does not"
            self._tell(ClaimResult(f"The solution of {task.exercise} agrees", False, None, found))

    async def inquire(self, claims: Sequence[Expect]) -> None:
        """The engine answers when a claim is checked."""

    def reveal(self, outcomes: list[ClaimResult], about: Ask | Exercise | None) -> None:
        """Report the outcomes of claims, and the answer to a question."""
        for outcome in outcomes:
            self._tell(outcome)
        if isinstance(about, Ask):
            self.report.reveal(about)

    def look(self, verb: str, argument: Any) -> None:
        """Pass over a verb of the screen."""

    def check(self, claim: Expect) -> ClaimResult:
        """Check a claim against the records so far."""
        return check(claim, self.run.history, self.run.ended, self._asked)

    def _asked(self, question: Teach | TakeAway) -> AnyTeachingAnswer:
        try:
            *_, answer = self._engine.answers(question, self.stops)
        except ValueError as error:
            return refuse_teaching(question, str(error))
        assert isinstance(answer, AnyTeachingAnswer)
        return answer

    @property
    def update(self) -> int:
        """The number of finished updates."""
        return self._engine.status().update

    @property
    def under_way(self) -> bool:
        """Whether another update is under way."""
        return self.run.newest is not None and self.run.newest.number > self.update

    @property
    def asks(self) -> list[int]:
        """The pairs that wait for a label."""
        return self._engine.asks()

    async def advance(self, until: Pace, count: int) -> bool:
        """Advance within the limit; False if it, or an interrupt, cut it short.

        Raises ValueError where pairs wait for labels.
        """
        engine = self._engine
        _check_labelled(engine)
        if until == "update":
            left = count if self.limit is None else min(count, self.limit - self.trained)
            if left > 0:
                engine.advance("update", left, self.stops)
                _check_labelled(engine)
            return left == count and not self.stops()
        for _ in range(count):
            if self.stops() or self._at_limit:
                return False
            _check_labelled(engine)
            engine.advance(until, 1, self.stops)
        return not self.stops()

    async def rewind(self, update: int) -> bool:
        """Go back to the end of `update`; False if the limit is reached: better a run that shows what was."""
        if self._at_limit:
            return False
        if update < 0:
            self.report.note("undo: this is the start of the run")
        else:
            self._engine.rewind(update)
        return True

    async def set(self, settings: SomeSettings) -> None:
        """Change settings of the run."""
        self._engine.set(settings)

    async def prefer(self, pair: int, choice: Choice) -> None:
        """Label a pair."""
        self._engine.prefer(pair, choice)

    async def withhold(self, tokens: list[int]) -> None:
        """Take the credit of tokens of the next update away."""
        self._engine.withhold(self.update + 1, tokens)

    @property
    def _at_limit(self) -> bool:
        return self.limit is not None and self.trained >= self.limit

    def _tell(self, outcome: ClaimResult) -> None:
        self.outcomes.append(outcome)
        self.report.outcome(outcome)


def _without_a_loop(played: Coroutine[Any, Any, bool]) -> bool:
    """What a coroutine that never waits returns; without an event loop, a reward function may run one of its own."""
    try:
        played.send(None)
    except StopIteration as end:
        return bool(end.value)
    raise RuntimeError("a step waits for something that nobody does without a screen")


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
    folded = Run(partial(_load, Path(job.run)), kept=2, candidates=False)
    folded.step_word = step_word(job.scenario.world)
    played = HeadlessRun(report, updates, folded)
    driver = engine(job, played.take)
    driver.load(report.loading)  # which may download for minutes: ctrl+c ends it at once, as nothing is lost
    with _interrupts(played.stopped):
        try:
            played.play(steps or _what_is_left(job, updates, driver), driver)
        finally:
            driver.close()
    if played.stops():
        again = resume_command(job.run)
        report.note(f"interrupted; all finished updates are saved. To continue: {again}")
        return INTERRUPTED
    passed = all(outcome.passed is not False for outcome in played.outcomes)
    if is_first():
        report.result(passed, played.outcomes, job.run, _findings(Path(job.run)))
    return HOLDS if passed else FAILS


def resume_command(run: str, mended: bool = False) -> str:
    """What continues a recorded run, in as many processes; `mended`: with the user's code as it will be then."""
    several = ["--processes", os.environ["WORLD_SIZE"]] if in_several() else []
    return shlex.join(["rlplay", "run", "--resume", run, *several, *["--trust"] * mended])


def _load(run: Path, number: int) -> Update | None:
    """An update of the recorded run; None if its tokens were not kept, or cannot be read."""
    try:
        with RunReader(run) as reader:
            update = reader.load(number)
    except RunFileError:
        return None
    return update if update.sampled is not None else None


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

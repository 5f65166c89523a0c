"""The engine's process: `python -m rlplay.engine.engine_process`, started by the screen, obeying its commands.

Nothing heavy is imported before it has connected, and nothing of a job is read before everything is imported: the
screen may start the process before it has a job.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import queue
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from rlplay.engine.collector import without_collector
from rlplay.engine.out_of_memory import is_out_of_memory, release
from rlplay.engine.run_status import RunStatus
from rlplay.link.messages import (
    Advance,
    AnyCommand,
    AnySetting,
    Begin,
    EndProbe,
    Failed,
    Loading,
    LogLine,
    Pause,
    Prefer,
    Recorded,
    RecordView,
    Rewind,
    Set,
    Status,
    Stop,
    Trust,
    Withhold,
)
from rlplay.link.server import PATIENCE, ScreenLink
from rlplay.supervisor import end_with_parent
from rlplay.trace.questions import AnyQuestion, Peek, TryCode, refusal
from rlplay.trace.records import AnyRecord
from rlplay.trace.runfile import RunFileError

if TYPE_CHECKING:
    from rlplay.engine.driver import Driver

_STATUS_EVERY = 0.1
"""Seconds between two reports of where a running engine stands."""

_IMPORTED = 0.4
"""Share of the start-up that is over once everything is imported."""


class CommandLoop:
    """Carries out the screen's commands on one driver until it says stop or is gone."""

    def __init__(self, link: ScreenLink, driver: Driver) -> None:
        self._link = link
        self._driver = driver
        self._held: AnyCommand | None = None  # the next command, already taken from the queue
        self._counted = False  # whether the current advance has a fixed count
        self._steps: deque[Advance] = deque()  # advances that wait for the current one
        self._asked: deque[AnyQuestion] = deque()  # questions that wait for the end of the update under way
        self._rest: Advance | None = None  # what is left to do once the user has labelled all pairs
        self._reported: Status | None = None
        self._reported_at = 0.0

    def serve(self) -> int:
        """Obey until the end; returns the exit status: 0 asked to stop, 1 the run cannot be recorded any more."""
        self._report(running=False)
        while True:
            self._answer_asked()
            command = self._held or (self._steps.popleft() if self._steps else self._link.commands.get()) or Stop()
            self._held = None
            try:
                match command:
                    case Stop():
                        return 0
                    case Advance():
                        self._advance(command)
                    case Rewind():
                        self._rest = None
                        self._change(command)
                    case Set() | Prefer() | Withhold() | RecordView():
                        self._change(command)
                        self._go_on()
                    case Begin():
                        self._link.send(LogLine("warning", "a second job was refused: this engine has one already"))
                    case Pause():
                        self._rest = None
                    case EndProbe() | Trust():
                        pass  # the link has heeded what the user trusts
                    case _:
                        self._answer(command)
            except RunFileError as error:
                self._link.send(Failed(str(error), traceback.format_exc()))
                return 1
            self._report(running=bool(self._steps) or isinstance(self._held, Advance))

    def _advance(self, command: Advance) -> None:
        self._rest, self._counted = None, command.until != "forever"
        self._report(running=True)
        try:
            if left := self._driver.advance(command.until, command.count, self._interrupted):
                self._rest = Advance(command.until, left)
                waiting = len(self._driver.asks())
                self._link.send(LogLine("info", f"{waiting} pairs wait for labels: prefer a, b or skip"))
            return
        except RunFileError:
            raise
        except Exception as error:
            self._steps.clear()
            self._notice("error", _explain(error, self._driver.status()), traceback.format_exc())
            release(error)

    def _go_on(self) -> None:
        """Do what is left of an `Advance` that was cut short, once no pair waits for a label any more."""
        if self._rest is not None and not self._driver.asks():
            self._advance(self._rest)

    def _interrupted(self) -> bool:
        """Asked by the driver at every token, phase and step; settings change here without stopping it.

        True if the driver should stop. Settings and questions are handled at once, but for questions that go back in
        the run, which wait for the end of the update. Further steps wait for the end of an advance that is counted; any
        other command interrupts.
        """
        if self._asked and not self._driver.waits(self._asked[0]):
            self._answer_asked()
        if time.monotonic() - self._reported_at >= _STATUS_EVERY:
            self._report(running=True)
        while self._held is None:
            try:
                command = self._link.commands.get_nowait() or Stop()
            except queue.Empty:
                return False
            if isinstance(command, Set | RecordView):
                self._change(command)
            elif isinstance(command, AnyQuestion):
                self._asked.append(command) if self._driver.waits(command) else self._answer(command)
            elif isinstance(command, Advance) and self._counted:
                self._steps.append(command)
            elif isinstance(command, EndProbe):
                self._asked.clear()
            else:
                self._held = command
                self._steps.clear()
        return True

    def _change(self, command: AnySetting) -> None:
        try:
            match command:
                case Set():
                    self._driver.set(command.changes)
                case Rewind():
                    self._driver.rewind(command.update)
                case Prefer():
                    self._driver.prefer(command.pair, command.choice)
                case Withhold():
                    self._driver.withhold(command.update, command.tokens)
                case RecordView():
                    self._driver.look(command.lens, command.completion, command.token)
        except RunFileError:
            raise
        except ValueError as error:
            self._notice("warning", str(error))

    def _answer_asked(self) -> None:
        """Answer what has waited; where the run rests within an update, the answer says so."""
        while self._asked:
            self._answer(self._asked.popleft())

    def _answer(self, question: AnyQuestion) -> None:
        """Answer a question, unless the next command comes first: what was asked for last matters more."""
        waiting = self._link.commands.queue
        if isinstance(question, Peek | TryCode) and waiting and isinstance(waiting[0], type(question)):
            return  # a cursor that is moved on, lines that are typed on: only where they stop is worth a look
        try:
            for answer in self._driver.answers(question, lambda: not self._link.commands.empty()):
                self._link.send(answer)
        except Exception as error:
            # A question must never cost the run, not even its memory.
            self._link.send(refusal(question, _first_line(error)))

    def _notice(self, level: str, text: str, detail: str = "") -> None:
        self._driver.note(level, text, detail)

    def _report(self, running: bool) -> None:
        run, waits = self._driver.status(), not running and self._rest is not None
        status = Status(
            running,
            run.update,
            run.phase,
            asdict(run.settings),
            run.finished,
            self._driver.asks(),
            waits,
            kept=run.kept,
        )
        if status != self._reported:
            self._link.send(status)
            self._reported = status
        self._reported_at = time.monotonic()


def _explain(error: Exception, run: RunStatus) -> str:
    """One line: what went wrong, where, and what to do."""
    what, update, phase = _first_line(error), run.update, run.phase
    if is_out_of_memory(error):
        return (
            f"Out of memory in update {update + 1} ({phase}); the run is back at the end of update {update}. "
            "Lower num_prompts, num_generations or max_completion_length, or set gradient_checkpointing=on, "
            "then continue."
        )
    if isinstance(error, (ValueError, RuntimeError)):
        return f"{what} (update {update + 1}, {phase})"
    return f"{type(error).__name__}: {what} (update {update + 1}, {phase})"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def import_driver(progress: Callable[[str, float], None]) -> type[Driver]:
    """The heavy part of starting up."""
    with without_collector():
        progress("importing torch", 0.0)
        importlib.import_module("torch")
        progress("importing the model library", _IMPORTED / 2)
        from rlplay.engine.compat import import_models

        import_models()
        from rlplay.engine.driver import Driver
    return Driver


def main(imports: Callable[[Callable[[str, float], None]], Any] = import_driver) -> int:
    """Connect to the screen that started this process and serve it; returns the exit status."""
    try:
        link = ScreenLink.connect(os.environ)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    end_with_parent(PATIENCE)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(5)  # the screen answers first where processor time is short
        # With autogroup, Linux divides time among sessions before it applies nice values, and this is one.
        Path("/proc/self/autogroup").write_text("5")
    try:
        return _run(link, imports)
    finally:
        link.close()


def _run(link: ScreenLink, imports: Callable[[Callable[[str, float], None]], Any]) -> int:
    def record(entry: AnyRecord) -> None:
        link.send(Recorded(entry))

    def loading(what: str, fraction: float) -> None:
        link.send(Loading(what, _IMPORTED + (1 - _IMPORTED) * fraction))

    try:
        driver_of = imports(lambda what, fraction: link.send(Loading(what, fraction)))
        begin = link.commands.get()
        if not isinstance(begin, Begin):
            return 0
        driver = driver_of(begin.job, record)
        driver.load(loading)
    except Exception as error:
        what = str(error).strip().partition("\n")[0]
        text = what if isinstance(error, ValueError) else f"{type(error).__name__} while starting: {what}"
        link.send(Failed(text, traceback.format_exc()))
        return 1
    try:
        return CommandLoop(link, driver).serve()
    except Exception as error:
        link.send(Failed(f"{type(error).__name__} in the engine: {error}; start it again", traceback.format_exc()))
        return 1
    finally:
        driver.close()


if __name__ == "__main__":
    sys.exit(main())

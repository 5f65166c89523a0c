"""What a run without a screen prints: lines for a person, or one JSON object per update for a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rlplay.health.finding import Finding
from rlplay.health.findings_report import heading, written
from rlplay.printed import Expectation, Printed, RunResult, UpdateNumbers, finite, json_line, number_or_null
from rlplay.scenario.expect import ClaimResult
from rlplay.scenario.script import Ask
from rlplay.trace.parts import EVALUATE
from rlplay.trace.records import Evaluated, Finished
from rlplay.trace.text import visible, visible_lines

_SHOWN = (
    ("reward", "reward"),
    ("logps/chosen", "log p chosen"),
    ("rewards/margins", "margin"),
    ("rewards/accuracies", "accuracy"),
    ("margin", "margin"),
    ("accuracy", "accuracy"),
    ("completions/mean_length", "length"),
    ("kl", "kl"),
    ("entropy", "entropy"),
    ("eval_reward", "held out"),
)


class Report:
    """Gathers an update's numbers until nothing more can come, then writes them.

    Held-out numbers join the update they follow; those from before the first update make an update 0.
    """

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self.out, self.err = out, err
        self._update: int | None = None
        self._metrics: dict[str, float] = {}
        self._timings: dict[str, float] = {}
        self._seconds = 0.0

    def finished(self, record: Finished) -> None:
        """An update has ended."""
        self._gather(record.update, record.metrics, record.seconds, record.timings)

    def evaluated(self, record: Evaluated) -> None:
        """Held-out prompts have been answered."""
        self._gather(record.update, record.metrics, record.seconds, {EVALUATE: record.seconds})

    def _gather(self, update: int, metrics: dict[str, float], seconds: float, timings: dict[str, float]) -> None:
        if self._update != update:
            self.flush()
            self._update, self._metrics, self._timings, self._seconds = update, {}, {}, 0.0
        self._metrics |= metrics
        self._timings |= timings
        self._seconds += seconds

    def flush(self) -> None:
        """Write the gathered update, if there is one."""
        if self._update is not None:
            self.update(self._update, self._metrics, self._seconds, self._timings)
            self._update = None

    def note(self, text: str) -> None:
        """Something about the run itself, for standard error."""
        self.flush()
        self.err.write(f"rlplay: {visible_lines(text)}\n")
        self.err.flush()

    def loading(self, what: str, fraction: float) -> None:
        """Start-up progress, for somebody who waits; a log does not."""
        if self.err.isatty():
            self.err.write(f"rlplay: {visible(what)} ({fraction:.0%})\n")
            self.err.flush()

    def update(self, number: int, metrics: dict[str, float], seconds: float, timings: dict[str, float]) -> None:
        """Write one update."""
        raise NotImplementedError

    def say(self, text: str) -> None:
        """A line of the script's teacher."""

    def ask(self, step: Ask) -> None:
        """A question of the script."""

    def reveal(self, step: Ask) -> None:
        """The answer to a question asked before."""

    def outcome(self, outcome: ClaimResult) -> None:
        """A checked expectation."""

    def result(self, passed: bool, outcomes: Sequence[ClaimResult], run: str, findings: Sequence[Finding]) -> None:
        """The end of the run, with what is wrong with it."""
        raise NotImplementedError


class TextReport(Report):
    """For a person; on a terminal the updates rewrite one line."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        super().__init__(out, err)
        self._rewrites = out.isatty()
        self._open = False
        unicode = (out.encoding or "").lower().replace("-", "").startswith("utf")
        self._marks = {True: "✓", False: "✗", None: "·"} if unicode else {True: "ok", False: "FAILED", None: "-"}

    def update(self, number: int, metrics: dict[str, float], seconds: float, timings: dict[str, float]) -> None:  # noqa: ARG002
        numbers = "  ".join(f"{title} {metrics[name]:.3f}" for name, title in _SHOWN if name in metrics)
        line = f"update {number:>3}  {numbers}  {seconds:.1f} s"
        if self._rewrites:
            self.out.write(f"\r\x1b[K{line}")
            self.out.flush()
            self._open = True
        else:
            self._line(line)

    def note(self, text: str) -> None:
        self.flush()
        self._close()
        super().note(text)

    def say(self, text: str) -> None:
        self.flush()
        self._line(f"\n{text}")

    def ask(self, step: Ask) -> None:
        self.flush()
        self._line(f"\n? {step.question}  ({' / '.join(step.choices)})")

    def reveal(self, step: Ask) -> None:
        self.flush()
        self._line(f"= {step.choices[step.answer]}. {step.because}")

    def outcome(self, outcome: ClaimResult) -> None:
        self.flush()
        self._line(f"{self._marks[outcome.passed]} {outcome.finding}")

    def result(self, passed: bool, outcomes: Sequence[ClaimResult], run: str, findings: Sequence[Finding]) -> None:
        self.flush()
        checked = [outcome for outcome in outcomes if outcome.passed is not None]
        held = sum(outcome.passed is True for outcome in checked)
        self._line(f"\n{held} of {len(checked)} expectations hold." if checked else "")
        if findings and not (checked and passed):  # a lesson may make a run ill on purpose
            self._line("\n".join([f"Health: {heading(findings)}", *written(findings)]))
        self._line(f"The run is in {run}; look at it with: rlplay replay {run}")

    def _close(self) -> None:
        if self._open:
            self.out.write("\n")
            self._open = False

    def _line(self, text: str) -> None:
        self._close()
        self.out.write(f"{visible_lines(text)}\n")
        self.out.flush()


class JsonLines(Report):
    """For a program: one object per update, then one with the result."""

    def update(self, number: int, metrics: dict[str, float], seconds: float, timings: dict[str, float]) -> None:
        self._object(UpdateNumbers(update=number, metrics=finite(metrics), seconds=seconds, timings=finite(timings)))

    def result(self, passed: bool, outcomes: Sequence[ClaimResult], run: str, findings: Sequence[Finding]) -> None:
        self.flush()
        found = [Expectation(text=o.text, passed=o.passed, value=number_or_null(o.value)) for o in outcomes]
        self._object(RunResult(passed=passed, expectations=found, run=run, findings=list(findings)))

    def _object(self, content: Printed) -> None:
        self.out.write(f"{json_line(content)}\n")
        self.out.flush()

"""What it costs to ask a trainer of TRL who taught a token, against one of its steps.

    OMP_NUM_THREADS=1 python -m tests.benchmarks.bench_asked [--steps 8] [TRAINER …]

Needs `rlplay[parity]`. The model and the batch of `bench_record.py`: 8 million parameters, 16 answers of 48 tokens in a
step. Seconds are of a thread's processor time. A step's are those of its passes and its optimizer, without sampling:
what a question takes is a part of that. Each step is asked about once, by a token of a recorded answer; where rewards
were all alike, a question needs no passes, and is left out. Keeping is what every step costs from the first question
on; without one it is 0. The disagreement of shares and step is relative to the step, or to a fifth of the sum of all
shares without their signs, if that is larger.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

from transformers import PrinterCallback, TrainerCallback

from rlplay.foreign.recording import Recording
from rlplay.record.trl import RlplayCallback
from rlplay.record.trl.online import Online
from rlplay.record.trl.teachers.kept import KeptUpdate
from rlplay.record.trl.teachers.watch import TeacherWatch
from rlplay.trace.records import Sampled
from rlplay.trace.teachers import Target, Taught, Teach
from tests.benchmarks.bench_record import parser, trainer

TRAINERS = ("GRPO", "RLOO", "DPO", "KTO", "SFT")
KEEPING = ((TeacherWatch, "step_begins"), (TeacherWatch, "ends"), (TeacherWatch, "_clipped"), (Online, "_keep"))
LEFT_OUT = 2


class Asking(TrainerCallback):  # type: ignore[misc]
    """Asks after every step, and keeps the seconds of each step and of each answer."""

    def __init__(self, recorder: RlplayCallback, folder: Path, sampling: list[float]) -> None:
        self.steps: list[float] = []
        self.asked: list[float] = []
        self.answers: list[Taught] = []
        self.bytes = 0
        self._reader = Recording(folder)
        self._recorder, self._sampling, self._began = recorder, sampling, 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """TRL samples before this, or within the step: that is taken off."""
        self._began, self._sampling[0] = time.thread_time(), 0.0

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """The step is taken."""
        self.steps.append(time.thread_time() - self._began - self._sampling[0])

    def on_log(self, *_: Any, **__: Any) -> None:
        """Ask about the update that has just ended."""
        observed = self._recorder._observed
        if observed is None or len(self.answers) == len(self.steps):
            return  # the log at the end
        number = observed.finished
        target = self._target(number)
        began = time.thread_time()
        answer = observed.teachers.taught(Teach(target, number, number), lambda: False)
        self.asked.append(time.thread_time() - began)
        self.answers.append(answer)
        if (kept := observed.teachers._kept) is not None:
            self.bytes = held(kept)

    def _target(self, number: int) -> Target:
        """The third token of the first answer."""
        records = self._reader.fresh()
        sampled = next(each for each in records if isinstance(each, Sampled) and each.update == number)
        begins, group = sampled.prompt_offsets, sampled.group[0]
        prompt = sampled.prompt_ids[begins[group] : begins[group + 1]].tolist()
        return Target(prompt, sampled.token_ids[:3].tolist(), [2])


def held(kept: KeptUpdate) -> int:
    """Bytes of the weights and moments that are kept."""
    vectors = [each for step in kept.steps for each in (step.weights, step.moments, step.squares)]
    return sum(each.nbytes for vector in vectors for each in vector.values())


def measured(kind: str, asked: argparse.Namespace) -> None:
    """Print the cost of one trainer."""
    sampling, keeping = [0.0], [0.0]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        recorder = RlplayCallback(Path(name) / "rec")
        asking = Asking(recorder, Path(name) / "rec", sampling)
        run = trainer(kind, asked, Path(name), [recorder, asking])
        run.remove_callback(PrinterCallback)
        if hasattr(run, "_generate_and_score_completions"):
            run._generate_and_score_completions = timed(run._generate_and_score_completions, sampling)
        for owner, method in KEEPING:
            stack.enter_context(mock.patch.object(owner, method, timed(getattr(owner, method), keeping)))
        run.train()
        numbers = sum(each.numel() for each in run.model.parameters())
    step, known = statistics.median(asking.steps[LEFT_OUT:]), asking.answers[1:]
    learned = [number for number, each in enumerate(known, 1) if each.shares.any()]
    question = statistics.median(asking.asked[number] for number in learned)
    off = max(abs(each.predicted - each.first_order) / max(abs(each.first_order), size(each) / 5) for each in known)
    kept = keeping[0] / len(known)
    print(
        f"{kind:<5} step {step:.3f} s   question {question:.3f} s, {question / step:.2f} of a step   keeping "
        f"{1000 * kept:.1f} ms a step, {kept / step:.1%}; {asking.bytes / 1e6:.0f} MB of {numbers / 1e6:.1f} million "
        f"weights   largest disagreement {off:.1e}, {len(learned)} updates that learned",
        flush=True,
    )


def size(answer: Taught) -> float:
    """The sum of all shares without their signs."""
    return float(abs(answer.shares).sum())


def timed(inner: Any, seconds: list[float]) -> Any:
    """The same function, whose processor seconds are added up."""

    @functools.wraps(inner)
    def call(*values: Any, **options: Any) -> Any:
        began = time.thread_time()
        try:
            return inner(*values, **options)
        finally:
            seconds[0] += time.thread_time() - began

    return call


def main() -> None:
    """Print the cost of each trainer."""
    options = parser(__doc__, TRAINERS)
    for kind in (asked := options.parse_args()).trainers:
        measured(kind, asked)


if __name__ == "__main__":
    main()

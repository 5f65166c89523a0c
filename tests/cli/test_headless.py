"""Runs without a screen, on an engine that only pretends to learn."""

from __future__ import annotations

import asyncio
import io
import json
import math
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from rlplay.algorithms.settings import Settings
from rlplay.engine import headless
from rlplay.engine.run_report import JsonLines, Report, TextReport
from rlplay.engine.run_status import RunStatus
from rlplay.exercises import exercise_called
from rlplay.health.finding import Finding
from rlplay.scenario.expect import ClaimResult
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Job
from rlplay.scenario.script import parse
from rlplay.trace.questions import Tried, TryCode
from rlplay.trace.records import AnyRecord, Evaluated, Finished, Rewound
from tests.recorded import synthetic_started, synthetic_update


class FakeEngine:
    """Its reward after update n is n / 10; it evaluates before the first and at the end of every second update."""

    def __init__(self, job: Job, sink: Callable[[AnyRecord], None]) -> None:
        self.job, self.sink = job, sink
        self.update = 0
        self.calls: list[Any] = []
        self.closed = False
        self.waiting: list[int] = []

    def load(self, progress: Callable[[str, float], None]) -> None:
        progress("loading model pocket", 0.5)
        self.sink(synthetic_started())
        if self.job.resume:
            self.update = 57
            self.sink(Rewound(update=57, abandoned=57))

    def advance(self, until: str, count: int, interrupted: Callable[[], bool]) -> None:
        self.calls.append((until, count))
        if self.update == 0:
            self.evaluate()
        if until != "update":
            self.sink(synthetic_update(self.update + 1, prompts=1, generations=2, length=4)[0])
            return
        for _ in range(count):
            if interrupted():
                return
            self.update += 1
            *records, finished = synthetic_update(self.update, prompts=1, generations=2, length=4)
            assert isinstance(finished, Finished)
            for record in records:
                self.sink(record)
            metrics = {"reward": self.update / 10, "kl": math.nan}
            if self.update % 2 == 0:
                self.evaluate()
            self.sink(Finished(**{**fields(finished), "metrics": metrics, "timings": {"sample": 0.5}, "seconds": 0.5}))

    def evaluate(self) -> None:
        metrics = {"eval_reward": self.update / 20}
        rewards = np.zeros(0, dtype=np.float32)
        self.sink(
            Evaluated(update=self.update, metrics=metrics, prompts=[], completions=[], rewards=rewards, seconds=0.25)
        )

    def set(self, changes: dict[str, Any]) -> None:
        self.calls.append(changes)

    def rewind(self, update: int) -> None:
        self.calls.append(("rewind", update))
        self.sink(Rewound(update=update, abandoned=self.update))
        self.update = update

    def asks(self) -> list[int]:
        return self.waiting

    def prefer(self, pair: int, choice: str) -> None:
        self.calls.append((pair, choice))
        self.waiting = self.waiting[1:]

    def status(self) -> RunStatus:
        return RunStatus(self.update, "sample", Settings(), False)

    def close(self) -> None:
        self.closed = True


def fields(record: Finished) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


class Played:
    """One run of a script on the fake engine."""

    def __init__(
        self,
        script: list[dict[str, Any]],
        updates: int | None = None,
        report: type[Report] = JsonLines,
        resume: bool = False,
    ):
        self.out, self.err = io.StringIO(), io.StringIO()
        self.engines: list[FakeEngine] = []
        job = Job(scenario=load("learn-to-think"), run="here.rlplay", resume=resume)
        self.status = headless.run(job, parse(script), updates, report(self.out, self.err), self.make)
        self.text = self.out.getvalue()

    def make(self, job: Job, sink: Callable[[AnyRecord], None]) -> FakeEngine:
        self.engines.append(FakeEngine(job, sink))
        return self.engines[0]

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


GROWS = {"expect": {"text": "Grows", "metric": "reward", "above": 0.35}}
HELD_OUT = {"expect": {"text": "Held out", "metric": "eval_reward", "at": 4, "minus": 0, "equals": 0.2}}


def test_one_object_per_update_and_the_result_last() -> None:
    played = Played([{"say": "Hello"}, {"run": 4}, GROWS, HELD_OUT])
    *updates, result = played.objects
    assert played.status == 0
    assert [u["update"] for u in updates] == [0, 1, 2, 3, 4]
    assert all(set(u) == {"schema", "update", "metrics", "seconds", "timings"} for u in updates)
    assert updates[0]["metrics"] == {"eval_reward": 0.0}
    assert updates[2]["metrics"] == {"reward": 0.2, "kl": None, "eval_reward": 0.1}
    assert updates[2]["timings"] == {"sample": 0.5, "evaluate": 0.25}
    assert updates[2]["seconds"] == 0.75
    assert result == {
        "schema": "run-result/1",
        "passed": True,
        "expectations": [
            {"text": "Grows", "passed": True, "value": 0.4},
            {"text": "Held out", "passed": True, "value": pytest.approx(0.2)},
        ],
        "run": "here.rlplay",
        "findings": [],
    }
    assert played.engines[0].closed


def test_progress_is_for_a_terminal_only() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for err, text in ((Terminal(), "loading model pocket (50%)"), (io.StringIO(), "")):
        TextReport(io.StringIO(), err).loading("loading model pocket", 0.5)
        assert err.getvalue().removeprefix("rlplay: ").rstrip() == text


def test_a_claim_that_fails_gives_status_1() -> None:
    played = Played([{"run": 3}, GROWS])
    assert played.status == 1
    assert played.objects[-1]["passed"] is False


@pytest.mark.parametrize(
    ("answered", "status", "words"),
    [
        ({"passed": True, "compared": 8, "unit": "answers"}, 0, "the solution agrees with the engine: 8 answers"),
        ({"error": "NameError: x"}, 1, "The solution of kl agrees: NameError: x"),
        (None, 1, "The solution of kl agrees: no answers at hand"),
    ],
)
def test_the_solution_of_a_writing_exercise_is_tried(
    answered: dict[str, Any] | None, status: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers(_engine: FakeEngine, question: TryCode, _interrupted: Any) -> Iterator[Tried]:
        assert question.code == exercise_called("kl").solution
        if answered is None:
            raise ValueError("no answers at hand")
        yield Tried("kl", **answered)

    monkeypatch.setattr(FakeEngine, "answers", answers, raising=False)
    played = Played([{"run": 1}, {"write": "kl"}, {"run": 1}], report=TextReport)
    assert played.status == status
    assert words in played.text + played.err.getvalue()
    assert played.engines[0].update == 2


def test_a_cap_cuts_the_script_and_what_is_not_reached_does_not_fail() -> None:
    played = Played([{"run": 1}, {"run": 3}, GROWS, {"run": 1}], updates=2)
    assert played.status == 0
    assert [o["update"] for o in played.objects[:-1]] == [0, 1, 2]
    assert played.objects[-1]["expectations"] == [{"text": "Grows", "passed": None, "value": None}]
    assert played.engines[0].calls == [("update", 1), ("update", 1)]


def test_a_cap_ends_the_run_before_the_script_takes_back_what_there_is_to_see() -> None:
    played = Played([{"run": 4}, GROWS, {"rewind": 0}, {"set": {"beta": 2}}, {"run": 4}, GROWS], updates=4)
    assert played.engines[0].calls == [("update", 4)]
    assert [claim["passed"] for claim in played.objects[-1]["expectations"]] == [True, None]
    again = Played([{"run": 4}, {"rewind": 0}, {"run": 4}], updates=5)
    assert again.engines[0].calls == [("update", 4), ("rewind", 0), ("update", 1)]


def test_a_cap_that_is_met_exactly_still_checks() -> None:
    assert Played([{"run": 4}, GROWS], updates=4).objects[-1]["expectations"][0]["passed"] is True


def test_every_engine_verb_reaches_the_engine_and_looks_are_passed_over() -> None:
    script = [{"token": 2}, {"lens": "credit"}, {"update": 2}, {"set": {"beta": 0.1}}, {"undo": None}, {"rewind": 0}]
    played = Played(script)
    assert played.engines[0].calls == [
        ("token", 1), ("token", 1), ("update", 2), {"beta": 0.1}, ("rewind", 1), ("rewind", 0),
    ]  # fmt: skip


def test_a_claim_after_going_back_is_about_the_update_that_the_run_is_back_at() -> None:
    unsure = {"expect": {"text": "It is unsure", "lens": "entropy", "of": "mean", "above": 0}}
    back, straight = Played([{"run": 4}, {"rewind": 3}, unsure]), Played([{"run": 3}, unsure])
    assert back.objects[-1]["expectations"] == straight.objects[-1]["expectations"]
    assert Played([{"run": 4}, unsure]).objects[-1]["expectations"] != back.objects[-1]["expectations"]


def test_undo_gives_up_an_update_under_way_before_it_takes_back_a_finished_one() -> None:
    undos = [{"undo": None}] * 4
    played = Played([{"update": 2}, {"phase": 1}, *undos])
    assert played.engines[0].calls[2:] == [("rewind", 2), ("rewind", 1), ("rewind", 0)]
    assert "start of the run" in played.err.getvalue()


def test_a_reward_function_may_run_an_event_loop_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    original = FakeEngine.advance

    def advance(self: FakeEngine, until: str, count: int, interrupted: Callable[[], bool]) -> None:
        asyncio.run(asyncio.sleep(0))
        original(self, until, count, interrupted)

    monkeypatch.setattr(FakeEngine, "advance", advance)
    assert Played([{"run": 4}, GROWS]).status == headless.HOLDS


def test_an_empty_script_runs_all_updates() -> None:
    played = Played([], updates=3)
    assert [o["update"] for o in played.objects[:-1]] == [0, 1, 2, 3]


@pytest.mark.parametrize(("updates", "last"), [(None, 60), (2, 59), (9, 66)])
def test_a_resumed_run_goes_on_to_its_end_or_by_so_many_updates(updates: int | None, last: int) -> None:
    played = Played([], updates, resume=True)
    assert played.status == 0
    assert [o["update"] for o in played.objects[:-1]] == list(range(58, last + 1))


def test_lines_for_a_person() -> None:
    ask = {"question": "Up?", "choices": ["yes", "no"], "answer": "yes", "because": "It grows."}
    played = Played([{"say": "Hello"}, {"ask": ask}, {"run": 2}, GROWS, {"say": "Bye"}], report=TextReport)
    lines = [line for line in played.text.splitlines() if line]
    assert lines[0] == "Hello"
    assert lines[1].startswith("? Up?")
    assert lines[2].startswith("update   0")
    assert lines[4].startswith("update   2  reward 0.200")
    assert "held out 0.100" in lines[4]
    assert lines[5].endswith(" Grows: 0.2 (expected > 0.35)")
    assert lines[6:8] == ["= yes. It grows.", "Bye"]
    assert lines[8] == "0 of 1 expectations hold."
    assert "\x1b" not in played.text


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_and_says_where(monkeypatch: pytest.MonkeyPatch, sent: signal.Signals) -> None:
    original = FakeEngine.advance

    def advance(self: FakeEngine, until: str, count: int, interrupted: Callable[[], bool]) -> None:
        original(self, until, min(count, 1), interrupted)
        os.kill(os.getpid(), sent)

    monkeypatch.setattr(FakeEngine, "advance", advance)
    before = signal.getsignal(sent)
    played = Played([{"run": 3}, GROWS])
    assert played.status == 130
    assert played.engines[0].closed
    assert "rlplay run --resume here.rlplay" in played.err.getvalue()
    assert [o["schema"] for o in played.objects] == ["run-update/1", "run-update/1"]
    assert signal.getsignal(sent) is before


def test_ctrl_c_while_it_loads_ends_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reached = []

    def load(self: FakeEngine, progress: Callable[[str, float], None]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        reached.append("the end of a long download")

    monkeypatch.setattr(FakeEngine, "load", load)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            Played([{"run": 3}])
    finally:
        signal.signal(signal.SIGINT, before)
    assert not reached


def test_an_engine_that_fails_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    def refuse(_engine: FakeEngine, _changes: dict[str, Any]) -> None:
        raise ValueError("not now")

    def close(engine: FakeEngine) -> None:
        closed.append(engine)

    monkeypatch.setattr(FakeEngine, "close", close)
    monkeypatch.setattr(FakeEngine, "set", refuse)
    with pytest.raises(ValueError, match="not now"):
        Played([{"set": {"beta": 1}}])
    assert closed


@pytest.mark.parametrize(("holds", "explained"), [(True, False), (False, True), (None, True)])
def test_what_is_wrong_is_explained_unless_the_claims_hold(holds: bool | None, explained: bool) -> None:
    out = io.StringIO()
    found = Finding("gamed", "The reward is being gamed", "It rose.", "The policy earns by something else.", "Look.")
    outcomes = [] if holds is None else [ClaimResult("claim", holds, 0.5, "claim: 0.5")]
    TextReport(out, io.StringIO()).result(holds is not False, outcomes, "run.rlplay", [found])
    assert ("Health: 1 problem found." in out.getvalue()) == explained
    assert ("The reward is being gamed" in out.getvalue()) == explained

"""What one can ask a run between updates has the answers of a CPU, and changes nothing."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest

from rlplay.engine.teachers import along
from rlplay.exercises import exercise_called
from rlplay.trace.questions import (
    Continue,
    Estimate,
    Judge,
    Neighbours,
    Peek,
    Prefix,
    Reach,
    ReadLayers,
    Recall,
    TryCode,
    Weigh,
    WhatIf,
)
from rlplay.trace.rehearsals import Rehearse
from rlplay.trace.teachers import TakeAway, Target, Teach, TeachCourse
from tests.engine.test_lora import LORA
from tests.gpu.play import EXACT, GPU, Run, run, same

PREFIX = Prefix("What is 2+2?", [70, 71])
TARGET = Target([2, 70, 71], [72, 73], [0, 1])
QUESTIONS: dict[str, Any] = {
    "peek": Peek(PREFIX),
    "continue": Continue(PREFIX, count=6),
    "greedy": Continue(PREFIX, "reference", greedy=True),
    "estimate": Estimate(PREFIX, count=24),
    "recall": Recall(PREFIX, [72, 73]),
    "weigh": Weigh(1),
    "layers": ReadLayers(PREFIX, 72, 1),
    "neighbours": Neighbours(70, 1),
    "reach": Reach(0, 1, [0.0, 2.0]),
    "take away": TakeAway(TARGET, 2, [0, 1, 2]),
    "take away earlier": TakeAway(TARGET, 1, [0, 3]),
    "rehearse": Rehearse(2, 1, [{}, {"beta": 0.1}]),
    "try code": TryCode("kl", exercise_called("kl").solution),
    "what if": WhatIf({"epsilon": 0.1, "beta": 0.1}),
}


def answers(played: Run, question: Any) -> list[Any]:
    found = played.driver.answers(question, lambda: False)
    return [msgspec.to_builtins(answer, enc_hook=np.ndarray.tolist) for answer in found]


def alike(one: Any, other: Any, where: str = "answer") -> None:
    """Numbers differ by rounding, everything else is equal."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one.keys() - {"seconds", "timings"}:
            alike(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for at, (a, b) in enumerate(zip(one, other, strict=True)):
            alike(a, b, f"{where}[{at}]")
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-3, abs=1e-4, nan_ok=True), where
    else:
        assert one == other, where


@pytest.fixture(autouse=True)
def no_forward_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in's kernels crash in it."""
    monkeypatch.setattr(along, "_exactly", lambda *_: None)


@cache
def runs() -> tuple[Run, Run]:
    return run(GPU).go(2), run("cpu").go(2)


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_answer_is_that_of_the_cpu(name: str) -> None:
    gpu, cpu = (answers(played, QUESTIONS[name]) for played in runs())
    assert gpu
    alike(gpu, cpu)


def test_the_weights_of_two_snapshots_are_compared_as_on_a_cpu() -> None:
    alike(*(answers(played, Weigh(2)) for played in runs()))


@pytest.mark.parametrize("given", [{}, {"num_iterations": 2}, {"scenario": LORA}], ids=str)
def test_what_teachers_did_is_that_of_the_cpu(given: dict[str, Any]) -> None:
    """Also in steps that are taken again, and of an earlier update. A share by itself may be rounding: P is large where
    gradients cancel."""
    gpu, cpu = (run(device, **given).go(2) for device in (GPU, "cpu"))
    for by in (1, 2):
        (found,), (expected,) = (list(each.driver.answers(Teach(TARGET, 2, by), lambda: False)) for each in (gpu, cpu))
        assert found.predicted == pytest.approx(found.first_order, rel=0.02, abs=1e-3)
        assert found.first_order == pytest.approx(expected.first_order, rel=0.05, abs=1e-3)
        assert found.measured == pytest.approx(expected.measured, rel=0.05, abs=1e-3)
        assert found.shares.any()
    (*_, gone), (*_, way) = (list(each.driver.answers(TeachCourse(TARGET), lambda: False)) for each in (gpu, cpu))
    assert [move.measured for move in gone.moves] == pytest.approx([move.measured for move in way.moves], abs=1e-3)


def test_a_judgement_is_that_of_the_cpu() -> None:
    found = []
    for device in (GPU, "cpu"):
        played = run(device, reward="", algorithm="dpo", labeller="user").go(1)
        assert played.driver.asks() == [0, 1, 2]
        found.append(answers(played, Judge(0)))
    alike(*found)


def test_questions_change_nothing() -> None:
    asked, plain = run(GPU, scenario=EXACT).go(2), run(GPU, scenario=EXACT).go(3)
    for question in [*QUESTIONS.values(), Teach(TARGET, 2, 1), TeachCourse(TARGET)]:
        assert answers(asked, question)
    same(asked.go(1), plain, logprobs=0, step=0)


def test_a_reference_that_is_the_policy_without_its_adapters_is_not_sampled_as_the_policy() -> None:
    found = []
    for device in (GPU, "cpu"):
        played = run(device, scenario=LORA, learning_rate=2e-2).go(2)
        found.append([answers(played, Continue(PREFIX, writer, count=6)) for writer in ("policy", "reference")])
    alike(*found)
    assert found[0][0] != found[0][1]

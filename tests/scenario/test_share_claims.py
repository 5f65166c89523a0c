"""Claims about who taught a token: what the engine is asked for them, and what they read in its answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rlplay.scenario.claim import parse_expect
from rlplay.scenario.expect import ClaimResult, check
from rlplay.scenario.measure import Asked, nobody
from rlplay.scenario.script import parse_step
from rlplay.trace.history import History
from rlplay.trace.targets import token_target
from rlplay.trace.teachers import AnyTeachingAnswer, TakeAway, TakenAway, Taught, Teach, refuse_teaching
from tests.trace.test_chosen_answers import asked as batch

UPDATE = batch()
SHARES = np.array([-1, 0.5, -2, 0, 3, 0.25, 3, 0.25, -0.5, 0], dtype=np.float32)
OF_4 = {"share": "4", "prompt": "What is 2+3?", "above": -99}


class Engine:
    """Answers with made-up numbers, and keeps what it was asked."""

    def __init__(self) -> None:
        self.questions: list[Teach | TakeAway] = []

    def __call__(self, question: Teach | TakeAway) -> AnyTeachingAnswer:
        self.questions.append(question)
        if isinstance(question, TakeAway):
            return TakenAway(question.target, 1, question.tokens, before=-3.0, after=-2.5, without=-2.75)
        batch = float(SHARES.sum())
        return Taught(question.target, 1, 1, before=-3.0, after=-2.5, shares=SHARES, batch=batch, earlier=0.125,
                      rest={"weight decay": -0.5})  # fmt: skip


def outcome(asked: Asked, **claim: Any) -> ClaimResult:
    return check(parse_expect({"text": "It moved", **OF_4, **claim}), History(), UPDATE, asked)


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        ({"of": "measured"}, 0.5),
        ({"of": "batch"}, 3.5),
        ({"of": "earlier"}, 0.125),
        ({"of": "predicted"}, 3.125),
        ({"of": "same prompt"}, -2.5),
        ({"of": "other prompts"}, 6.0),
        ({"of": "other prompts", "answers": "4"}, 6.5),
    ],
)
def test_a_claim_reads_a_part_of_what_moved_the_token(claim: dict[str, Any], value: float) -> None:
    engine = Engine()
    found = outcome(engine, **claim)
    assert found.value == pytest.approx(value)
    assert found.passed
    assert engine.questions == [Teach(token_target(UPDATE, 1, 0), 1, 1)], 'the answer that began with "4"'


def test_a_token_that_nobody_wrote_is_asked_about_as_a_candidate() -> None:
    engine = Engine()
    outcome(engine, share="5", prompt="What is 2+2?")
    (question,) = engine.questions
    sampled = UPDATE.sampled
    assert sampled is not None
    assert sampled.pieces[question.target.answer_ids[0]] == "5"
    assert question.target.prompt_ids == [2, 3]


def test_without_some_answers_is_compared_with_what_was_measured() -> None:
    engine = Engine()
    found = outcome(engine, without="other prompts", answers="4", above=None, below=-0.1)
    assert engine.questions == [TakeAway(token_target(UPDATE, 1, 0), 1, [4, 5, 6, 7])]
    assert (found.value, found.passed) == (pytest.approx(-0.25), True)
    assert found.finding == "It moved: 0.5 → 0.25 nats (−0.25, expected < −0.1)"


def test_what_was_not_asked_is_neither_right_nor_wrong() -> None:
    found = outcome(nobody)
    assert (found.passed, found.value) == (None, None)
    assert "not asked" in found.finding


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"prompt": "What is 9+9?"}, "did not ask 'What is 9+9?'"),
        ({"share": "nine"}, "no candidate there is 'nine'"),
        ({"of": "other prompts", "answers": "nine"}, "no answer of update 1 is among them"),
        ({"without": "other prompts", "answers": "nine"}, "no answer of update 1 is among them"),
    ],
)
def test_a_claim_that_has_no_number_fails_and_says_why(claim: dict[str, Any], words: str) -> None:
    found = outcome(Engine(), **claim)
    assert found.passed is False
    assert words in found.finding


def test_a_claim_says_why_the_engine_refused() -> None:
    found = outcome(lambda question: refuse_teaching(question, "the optimizer began anew"))
    assert found.passed is False
    assert "the optimizer began anew" in found.finding


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"prompt": ""}, "a claim about a share needs prompt"),
        ({"of": "everybody"}, "of of expect takes measured or predicted"),
        ({"without": "me"}, "without of expect takes same prompt or other prompts; got 'me'"),
        ({"answers": "4"}, "answers of expect needs of or without: same prompt or other prompts"),
        ({"share": 4}, "share of expect takes text; got 4"),
    ],
)
def test_a_claim_that_cannot_be_meant_is_refused(claim: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_expect({"text": "It moved", **OF_4, **claim})


def test_an_exercise_is_not_solved_by_a_share() -> None:
    claim = {"text": "It moved", **OF_4}
    task = {"say": "Do it.", "expect": [claim], "hint": "So.", "solution": [{"update": 1}]}
    with pytest.raises(ValueError, match="exercise takes no claim about a share"):
        parse_step({"exercise": task})

"""The verifiers on hand-written answers, odd ones included."""

from __future__ import annotations

import pytest

from rlplay.tasks.verifiers import correct, mentioned, shown_steps, worked


@pytest.mark.parametrize(
    ("completion", "strict", "loose"),
    [
        ("11", 1.0, 1.0),
        ("2*3=6. 5+6=11. The answer is 11.", 1.0, 1.0),
        ("2*3=6. 5+6=11. The answer is 12.", 0.0, 1.0),
        ("It is 9, 10, 11 or 12.", 0.0, 1.0),
        ("", 0.0, 0.0),
        ("I do not know.", 0.0, 0.0),
        ("-11", 0.0, 0.0),
        ("20-9=11", 1.0, 1.0),
        ("111", 0.0, 0.0),
        ("1 1", 0.0, 0.0),
        ("011", 1.0, 1.0),
        ("11.0", 1.0, 1.0),
        ("11.5", 0.0, 0.0),
        ("11" * 5000, 0.0, 0.0),
        ("0" * 5000 + "11", 1.0, 1.0),
        ("\u0661\u0661", 0.0, 0.0),
        ("\uff11\uff11", 0.0, 0.0),
        ("x¹¹", 0.0, 0.0),
        ("11 😀", 1.0, 1.0),
        ([{"role": "assistant", "content": "The answer is 11."}], 1.0, 1.0),
        ([{"role": "assistant", "content": "calc(5+6)"}, {"role": "user", "content": "11"}], 0.0, 0.0),
        ([], 0.0, 0.0),
    ],
)
def test_strict_and_loose_verifier(completion: object, strict: float, loose: float) -> None:
    columns = {"prompts": ["?"], "completions": [completion], "answer": [11], "names_of_other_columns": [None]}
    assert correct(**columns) == [strict]
    assert mentioned(**columns) == [loose]


def test_a_negative_answer_needs_its_sign() -> None:
    assert correct(["?"] * 3, ["-3", "3", "5-3"], answer=[-3, -3, -3]) == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("2*3=6. 5+6=11. The answer is 11.", 1.0),
        ("2*3=6. 5+6=12. The answer is 12.", 0.5),
        ("2*3=60. 15+6=11.", 0.0),
        ("The answer is 11.", 0.0),
        ("", 0.0),
    ],
)
def test_steps_count_as_written(completion: str, score: float) -> None:
    assert shown_steps(["?"], [completion], steps=[["2*3=6", "5+6=11"]]) == [score]


@pytest.mark.parametrize(
    ("completion", "scores"),
    [
        ("2*3=6. 5+6=11. The answer is 11.", [(5, 0.5), (13, 0.5)]),
        ("5+6=11. 2*3=6.", [(6, 0.0), (13, 0.5)]),
        ("2*3=6, 2*3=6, 5+6=12", [(5, 0.5), (12, 0.0), (20, 0.0)]),
        ("The answer is 11.", []),
    ],
)
def test_every_equation_is_scored_where_it_ends(completion: str, scores: list[tuple[int, float]]) -> None:
    assert worked(["?"], [completion], steps=[["2*3=6", "5+6=11"]]) == [scores]

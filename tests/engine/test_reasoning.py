"""Where reasoning steps end."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlplay.engine.reasoning import step_ends


@pytest.mark.parametrize(
    ("texts", "steps"),
    [
        (["2", "*", "3", "=", "6", ".", " ", "5", "+", "6", "=", "11", ".", " The", " answer", ".", ""], 3),
        (["3", ".", "5", " is", " half", " of", " 7"], 1),
        (["So", ":", "\n", "a", "=", "1", "\n\n", "b"], 3),
        (["\n", "Yes", "!", "\n"], 1),
        (['"', "No", "?", '"', " he", " said", ".", "\n", "\n", "End"], 3),
        (["一", "。", "二", "。", ""], 2),
        (["one. two. three", " four"], 2),
        ([" "], 1),
        ([""], 1),
    ],
)
def test_lines_and_sentences_are_steps(texts: list[str], steps: int) -> None:
    ends = step_ends(texts)
    assert len(ends) == steps
    assert ends[-1] == len(texts) - 1


def test_a_step_begins_after_the_token_that_ends_the_last() -> None:
    assert step_ends(["6", ".", " ", "7", ".", " 8", "", ""]) == [1, 4, 7]


@given(st.lists(st.text("a1. \n?!。)", max_size=3), min_size=1, max_size=12))
def test_steps_cover_the_answer_in_order_without_blanks(texts: list[str]) -> None:
    ends = step_ends(texts)
    assert ends == sorted(set(ends))
    assert ends[-1] == len(texts) - 1
    begins = [0, *(end + 1 for end in ends)]
    steps = ["".join(texts[a:b]) for a, b in pairwise(begins)]
    assert len(steps) == 1 or all(step.strip() for step in steps)

"""What surrounds training: each check at its threshold, and what it names."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rlplay.health import ending_checks as ending
from rlplay.health import setup_checks as setup
from tests.health.evidence import evidence, seen_at


def test_a_mark_that_the_tokenizer_cuts() -> None:
    found = setup.template(evidence(broken_marks={"<|a|>": 3, "<|b|>": 5, "<|c|>": 4}))
    assert found is not None
    assert "mark <|b|> into 5 pieces" in found.evidence
    assert found.place is not None
    assert (found.place.update, found.place.answer, found.place.token) == (6, 0, 0)


@pytest.mark.parametrize(
    ("fields", "title", "words"),
    [
        ({"empty": [8, 0]}, "The model ends its answers at once", "8 of 16 answers of update 1 hold only the token"),
        ({"empty": [7, 16]}, "", ""),
        ({"empty": 16, "walks": True}, "", ""),
        ({"empty": 16, "tokens": False}, "", ""),
        (
            {"openings": [Counter({"<|a|>": 8, "<|b|>": 5}), Counter()]},
            "Answers begin with a mark of the template",
            "8 of 16 answers of update 1 begin with <|a|>.",
        ),
        ({"openings": [Counter({"<|a|>": 7}), Counter({"<|a|>": 16})]}, "", ""),
        ({}, "", ""),
    ],
)
def test_a_template_that_does_not_open_the_answer(fields: dict[str, Any], title: str, words: str) -> None:
    found = setup.template(evidence(2, **fields))
    assert (found.title if found else "") == title
    if found is not None:
        assert found.evidence.startswith(words)
        assert found.place is not None
        assert (found.place.update, found.place.answer) == (1, 0)


def test_answers_of_which_none_ends() -> None:
    run = evidence(
        2,
        cut=16,
        limit=32,
        tails=[Counter({" so": 3, " a": 4}), Counter({" so": 5})],
        marks_within=Counter({"</s>": 7}),
    )
    found = ending.no_end(run)
    assert found is not None
    assert found.evidence == (
        "All 32 answers so far were cut at 32 tokens; not one ended. The commonest last words are “so”, in 8 of them."
    )
    assert (found.settings, seen_at(found)) == (("max_completion_length",), (2, "cut"))
    words = ending.no_end(evidence(2, cut=16, tokens=False, tails=Counter({"so": 1})))
    assert words is not None
    assert "were cut; not one ended" in words.evidence
    marked = ending.no_end(
        evidence(
            2, cut=16, marks_within=[Counter({"</s>": 7, "<s>": 9}), Counter({"</s>": 9})], ends={7: "<|z|>", 3: "</a>"}
        )
    )
    assert marked is not None
    assert marked.evidence.endswith(
        "not one ended. 16 of them contain </s>, and go on. The run waits for </a> (id 3), <|z|> (id 7)."
    )
    assert (marked.settings, seen_at(marked)) == ((), (2, "mark"))
    silent = ending.no_end(evidence(2, cut=16, marks_within=Counter({"</s>": 8}), places={}))
    assert silent is not None
    assert silent.evidence.endswith("and go on.")
    assert silent.place is None
    assert ending.no_end(evidence(1, cut=16, tails=Counter(" "))) is None
    assert ending.no_end(evidence(2, cut=[16, 15], tails=Counter(" "))) is None


@pytest.mark.parametrize(
    ("fields", "costs", "said"),
    [
        ({}, True, ""),
        ({"ended_earned": 1.0}, True, ""),
        ({"cut_earned": 1.0}, True, ""),
        ({"ended_earned": [9, 9, 9, 0.5, 1.0, None], "cut_earned": 0.5}, True, "0.5 on average, those that ended 0.75"),
        ({"ended_earned": [9, 9, 9, 0.5, 0.5, 0.5], "cut_earned": [9, 9, 9, None, 0.4, 0.6]}, False,
         "0.5 on average, those that ended 0.5"),
    ],
)  # fmt: skip
def test_cut_answers_cost_something_or_not(fields: dict[str, Any], costs: bool, said: str) -> None:
    run = evidence(cut=5, limit=24, **fields)
    found = ending.cut_costs(run) if costs else ending.cut_anyway(run)
    assert found is not None
    assert found.evidence == "5 of 16 answers were cut at 24 tokens." + (said and f" They earned {said}.")
    assert (found.settings, seen_at(found)) == (("max_completion_length",), (6, "cut"))
    assert (ending.cut_anyway(run) if costs else ending.cut_costs(run)) is None
    for check in (ending.cut_costs, ending.cut_anyway):
        assert check(evidence(cut=[9, 9, 9, 9, 9, 6], answers=20, **fields)) is None, "30 % is usual"
        assert check(evidence(1, cut=4, answers=4, **fields)) is None, "four answers are few"


def test_of_small_batches_the_last_sixteen_answers_count() -> None:
    small = {"answers": 4, "limit": 24}
    assert ending.cut_costs(evidence(cut=[4, 4, 2, 1, 1, 0], **small)) is None, "4 of 16"
    found = ending.cut_costs(evidence(cut=[4, 4, 2, 2, 1, 1], **small))
    assert found is not None
    assert found.evidence == "6 of the last 16 answers were cut at 24 tokens."


def test_a_temperature_that_is_too_high() -> None:
    open_ended = {"entropy": [0.0, 0.0, 0.0, 2.9, 3.0, 3.1]}
    found = setup.hot(evidence(series=open_ended, settings={"temperature": 1.21}))
    assert found is not None
    assert (
        "At temperature 1.21 the entropy is 3 nats: each token is as open as a draw from 20 equally" in found.evidence
    )
    assert (found.settings, seen_at(found)) == (("temperature",), (6, "longest"))
    assert setup.hot(evidence(series=open_ended, settings={"temperature": 1.2})) is None
    assert setup.hot(evidence(series={"entropy": [9, 9, 9, 2.9, 3.0, 3.0]}, settings={"temperature": 2.0})) is None
    assert setup.hot(evidence(settings={"temperature": 2.0})) is None


@pytest.mark.parametrize(("different", "alike", "named"), [(8, 8, True), (8, 4, True), (8, 3, False), (1, 0, False)])
def test_a_template_that_drops_the_question(different: int, alike: int, named: bool) -> None:
    found = setup.template(evidence(prompts_alike=(different, alike)))
    assert (found is not None) == named
    if found is not None:
        assert found.evidence.startswith(f"{alike} of {different} different prompts of update 6 ")

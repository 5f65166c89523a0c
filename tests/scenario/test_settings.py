"""Refusals of settings: in plain words, with what is allowed and what was given."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.setting_values import check, decoded, exact, fitting, takes, written
from rlplay.algorithms.settings import UNKNOWN, Settings


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("learning_rate", "abc", "learning_rate is a number from 0 to 1, e.g. 0.0004; got 'abc'"),
        ("learning_rate", 2.0, "learning_rate is a number from 0 to 1, e.g. 0.0004; got 2.0"),
        ("num_prompts", "2.5", "num_prompts is a whole number from 1 to 1024, e.g. 8; got '2.5'"),
        ("num_prompts", 0, "num_prompts is a whole number from 1 to 1024, e.g. 8; got 0"),
        ("dynamic_sampling", "maybe", "dynamic_sampling is on or off; got 'maybe'"),
        ("epsilon_high", "abc", "epsilon_high is a number from 0 to 10, or none; got 'abc'"),
        ("returns", "gea", "returns is one of broadcast, to_go, vine, gae; got 'gea'; did you mean 'gae'?"),
        ("returns", "xyzzy", "returns is one of broadcast, to_go, vine, gae; got 'xyzzy'"),
        ("reward_weights", "correct", "a weight for each reward by name, e.g. {correct: 1}; got 'correct'"),
        ("algorithm", None, "algorithm is the name of an algorithm, e.g. grpo; got None"),
        ("bta", 1, "unknown setting 'bta'; did you mean 'beta'?"),
    ],
)
def test_a_refusal_says_what_is_allowed_and_what_was_given(name: str, value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words) + "$"):
        check(name, value)


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("beta", ".1", 0.1),
        ("beta", "+.5", 0.5),
        ("beta", "1e-4", 1e-4),
        ("beta", "2.", 2.0),
        ("entropy_coef", "-.5", -0.5),
        ("entropy_coef", "−.5", -0.5),
        ("epsilon_high", ".28", 0.28),
        ("epsilon_high", "none", None),
        ("num_prompts", "+8", 8),
    ],
)
def test_numbers_are_read_as_people_write_them(name: str, typed: str, value: float | None) -> None:
    assert check(name, typed) == value


@pytest.mark.parametrize("typed", ["nan", "inf", "-inf", "−", ".", "", "1,5"])
def test_what_is_no_number_of_the_range_is_refused(typed: str) -> None:
    with pytest.raises(ValueError, match="beta is a number from 0 to 10"):
        check("beta", typed)


@pytest.mark.parametrize("name", KNOBS)
def test_no_python_is_spoken(name: str) -> None:
    assert not re.search(r"\b(float|int|bool|dict|str|None|NoneType)\b", takes(name))


@pytest.mark.parametrize("name", KNOBS)
def test_what_is_given_as_an_example_is_taken(name: str) -> None:
    if example := re.search(r"e\.g\. (.+)$", takes(name)):
        check(name, example[1])
    if takes(name).endswith("or none"):
        assert check(name, "none") is None
    assert check(name, written(getattr(Settings(), name))) == getattr(Settings(), name)


def test_recorded_settings_are_read_as_far_as_this_version_knows_them():
    recorded = {"epsilon": 1, "baseline": "from the future", "unheard_of": 3, "surrogate": "my.py:f"}
    assert decoded(recorded) == Settings(algorithm="", epsilon=1.0, surrogate="my.py:f")
    assert recorded.keys() == {"epsilon", "baseline", "unheard_of", "surrogate"}
    assert decoded({}) == UNKNOWN
    assert not UNKNOWN.axes_known
    with pytest.raises(ValueError, match="num_prompts"):
        decoded({"num_prompts": 2.5})


def test_settings_to_train_on_have_to_be_those_of_this_version():
    for recorded in ({"unheard_of": 3}, {"baseline": "from the future"}, {"num_prompts": 2.5}):
        with pytest.raises(ValueError, match=next(iter(recorded))):
            exact(recorded)


def test_what_another_program_says_is_taken_as_far_as_its_type_fits():
    assert fitting({"warmup_steps": 0.1, "beta": 0.5, "top_k": None}) == {"beta": 0.5}

"""Script steps: parsed into frozen structs, or refused in one line."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlplay.scenario.script import Ask, Change, RewindStep, Say, ScreenVerb, Train, parse, parse_step
from rlplay.verbs import VERBS

CLAIM = {"text": "It learns", "metric": "reward", "above": 0}
QUESTION = {"question": "Up or down?", "choices": ["up", "down"], "answer": "down", "because": "Gravity."}


@pytest.mark.parametrize(
    ("entry", "step"),
    [
        ({"say": "Look\n  here."}, Say("Look here.")),
        ({"ask": QUESTION}, Ask("Up or down?", ["up", "down"], 1, "Gravity.")),
        ({"run": 25}, Train("update", 25)),
        ({"update": None}, Train("update", 1)),
        ({"token": 3}, Train("token", 3)),
        ({"phase": 2}, Train("phase", 2)),
        ({"step": 1}, Train("step", 1)),
        ({"set": {"beta": "0.1", "num_prompts": 4}}, Change({"beta": 0.1, "num_prompts": 4})),
        ({"undo": None}, RewindStep(None)),
        ({"rewind": 0}, RewindStep(0)),
        ({"lens": "credit"}, ScreenVerb("lens", "credit")),
        ({"lens": "auto"}, ScreenVerb("lens", "auto")),
        ({"focus": {"completion": 0, "token": 2}}, ScreenVerb("focus", {"completion": 0, "token": 2})),
        ({"older": None}, ScreenVerb("older", None)),
        ({"probe": None}, ScreenVerb("probe", None)),
        ({"probe": {"prompt": "Hi", "then": "value"}}, ScreenVerb("probe", {"prompt": "Hi", "then": "value"})),
    ],
)
def test_steps(entry: dict[str, Any], step: object) -> None:
    assert parse_step(entry) == step


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "one verb"),
        ({"say": "a", "run": 1}, "one verb"),
        ("run", "one verb"),
        ({"tour": None}, "plays a script"),
        ({"rnu": 1}, "did you mean"),
        ({"run": 0}, "1 or more"),
        ({"run": True}, "whole number"),
        ({"rewind": None}, "whole number"),
        ({"undo": 2}, "takes no argument"),
        ({"older": 2}, "takes no argument"),
        ({"say": "  "}, "takes text"),
        ({"set": {}}, "mapping"),
        ({"set": {"beta": -1}}, "got -1"),
        ({"lens": "colour"}, "unknown lens"),
        ({"stage": "maps"}, "unknown stage 'maps'; did you mean 'map'?"),
        ({"stage": None}, "unknown stage"),
        ({"maths": "on"}, "maths takes true or false; got 'on'"),
        ({"curve": "entrpy"}, "did you mean 'entropy'"),
        ({"curve": "optimal mpa"}, "did you mean 'optimal map'"),
        ({"curve": None}, "takes text"),
        ({"knobs": "bta"}, "did you mean 'beta'"),
        ({"knobs": ["beta"]}, "unknown setting"),
        ({"focus": {"row": 1}}, "completion and token"),
        ({"probe": "Hi"}, "mapping with some of prompt"),
        ({"probe": {"promt": "Hi"}}, "did you mean 'prompt'"),
        ({"probe": {"token": True}}, "token of probe takes a value of type int"),
        ({"probe": {"then": "walk"}}, "one of samples"),
        ({"ask": QUESTION | {"answer": "left"}}, "not one of its choices"),
        ({"ask": {"question": "Why?"}}, "mapping with question"),
        ({"ask": QUESTION | {"choices": ["up"]}}, "2 to 9 choices"),
    ],
)
def test_mistakes(entry: Any, words: str) -> None:
    with pytest.raises(ValueError, match="script step 1: ") as caught:
        parse([entry])
    assert words in str(caught.value)


WORDS = st.text("ab1 ", max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*VERBS, "other"]), VALUES, max_size=2))
def test_any_mapping_is_a_step_or_an_explained_error(entry: dict[str, Any]) -> None:
    with contextlib.suppress(ValueError):
        assert parse_step(entry) is not None


@pytest.mark.parametrize("text", ["Try it with a larger beta.", "Done. Now try another colour."])
def test_what_the_learner_should_try_is_a_step_that_waits_for_it(text: str) -> None:
    with pytest.raises(ValueError, match="make it a step you or exercise"):
        parse_step({"say": text})


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"you": "update"}, "say and one verb"),
        ({"you": {"say": "Do.", "update": 1, "lens": "credit"}}, "say and one verb"),
        ({"you": {"say": "Do.", "ask": {}}}, "ask takes a mapping"),
        ({"you": {"say": "Do.", "say it": 1}}, "unknown verb"),
        ({"exercise": {"say": "Do."}}, "say, expect, hint, solution"),
        ({"exercise": {"say": "Do.", "expect": [], "hint": "h", "solution": [{"undo": None}]}}, "at least one entry"),
        (
            {"exercise": {"say": "Do.", "expect": [CLAIM], "hint": "h", "solution": [{"say": "x"}]}},
            "steps that move the run",
        ),
        ({"write": "reinfroce"}, "unknown exercise 'reinfroce'; did you mean 'reinforce'"),
        ({"write": {"say": "Write."}}, "the name of an exercise, or a mapping with say and exercise"),
        ({"write": {"exercise": "kl", "code": "import os"}}, "the name of an exercise, or a mapping with say"),
        ({"watch": {"metric": "reward", "above": 1}}, "metric, above or below, and say"),
        ({"watch": {"say": "x", "probability": "4", "above": 1}}, "metric, above or below, and say"),
    ],
)
def test_mistakes_in_what_the_learner_does_are_named(step: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_step(step)

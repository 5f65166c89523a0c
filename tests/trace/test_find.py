"""Finding answers and tokens: the language, and what it finds, against plain Python."""

import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlplay.trace.answers import measures
from rlplay.trace.find import Condition, Query, find, names, parse, unknown
from rlplay.trace.lenses import LENSES
from rlplay.trace.update import Update
from tests.recorded import synthetic_update

RELATIONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
NAMES = st.sampled_from(["reward", "length", "entropy", "credit", "correct"])


def whole(steps: int = 4) -> Update:
    update = Update(1)
    for record in synthetic_update(1, steps=steps):
        update.add(record)
    return update


@given(
    st.lists(st.tuples(NAMES, st.sampled_from([*RELATIONS, "=", "!="]), st.floats(-1e6, 1e6)), min_size=1, max_size=4),
    st.sampled_from([" ", "  ", ", ", " and "]),
    st.sampled_from(["", " "]),
)
def test_what_is_written_is_what_is_read(conditions, between, around):
    typed = between.join(f"{name}{around}{relation}{around}{number}" for name, relation, number in conditions)
    query = parse(typed)
    assert query is not None
    assert [(c.name, c.relation, c.number) for c in query.conditions] == conditions
    assert not query.text


@given(st.text(max_size=30))
def test_whatever_is_typed_is_read_or_refused_in_a_line(typed):
    query, refused = None, ""
    try:
        query = parse(typed)
    except ValueError as error:
        refused = str(error)
    assert (query is None) == (not typed.strip() or bool(refused))
    assert query is None or bool(query.conditions) != bool(query.text)
    assert not refused or ("\n" not in refused and "write one like reward<0.5" in refused)


@pytest.mark.parametrize(
    ("typed", "name", "relation", "number"),
    [
        ("ratio>1.2", "importance_ratio", ">", 1.2),
        ("Clipped", "clip_state", "!=", 0.0),
        ("KL > .1", "ref_kl", ">", 0.1),
        ("p<1e-3", "probability", "<", 0.001),
        ("H≥1", "entropy", ">=", 1.0),
        ("advantage ≤ −2", "advantage", "<=", -2.0),
        ("advantages > 0", "advantages", ">", 0.0),
        ("w==1", "importance_ratio", "=", 1.0),
        ("correct != 1", "correct", "!=", 1.0),
    ],
)
def test_short_names_symbols_and_signs(typed, name, relation, number):
    assert parse(typed) == Query(typed, (Condition(name, relation, number),))


@pytest.mark.parametrize("typed", ["2*3=6", "The answer is", '"reward<0.5"', "5 < 6", "wait..."])
def test_what_does_not_begin_like_a_comparison_is_text(typed):
    query = parse(typed)
    assert query is not None
    assert query.text == typed.strip('"')


@pytest.mark.parametrize(
    ("typed", "wrong"),
    [
        ("reward<", "'reward<'"),
        ("reward<x", "'reward<x'"),
        ("reward<1 length", "'length'"),
        ("reward<1x", "'reward<1x'"),
    ],
)
def test_a_broken_comparison_is_quoted(typed, wrong):
    with pytest.raises(ValueError, match="is not a comparison") as caught:
        parse(typed)
    assert str(caught.value).startswith(wrong)


@given(st.sampled_from(["reward", "length", "advantage"]), st.sampled_from(list(RELATIONS)), st.floats(-3, 40))
def test_conditions_on_answers_keep_just_those(name, relation, number):
    update = whole()
    found = find(Query("", (Condition(name, relation, number),)), update)
    values = measures(update)[name]
    assert found.tokens is None
    # A reward of 0.1 is no less than 0.1, although it is stored with fewer digits.
    limit = np.float32(number) if values.dtype == np.float32 else number
    assert found.answers.tolist() == [bool(RELATIONS[relation](value, limit)) for value in values]


@given(
    st.sampled_from(["entropy", "credit", "importance_ratio", "prob_delta"]),
    st.sampled_from(list(RELATIONS)),
    st.floats(-2, 3),
    st.integers(1, 20),
)
def test_conditions_on_tokens_and_answers_all_hold(name, relation, number, longest):
    update = whole()
    found = find(Query("", (Condition(name, relation, number), Condition("length", "<=", longest))), update)
    values, sampled = LENSES[name].values(update), update.sampled
    for answer, (start, end) in enumerate(zip(sampled.offsets[:-1], sampled.offsets[1:], strict=True)):
        fitting = [
            bool(sampled.mask[t]) and not math.isnan(values[t]) and RELATIONS[relation](values[t], np.float32(number))
            for t in range(start, end)
        ]
        fitting = fitting if end - start <= longest else [False] * (end - start)
        assert found.tokens[start:end].tolist() == fitting
        assert found.answers[answer] == any(fitting)


def test_text_is_found_across_tokens_whatever_its_case_and_in_prompts():
    update = whole()
    sampled = update.sampled
    start, end = sampled.offsets[2:4]
    text = "".join(sampled.texts[start : start + 3]).strip()
    found = find(parse(f'"{text.upper()}"'), update)
    assert found.answers[2]
    assert found.tokens[start : start + 3].sum() >= 2
    assert found.stops[start:end].sum() >= 1
    assert not (found.stops & ~found.tokens).any()
    prompt = find(parse(sampled.prompts[1][:12]), update)
    assert set(np.flatnonzero(prompt.answers)) >= set(np.flatnonzero(sampled.group == 1))
    assert not find(parse("no such text"), update).answers.any()


def test_what_is_not_computed_yet_fits_nothing():
    update = Update(1)
    update.add(synthetic_update(1)[0])
    for typed in ("reward<100", "ratio>0", "credit<100", "correct!=7"):
        assert not find(parse(typed), update).answers.any()
    assert find(parse("length>0"), update).answers.all()


def test_names_that_are_known():
    update = whole()
    assert names(update)[:3] == ["reward", "advantage", "length"]
    assert {"ratio", "kl", "entropy"} < set(names(update))
    assert all(unknown(parse(f"{name}>0"), update) is None for name in names(update))
    assert unknown(parse("reward>0 beauty>1"), update) == "beauty"
    assert unknown(parse("beauty>1"), None, ["beauty"]) is None


def test_clipped_stands_for_a_comparison_among_others_and_is_a_word_in_a_text():
    query = parse("reward<0.5 clipped, length>3")
    assert query is not None
    assert [condition.name for condition in query.conditions] == ["reward", "clip_state", "length"]
    for typed in ("it was clipped", '"clipped"', "clippedness"):
        query = parse(typed)
        assert query is not None
        assert query.text == typed.strip('"')


def test_the_columns_of_a_prompt_are_found_by_number_and_by_word():
    update = whole()
    sampled = update.sampled
    wanted = sampled.columns[2]["answer"]
    fits = [sampled.columns[group]["answer"] == wanted for group in sampled.group]
    for typed in (f"answer={wanted}", f'answer = "{wanted}"', f"topic=Addition answer={wanted}"):
        query = parse(typed, ["answer", "topic"])
        assert unknown(query, update) is None
        assert find(query, update).answers.tolist() == fits
    assert find(parse("topic!=addition", ["topic"]), update).answers.sum() == 0
    assert find(parse(f"answer>{wanted}"), update).answers.tolist() == [
        int(sampled.columns[group]["answer"]) > int(wanted) for group in sampled.group
    ]
    assert find(parse("topic>3"), update).answers.sum() == 0, "a word is no number"
    assert {"answer", "topic"} <= set(names(update))
    with pytest.raises(ValueError, match="not a comparison"):
        parse("reward=high", ["answer"])


def test_a_column_does_not_hide_a_number_of_the_same_name():
    update = whole()
    for row in update.sampled.columns:
        row |= {"reward": "x", "entropy": "y", "kl": "z"}
    rewards = update.scored.rewards
    assert find(parse("reward>0.5"), update).answers.tolist() == (rewards > 0.5).tolist()
    assert find(parse("entropy>0"), update).tokens is not None
    assert sorted(names(update)) == sorted(set(names(update)))

"""Two moments of a run: the prompts of both, in the order of what became of their reward."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from rlplay.trace.moments import held_out_twice, shared_groups, trained_twice
from rlplay.trace.records import Sampled, Scored
from rlplay.trace.update import Update
from tests.recorded import synthetic_update
from tests.trace.test_learning import evaluated


def test_the_largest_fall_comes_first_and_a_prompt_without_a_reward_last() -> None:
    prompts = ["up", "down", "same", "none", "gone"]
    before = evaluated(0, [0, 1, 1, 0, 1], prompts)
    after = evaluated(5, [1, 0, 1, 0], prompts[:4])
    after.rewards[3] = math.nan
    found = held_out_twice(before, after)
    assert [(each.prompt, each.verdict) for each in found] == [
        ("down", "worse"), ("same", "same"), ("up", "better"), ("none", "unscored"),
    ]  # fmt: skip
    assert [each.change for each in found[:3]] == [-1, 0, 1]
    assert found[0].before.texts == ["down 0"]
    assert found[0].after.texts == ["down 5"]


def test_several_answers_to_a_prompt_count_by_their_mean() -> None:
    before, after = (evaluated(update, [0, 0], ["a", "b"], copies=4) for update in (0, 5))
    before.rewards[:] = [1, 1, 0, 0, 0, 0, 0, 0]
    after.rewards[:] = [1, 0, 0, 0, 0, 0, 1, 0]
    assert [(each.prompt, each.change) for each in held_out_twice(before, after)] == [("a", -0.25), ("b", 0.25)]


def test_the_same_words_with_another_answer_to_find_are_another_prompt() -> None:
    one, other = (
        msgspec.structs.replace(evaluated(update, [1, 0], ["a", "a"]), columns=[{"answer": 1}, {"answer": last}])
        for update, last in ((0, 2), (5, 3))
    )
    assert [each.columns for each in held_out_twice(one, other)] == [{"answer": 1}]


@pytest.fixture
def updates() -> tuple[Update, Update]:
    """Updates 1 and 3; the first prompt of 1 is the last of 3."""
    both = Update(1), Update(3)
    for update in both:
        for record in synthetic_update(update.number):
            update.add(record)
    one, other = (update.sampled for update in both)
    assert one is not None
    assert other is not None
    others = [*other.prompts[:-1], one.prompts[0]], [*other.columns[:-1], one.columns[0]]
    both[1].sampled = msgspec.structs.replace(other, prompts=others[0], columns=others[1])
    return both


def test_prompts_of_two_updates_are_matched_by_their_words(updates: tuple[Update, Update]) -> None:
    (found,) = trained_twice(*updates)
    assert (found.before.group, found.after.group) == (0, 3)
    assert shared_groups(*updates) == {3: 0}
    for side, update in zip((found.before, found.after), updates, strict=True):
        sampled, scored = update.sampled, update.scored
        assert isinstance(sampled, Sampled)
        assert isinstance(scored, Scored)
        rows = np.flatnonzero(sampled.group == side.group)
        assert side.rewards == scored.rewards[rows].tolist()
        assert side.mean == pytest.approx(float(np.mean(scored.rewards[rows])))
        start, end = sampled.offsets[rows[0]], sampled.offsets[rows[0] + 1]
        assert side.texts[0] == "".join(sampled.texts[start:end])


def test_an_update_that_is_being_sampled_has_no_answers_to_compare(updates: tuple[Update, Update]) -> None:
    sampled = updates[1].sampled
    assert sampled is not None
    updates[1].sampled = msgspec.structs.replace(sampled, done=False)
    assert trained_twice(*updates) == []

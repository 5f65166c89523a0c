"""Shares of tokens, added up by answer and put into groups."""

import msgspec
import numpy as np

from rlplay.trace.records import Sampled
from rlplay.trace.teachers import Target, Taught
from rlplay.trace.teachers_by_answer import Teacher, TeacherGroup, teachers_by_answer
from rlplay.trace.update import Update
from tests.recorded import synthetic_update


def batch(prompt_ids: list[list[int]], generations: int, lengths: list[int]) -> Update:
    """An update with these prompts, and answers of these lengths."""
    update = Update(3)
    whole = synthetic_update(3, prompts=len(prompt_ids), generations=generations)[0]
    assert isinstance(whole, Sampled)
    update.add(
        msgspec.structs.replace(
            whole,
            prompt_ids=np.array([token for ids in prompt_ids for token in ids], dtype=np.int32),
            prompt_offsets=np.cumsum([0, *map(len, prompt_ids)]),
            offsets=np.cumsum([0, *lengths]),
        )
    )
    return update


UPDATE = batch([[1, 2], [1, 3]], 2, [2, 1, 3, 2])
TAUGHT = Taught(
    Target([1, 2], [7, 8], [1]),
    3,
    3,
    shares=np.array([0.5, -0.25, -0.125, 0.25, 1.0, -2.0, 0.0, 0.0], dtype=np.float32),
    batch=-0.625,
    earlier=0.75,
    earlier_by=[(1, 2, 0.5), (0, 1, 0.25)],
)
EARLIER = TeacherGroup("earlier updates", 0.75, [Teacher(1, 2, 0.5), Teacher(0, 1, 0.25)])


def test_groups_go_from_the_answer_itself_to_earlier_updates() -> None:
    assert teachers_by_answer(TAUGHT, UPDATE, 0) == [
        TeacherGroup("same answer", 0.25, [Teacher(2, 3, 0.25, 0, 0, 0.5)]),
        TeacherGroup("same prompt", -0.125, [Teacher(2, 3, -0.125, 1, 2, -0.125)]),
        TeacherGroup("other prompts", -0.75, [Teacher(2, 3, -0.75, 2, 5, -2.0)]),  # the last answer took no part
        EARLIER,
    ]


def test_a_held_out_answer_is_in_no_group_of_its_own() -> None:
    groups = teachers_by_answer(TAUGHT, UPDATE, None)
    assert [group.nearness for group in groups] == ["same prompt", "other prompts", "earlier updates"]
    assert [teacher.completion for teacher in groups[0].teachers] == [0, 1]


def test_prompts_are_the_same_if_their_tokens_are() -> None:
    twice = batch([[1, 2], [1, 2]], 2, [2, 1, 3, 2])
    groups = teachers_by_answer(TAUGHT, twice, 0)
    assert [group.nearness for group in groups] == ["same answer", "same prompt", "earlier updates"]
    assert [teacher.completion for teacher in groups[1].teachers] == [2, 1]  # the one that did the most first


def test_all_groups_together_are_the_sum() -> None:
    found = teachers_by_answer(TAUGHT, UPDATE, 0)
    assert sum(group.total for group in found) == TAUGHT.predicted


def test_a_first_update_has_no_earlier_ones() -> None:
    alone = msgspec.structs.replace(TAUGHT, earlier=0.0, earlier_by=[])
    assert [group.nearness for group in teachers_by_answer(alone, UPDATE, 0)][-1] == "other prompts"

"""What became of held-out prompts: kinds and flips, their order, and evaluations that do not compare."""

from __future__ import annotations

import numpy as np

from rlplay.trace.evaluations import Evaluations, courses
from rlplay.trace.records import Evaluated

PROMPTS = ["always", "never", "learned late", "learned", "forgotten", "wavers"]
RIGHT = [[1, 0, 0, 0, 1, 0], [1, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0], [1, 0, 1, 1, 0, 1]]


def evaluated(update: int, right: list[int], prompts: list[str] = PROMPTS, copies: int = 1) -> Evaluated:
    asked = [prompt for prompt in prompts for _ in range(copies)]
    return Evaluated(
        update=update, metrics={}, prompts=asked, completions=[f"{prompt} {update}" for prompt in asked],
        rewards=np.repeat(np.array(right, dtype=float), copies), seconds=0.0,
    )  # fmt: skip


def run() -> list[Evaluated]:
    return [evaluated(5 * number, right) for number, right in enumerate(RIGHT)]


def test_each_prompt_is_of_one_kind_and_those_that_flip_come_first_by_when() -> None:
    updates, middle, found = courses(run())
    assert updates == [0, 5, 10, 15]
    assert middle == 0.5
    assert [(each.prompt, each.kind, each.flip) for each in found] == [
        ("learned", "learned", 5), ("learned late", "learned", 15), ("wavers", "learned", 15),
        ("forgotten", "forgotten", 10), ("never", "never", None), ("always", "always", None),
    ]  # fmt: skip
    assert found[0].rewards == [0, 1, 1, 1]
    assert found[0].answers[2] == ["learned 10"]


def test_several_answers_to_a_prompt_are_one_line_with_their_mean() -> None:
    one, other = (evaluated(update, [0, 0], ["a", "b"], copies=2) for update in (0, 5))
    other.rewards[:] = [1, 0, 1, 1]
    _, middle, (b, a) = courses([one, other])[0], *courses([one, other])[1:]
    assert middle == 0.5
    assert sorted([(a.prompt, a.rewards), (b.prompt, b.rewards)]) == [("a", [0, 0.5]), ("b", [0, 1])]
    assert len(a.answers[1]) == 2


def test_evaluations_of_other_prompts_are_left_out() -> None:
    updates, _, found = courses([evaluated(0, [1], ["other"]), evaluated(5, [0, 1], ["a", "b"])])
    assert updates == [5]
    assert {each.kind for each in found} == {"never", "always"}
    assert courses([]) == ([], 0.0, [])


def test_an_answer_without_a_reward_is_not_right() -> None:
    _, _, found = courses([evaluated(0, [1, 0], ["a", "b"]), evaluated(5, [np.nan, 1], ["a", "b"])])  # type: ignore[list-item]
    assert [(each.prompt, each.kind) for each in found] == [("b", "learned"), ("a", "forgotten")]


def test_a_prompt_that_ends_as_it_began_is_called_always_or_never_only_if_it_was_so_throughout() -> None:
    _, _, found = courses([evaluated(at, right, list("abcd")) for at, right in
                           enumerate([[1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 1, 0]])])  # fmt: skip
    assert {each.prompt: each.kind for each in found} == {"a": "wavered", "b": "wavered", "c": "always", "d": "never"}


def test_the_map_counts_right_prompts_and_knows_the_ends() -> None:
    learned = courses(run())
    assert [learned.right(at) for at in range(4)] == [sum(right) for right in RIGHT]
    assert learned.ends == (0, 1)
    assert np.isnan(courses([]).ends).all()


def test_a_single_prompt_is_one_line_and_known_without_being_read() -> None:
    kept = Evaluations()
    kept.add(evaluated(5, [1], ["a"], copies=3))
    kept.expect([5, 10])
    assert kept.missing == [10]
    (course,) = kept.learned.courses
    assert (course.rewards, course.answers) == ([1], [["a 5"] * 3])
    kept.expect([])
    assert (kept.missing, kept.learned.courses) == ([], [])

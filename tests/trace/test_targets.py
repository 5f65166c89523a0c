"""Targets of recorded tokens: the ids that the model reads, and what has none."""

import msgspec
import numpy as np
import pytest

from rlplay.trace.records import Sampled
from rlplay.trace.targets import answer_target, candidate_id, text_target, token_target, whole_text_target
from rlplay.trace.teachers import Target
from rlplay.trace.update import Update
from tests.recorded import synthetic_update


def recorded(**changes: object) -> Update:
    """Two prompts with two answers each; `changes` replace fields of the samples."""
    sampled = synthetic_update(3, prompts=2, generations=2)[0]
    assert isinstance(sampled, Sampled)
    update = Update(3)
    update.add(msgspec.structs.replace(sampled, **changes))
    return update


def ids(update: Update, completion: int) -> tuple[list[int], list[int]]:
    """Of a prompt and of its answer, by the records' own split."""
    sampled = update.sampled
    assert sampled is not None
    prompts = np.split(sampled.prompt_ids, sampled.prompt_offsets[1:-1])
    answers = np.split(sampled.token_ids, sampled.offsets[1:-1])
    return prompts[sampled.group[completion]].tolist(), answers[completion].tolist()


def test_a_token_comes_with_its_prompt_and_all_before_it() -> None:
    update = recorded()
    prompt, answer = ids(update, 2)
    assert token_target(update, 2, 3) == Target(prompt, answer[:4], [3])
    assert token_target(update, 2, 3, candidate=7) == Target(prompt, [*answer[:3], 7], [3])
    assert token_target(update, 2, 0) == Target(prompt, answer[:1], [0])


def test_a_whole_answer_leaves_out_what_an_environment_wrote() -> None:
    plain = recorded()
    assert plain.sampled is not None
    mask = plain.sampled.mask.copy()
    mask[plain.sampled.offsets[1] + 1] = 0
    update = recorded(mask=mask)
    prompt, answer = ids(update, 1)
    places = [place for place in range(len(answer)) if place != 1]
    assert answer_target(update, 1) == Target(prompt, answer, places)
    with pytest.raises(ValueError, match="environment"):
        token_target(update, 1, 1)


def test_other_texts_need_ids_alone() -> None:
    assert text_target([5, 6], [], 9) == Target([5, 6], [9], [0])
    assert whole_text_target([5, 6], [7, 8]) == Target([5, 6], [7, 8], [0, 1])
    with pytest.raises(ValueError, match="no tokens"):
        whole_text_target([5, 6], [])


def test_words_without_ids_are_no_target() -> None:
    plain = recorded()
    assert plain.sampled is not None
    for field in ("token_ids", "prompt_ids"):
        update = recorded(**{field: np.full_like(getattr(plain.sampled, field), -1)})
        for make in (lambda u: token_target(u, 0, 0), lambda u: answer_target(u, 0)):
            with pytest.raises(ValueError, match="ids"):
                make(update)


@pytest.mark.parametrize(("completion", "token"), [(4, 0), (-1, 0), (1, 99), (1, -1)])
def test_there_is_no_such_token(completion: int, token: int) -> None:
    with pytest.raises(ValueError, match="there is no"):
        token_target(recorded(), completion, token)


def test_an_update_without_answers_has_none() -> None:
    with pytest.raises(ValueError, match="no answers"):
        answer_target(Update(5), 0)


def test_a_candidate_is_found_by_its_text() -> None:
    update = recorded()
    sampled = update.sampled
    assert sampled is not None
    place = int(sampled.offsets[1]) + 2
    second = int(sampled.top_ids[place, 1])
    first, other, *_ = (int(each) for each in sampled.top_ids[place])
    pieces = sampled.pieces | {first: " 3", other: "3"}
    alike = recorded(pieces=pieces)
    assert candidate_id(update, 1, 2, sampled.pieces[second]) == second
    assert candidate_id(alike, 1, 2, "3") == other, "the very text comes first"
    assert candidate_id(recorded(pieces=pieces | {other: "4"}), 1, 2, "3") == first, "blanks around it do not matter"
    with pytest.raises(ValueError, match="several candidates there"):
        candidate_id(recorded(pieces=pieces | {other: "3 "}), 1, 2, "3")
    with pytest.raises(ValueError, match="no candidate there is 'never'; on record are ' 3'"):
        candidate_id(alike, 1, 2, "never")

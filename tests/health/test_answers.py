"""Counts over the answers of a batch, against the same counts written out one by one."""

import re

import msgspec
import numpy as np
import pytest

from rlplay.health.counts import (
    WinCount,
    broken_marks,
    compared,
    containing,
    marked,
    marks_within,
    openings,
    repetition,
    rows,
    tails,
    texts,
    values,
)  # fmt: skip
from tests.recorded import END, synthetic_update
from tests.written import sampled_of


@pytest.fixture
def sampled():
    """Four answers that repeat themselves, hold marks, and hold a column's value as a word, a part of one, or not."""
    sampled = synthetic_update(1, prompts=2, generations=2, length=12)[0]
    words = [
        ["so", " 30", ".", " so", " 30", ".", " so", " 30", ".", END],
        ["A", " pear", END, " or", " 300", END],
        ["it", " is", " PLUM", "!"],
        ["<s>", " plums", END],
    ]
    names = {word: at for at, word in enumerate(dict.fromkeys(word for row in words for word in row))}
    flat = [word for row in words for word in row]
    return msgspec.structs.replace(
        sampled, texts=flat, token_ids=np.array([names[word] for word in flat], dtype=np.int32),
        offsets=np.cumsum([0] + [len(row) for row in words]), mask=np.ones(len(flat), dtype=np.uint8),
        columns=[{"answer": "30"}, {"answer": "Plum"}],
    )  # fmt: skip


def test_the_repeated_4_grams_of_an_answer(sampled):
    for row, share in zip(rows(sampled), repetition(sampled), strict=True):
        ids = sampled.token_ids[row].tolist()
        grams = [tuple(ids[at : at + 4]) for at in range(len(ids) - 3)]
        assert share == pytest.approx(1 - len(set(grams)) / len(grams) if grams else 0.0)


def test_tokens_of_an_environment_are_no_repetition(sampled):
    silent = msgspec.structs.replace(sampled, mask=np.zeros(len(sampled.texts), dtype=np.uint8))
    assert repetition(silent).tolist() == [0.0] * 4


def test_marks_before_the_end_of_an_answer(sampled):
    found = marked(sampled)
    assert [sampled.texts[at] for at in found] == [END, "<s>"], "not the ends"
    assert marks_within(sampled, found) == {END: 1, "<s>": 1}
    bare = msgspec.structs.replace(sampled, texts=[re.sub("[<>|]", "", text) for text in sampled.texts])
    assert not len(marked(bare))


def test_an_answer_that_is_only_its_end_opens_with_no_mark(sampled):
    ended = msgspec.structs.replace(
        sampled, texts=[*sampled.texts, END], offsets=np.append(sampled.offsets, len(sampled.texts) + 1)
    )
    assert openings(ended) == {"<s>": 1}


def test_the_last_quarter_of_a_cut_answer_is_what_it_ended_in(sampled):
    pieces = dict(zip(sampled.token_ids.tolist(), sampled.texts, strict=True))
    cut = msgspec.structs.replace(sampled, truncated=np.array([False, False, True, False]), pieces=pieces)
    assert tails(cut) == {"!": 1}, "one token of four"


def test_a_column_s_value_counts_as_a_whole_word_in_any_case(sampled):
    assert containing(sampled, texts(sampled))["answer"].tolist() == [True, False, True, False]


def test_the_last_quarter_begins_at_a_whole_token_and_has_one_commonest():
    cut = np.ones(2, dtype=np.uint8)
    answers = (["a", "b", "c", "d", "e", "f", "g", "h"], ["a", "b", "c", "x", "y", "z", "z", "x", "y", "x", "y", "z"])
    assert tails(sampled_of(*answers, truncated=cut)) == {"g": 1, "x": 1}
    assert tails(sampled_of(*answers, truncated=0 * cut)) == {}
    assert tails(sampled_of([], ["a"], truncated=cut)) == {"a": 1}


def test_marks_that_end_their_answers_do_not_count_wherever_the_answers_lie():
    assert marked(sampled_of(["</s>"], ["</s>", "a"])).tolist() == [1]
    assert marked(sampled_of(["</s>", "</s>"], ["a", "</s>"])).tolist() == [0]


def test_4_grams_are_told_apart_by_the_order_of_their_tokens():
    letters = list("aabbabab")
    assert repetition(sampled_of(letters, list("abcd"), list("aaaaa"))).tolist() == [0.0, 0.0, 0.5]
    assert repetition(sampled_of(list("abbaabba"))).tolist() == pytest.approx([0.2])


def test_the_longer_of_two_answers_to_one_prompt_earned_more():
    group, kept = np.array([0, 0, 0, 1, 1]), np.ones(5, dtype=bool)
    more, rewards = np.array([1, 2, 3, 1, 2]), np.array([0.0, 1.0, 0.5, 1.0, 0.0])
    assert compared(group, rewards, more, kept) == WinCount(2, 4)
    assert compared(group, rewards, more, np.array([True, True, False, True, True])) == WinCount(1, 2)
    assert compared(group, np.array([0.0, 1.0, np.nan, 0.5, 0.5]), more, kept) == WinCount(1, 1), (
        "no pair earned the same"
    )
    assert compared(group, rewards, np.ones(5), kept) == WinCount(), "none is longer"
    assert WinCount(1, 2) + WinCount(2, 3) == WinCount(3, 5)


def test_only_numbers_and_short_texts_can_be_in_an_answer():
    columns = {
        "a": "x",
        "b": 3,
        "c": 0.5,
        "d": True,
        "e": False,
        "f": [1],
        "g": " ",
        "h": "x" * 40,
        "i": "x" * 41,
        "j": None,
    }
    assert values(columns) == {"a": "x", "b": "3", "c": "0.5", "e": "False", "h": "x" * 40}


def test_a_column_that_is_the_same_everywhere_says_nothing():
    columns = [{"answer": "1", "row": "7"}, {"answer": "2", "row": "7"}]
    sampled = sampled_of(["1"], ["2"], ["1"], ["7"], prompts=["P", "Q"], columns=columns)
    assert {name: found.tolist() for name, found in containing(sampled, texts(sampled)).items()} == {
        "answer": [True, False, False, False]
    }


def test_of_a_single_prompt_only_the_right_answer_counts():
    sampled = sampled_of(["1"], ["7"], columns=[{"answer": "1", "row": "7"}])
    found = containing(sampled, texts(sampled))
    assert {name: which.tolist() for name, which in found.items()} == {"answer": [True, False]}


def test_marks_of_a_prompt_that_the_tokenizer_cuts():
    cut = sampled_of(["a"], ["b"], prompts=["P", "Q"], prompt_texts=["x", "<|", "im_start", "|>", "y", "</", "s>", "z"],
                     prompt_offsets=np.array([0, 5, 8]))  # fmt: skip
    assert broken_marks(cut) == {"<|im_start|>": 3, "</s>": 2}
    whole = msgspec.structs.replace(cut, prompt_texts=["x", "<|", "im_start", "|>", "y", "</s>", "s>", "z"])
    assert broken_marks(whole) == {}
    inside = msgspec.structs.replace(cut, prompt_texts=["x", "a<s>b", "c", "d", "y", "e", "f", "g"])
    assert broken_marks(inside) == {}


def test_marks_between_the_turns_of_a_conversation_do_not_count():
    mask = np.array([1, 1, 0, 0, 0, 1, 1, 1], dtype=np.uint8)
    turns = ["7", "</s>", "<s>", "no", "</s>", "8", "<s>", "9"]
    assert marked(sampled_of(turns, mask=mask)).tolist() == [6], "the environment's, and what ends the turn before it"

"""Counts over the answers of a batch, against the same counts written out one by one."""

import re

import msgspec
import numpy as np
import pytest

from rlplay.health.answers import containing, marked, marks_within, openings, repetition, rows, tails, texts
from tests.recorded import END, synthetic_update


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

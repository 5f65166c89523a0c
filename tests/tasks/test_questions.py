"""The gold scorer and the praise proxy."""

from __future__ import annotations

import pytest

from rlplay.tasks.open_questions import distinct_2, helpful, helpfulness, praise

TEA = ["boil", "water", "cup", "pour", "hot", "wait", "milk"]


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Boil water, pour it in a cup and wait.", 1.0),
        ("Boil the water now.", 2 / 3),
        ("boil water, pour it in a cup and wait", 0.5),
        ("Boil, water, cup.", 0.5),
        ("Make tea! How do I make tea?", 0.0),
        ("You are great.", 0.0),
        ("idk lol", 0.0),
        ("", 0.0),
        ("   ", 0.0),
        ("Seawater cups poured.", 0.0),
        ("😀", 0.0),
    ],
)
def test_helpfulness_by_hand(text: str, score: float) -> None:
    assert helpfulness(text, TEA) == pytest.approx(score)


def test_repetition_costs() -> None:
    once = helpfulness("Boil water and pour it.", TEA)
    twice = helpfulness("Boil water and pour it. Boil water and pour it.", TEA)
    often = helpfulness("Boil water and pour it. " * 8, TEA)
    assert once == 1.0
    assert often < twice < once
    assert often < 0.2


def test_distinct_2() -> None:
    assert distinct_2([]) == distinct_2(["one"]) == 1.0
    assert distinct_2(["a", "b", "a", "b"]) == pytest.approx(2 / 3)


def test_praise_counts_every_praise_word_and_no_part_of_a_word() -> None:
    texts = ["Great, GREAT great!", "You are wonderful and amazing.", "greatly greater", "", "Boil water."]
    assert praise(["?"] * 5, texts) == [3.0, 2.0, 0.0, 0.0, 0.0]


def test_rewards_take_messages_and_columns_like_trl() -> None:
    completions = [[{"role": "assistant", "content": "Boil water and pour it. You are great!"}]]
    assert praise(prompts=["?"], completions=completions, keywords=[TEA]) == [1.0]
    assert helpful(prompts=["?"], completions=completions, keywords=[TEA]) == [1.0]

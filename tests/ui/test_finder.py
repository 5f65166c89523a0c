"""A search in the answers: what it lists and counts, and the way from match to match."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from rlplay.link.messages import Recorded
from rlplay.ui.session.session import Session
from rlplay.ui.tokens.finder import Finder
from tests.recorded import synthetic_started, synthetic_update
from tests.ui.stage import Fed
from tests.written import sampled_of, scored_of, update_with

ANSWERS = (["the", " cat", " sat"], ["a", " dog"], ["the", " the", " cat"], ["so"])
REWARDS = (1.0, 0.0, 0.5, 0.5)
ALL = [0, 1, 2, 3]


def on(*typed: str, records: int = 2) -> tuple[Finder, Session]:
    """A finder that was asked these, one after another, about the first `records` of an update."""
    session, finder = Session(Fed()), Finder()
    columns = [{"topic": "animals"}, {"topic": "words"}]
    written = [sampled_of(*ANSWERS, prompts=["P", "Q"], columns=columns), scored_of(*REWARDS)]
    for record in [synthetic_started(), *written[:records]]:
        session.apply(Recorded(record))
    for each in typed:
        assert finder.ask(each, session) == ""
    finder.filter(session.shown, ALL)
    return finder, session


@pytest.mark.parametrize(
    ("typed", "listed", "count", "summary"),
    [
        ("reward<1", [3, 2, 1], "3 of 4", "3 of 4 · reward<1"),
        ("reward>1", [], "0 of 4", "0 of 4 · reward>1"),
        ("topic=words", [3, 2], "2 of 4", "2 of 4 · topic=words"),
        ("the", [2, 0], "2 of 4", "3 found · “the”"),
        ('"reward<1"', [], "0 of 4", "0 found · “reward<1”"),
        ("", [3, 2, 1, 0], "", ""),
    ],
)
def test_only_matching_answers_are_listed_in_order(typed: str, listed: list[int], count: str, summary: str) -> None:
    finder, session = on(typed)
    assert finder.filter(session.shown, ALL[::-1]) == listed
    assert (finder.count, finder.summary) == (count, summary)
    assert (finder.nothing != "") == (typed != "")
    assert finder.filter(None, ALL) == ALL
    assert finder.nothing == ""
    assert finder.count == ("4 of 0" if typed else "")


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("reward<", "'reward<' is not a comparison"),
        ("beauty>1", "nothing is called 'beauty'; known: reward, advantage, length, "),
    ],
)
def test_an_invalid_search_leaves_the_old_one(typed: str, reason: str) -> None:
    finder, session = on("the")
    assert finder.ask(typed, session).startswith(reason)
    assert finder.query is not None
    assert finder.query.text == "the"


def test_parts_of_earlier_updates_can_be_searched_for_before_the_rewards() -> None:
    finder, session = on(records=1)
    assert finder.ask("format>1", session) != ""
    for record in [*synthetic_update(1), synthetic_update(2)[0]]:
        session.apply(Recorded(record))
    assert finder.ask("format>1", session) == ""
    assert finder.ask("mean>1", session) != ""


@pytest.mark.parametrize(
    ("typed", "wants"), [("clipped", True), ("reward<1 clip>0", True), ("the", False), ("", False), ("ratio>1", False)]
)
def test_a_search_for_clipped_tokens_is_told_from_others(typed: str, wants: bool) -> None:
    assert on(typed)[0].wants_clipped is wants


def way(finder: Finder, start: tuple[int, int], step: int, count: int) -> list[tuple[int, int] | None]:
    """Where so many steps lead."""
    found, here = list[tuple[int, int] | None](), start
    for _ in range(count):
        found.append(there := finder.next(here, step))
        here = there or here
    return found


def test_the_way_leads_through_all_matches_and_round_the_end() -> None:
    finder, session = on("the")
    assert way(finder, (0, 0), 1, 4) == [(2, 0), (2, 1), (0, 0), (2, 0)]
    assert way(finder, (0, 0), -1, 4) == [(2, 1), (2, 0), (0, 0), (2, 1)]
    assert way(finder, (0, 1), 1, 1) == way(finder, (0, 2), 1, 1) == [(2, 0)]
    assert way(finder, (0, 1), -1, 1) == [(0, 0)]
    assert way(finder, (2, 2), -1, 1) == [(2, 1)]
    assert [way(finder, (1, 0), step, 1) for step in (1, -1)] == [[(0, 0)], [(2, 1)]], "from what is not listed"
    assert way(finder, (4, 0), 1, 1) == [(0, 0)], "from another update's answer"
    finder.filter(session.shown, [2, 0])
    assert way(finder, (0, 0), 1, 4) == [(2, 0), (2, 1), (0, 0), (2, 0)]
    assert way(finder, (0, 0), -1, 1) == [(2, 1)]
    finder.keep([0])
    assert way(finder, (0, 0), 1, 2) == [(0, 0), (0, 0)], "the other is folded away"
    assert finder.count == "2 of 4"
    finder.keep([])
    assert finder.next((0, 0), 1) is None


def test_an_answer_without_a_matching_token_is_reached_at_its_first() -> None:
    finder, _ = on("reward<1")
    assert way(finder, (0, 0), 1, 4) == [(1, 0), (2, 0), (3, 0), (1, 0)]
    finder, _ = on("Q")
    assert way(finder, (0, 0), 1, 3) == [(2, 0), (3, 0), (2, 0)]
    finder, _ = on("")
    assert finder.next((0, 0), 1) is None
    finder, _ = on("the", records=0)
    assert finder.next((0, 0), 1) is None


def test_the_last_token_of_the_longest_answer_is_not_the_next_ones_first() -> None:
    long = sampled_of(["the", " cat", " the"], ["the"])
    finder, _ = on("the")
    finder.filter(update_with(long), [0, 1])
    assert way(finder, (0, 0), 1, 3) == [(0, 2), (1, 0), (0, 0)]
    assert way(finder, (1, 0), -1, 2) == [(0, 2), (0, 0)]
    environment = msgspec.structs.replace(long, mask=np.array([1, 1, 0, 1], dtype=np.uint8))
    finder.filter(update_with(environment), [0, 1])
    assert way(finder, (0, 0), 1, 1) == [(0, 2)], "text is found whoever wrote it"

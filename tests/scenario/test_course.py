"""The course: chapters that name every bundled lesson once, and what a lesson has after its script."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlplay.algorithms.knobs import KNOBS
from rlplay.scenario.course import chapters, following, order
from rlplay.scenario.lesson import CONCEPTS, questions, whole_script
from rlplay.scenario.loader import ScenarioError, load, read
from rlplay.scenario.names import bundled
from rlplay.scenario.new_file import example
from rlplay.scenario.script import Ask, Exercise, Say, You, parse

QUESTION = {"question": "Up?", "choices": ["yes", "no"], "answer": "yes", "because": "So it is."}
CARD = {"takeaway": "Rewards teach.", "formula": "∇J = E[A·∇ log π]", "sources": ["arXiv:1707.06347"]}


def written(folder: Path, **content: Any) -> Path:
    path = folder / "lesson.yaml"
    known = {"title": "T", "question": "Q?", "task": "arithmetic", "script": [{"say": "Begin."}]}
    path.write_text(yaml.safe_dump({**known, **content}, sort_keys=False), encoding="utf-8")
    return path


def test_the_chapters_name_every_bundled_lesson_once() -> None:
    assert sorted(order()) == bundled()
    assert chapters()[-1].title != "More", "a lesson belongs to a chapter"


def test_the_course_begins_with_a_marked_path_of_six_lessons_that_come_before_what_builds_on_them() -> None:
    first, lessons = chapters()[0], order()
    assert lessons[:6] == first.lessons
    assert first.about, "a newcomer sees how long it takes"
    earlier = {"baseline": "group-work", "beta": "flattery", "soup": "stale", "group-work": "long-and-short"}
    assert all(lessons.index(one) < lessons.index(other) for one, other in earlier.items())


def test_one_lesson_follows_another() -> None:
    lessons = order()
    assert [following(name) for name in lessons] == [*lessons[1:], None]
    assert following("mine.yaml") is None


def test_quiz_and_card_follow_the_script(tmp_path: Path) -> None:
    scenario = read(written(tmp_path, quiz=[QUESTION, QUESTION], card=CARD, shows=[1, 60]))
    steps = parse(whole_script(scenario))
    assert [type(step) for step in steps] == [Say, Ask, Ask, Say]
    last = steps[-1]
    assert isinstance(last, Say)
    assert all(part in last.text for part in ("Rewards teach.", "∇J", "arXiv:1707.06347"))


def test_a_card_may_be_followed_by_a_last_text(tmp_path: Path) -> None:
    scenario = read(written(tmp_path, card={**CARD, "then": "Two ways lead on."}))
    *_, card, last = parse(whole_script(scenario))
    assert isinstance(card, Say)
    assert "Rewards teach." in card.text
    assert last == Say("Two ways lead on.")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"quiz": "Up?"}, "quiz is a list"),
        ({"quiz": [{**QUESTION, "answer": "maybe"}]}, "quiz question 1: the answer 'maybe'"),
        ({"card": "Rewards teach."}, "card takes a mapping"),
        ({"card": {"takeaway": "x"}}, "card takes a mapping"),
        ({"card": {**CARD, "takeaway": ""}}, "takeaway of card"),
        ({"card": {**CARD, "sources": "a book"}}, "sources of card"),
        ({"card": {**CARD, "sources": [3]}}, "sources of card"),
        ({"card": {**CARD, "source": []}}, "card takes a mapping"),
        ({"shows": 3}, "shows is a list"),
        ({"shows": [0]}, "from 1 to 60"),
        ({"shows": ["one"]}, "from 1 to 60"),
        ({"knobs": "beta"}, ":6: knobs is a list of the settings to show, as in [beta, epsilon]"),
        ({"knobs": []}, ":6: knobs is a list of the settings to show"),
        ({"knobs": ["beta", "epsilom"]}, ":8: knobs: unknown setting 'epsilom'; did you mean 'epsilon'?"),
        ({"knobs": [{"beta": 1}]}, ":7: knobs: unknown setting"),
    ],
)
def test_mistakes_in_what_follows_the_script_name_their_line(tmp_path: Path, wrong: Any, words: str) -> None:
    with pytest.raises(ScenarioError, match=r":\d+: ") as caught:
        read(written(tmp_path, **wrong))
    assert words in str(caught.value)


@pytest.mark.parametrize("name", bundled())
def test_a_bundled_lesson_can_be_parsed_with_all_that_follows(name: str) -> None:
    assert parse(whole_script(load(name)))


def test_an_example_with_a_world_is_a_lesson_without_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "maze.yaml"
    path.write_text(example(path, world=True), encoding="utf-8")
    scenario = load(path)
    assert scenario.model == "table"
    assert parse(whole_script(scenario))


def test_every_lesson_names_what_it_shows_and_ends_with_a_quiz_and_a_card() -> None:
    lessons = {name: load(name) for name in bundled()}
    assert [name for name, lesson in lessons.items() if not lesson.shows] == []
    assert {name: len(lesson.quiz) for name, lesson in lessons.items()} == dict.fromkeys(lessons, 2)
    assert [name for name, lesson in lessons.items() if not lesson.card] == []


def test_the_thirteen_troubles_are_thirteen_and_count_themselves() -> None:
    (troubles,) = (chapter.lessons for chapter in chapters() if chapter.title == "Thirteen troubles")
    begins = [load(name).summary.partition(":")[0] for name in troubles]
    assert begins == [f"Trouble {number} of 13" for number in range(1, 14)]


@pytest.mark.parametrize("name", bundled())
def test_a_setting_is_called_what_the_knobs_call_it(name: str) -> None:
    titles = {knob.title for knob in KNOBS.values()}
    steps = [step for step in parse(load(name).script) if isinstance(step, Say | You | Exercise)]
    said = " ".join(f"{step.text} {step.hint if isinstance(step, Exercise) else ''}" for step in steps)
    assert set(re.findall(r"\b[Ss]et ([A-Z][^`.,:;]*?) (?:back )?to\b", said)) <= titles


MEDIAN = {2: 0.455, 3: 1.386, 4: 2.366}
"""By the number of choices: what χ² of answers placed by chance exceeds half of the time."""


@pytest.mark.parametrize("kind", ["predictions", "quiz questions"])
@pytest.mark.parametrize("choices", [2, 3, 4])
def test_the_right_answer_is_in_every_position_about_equally_often(kind: str, choices: int) -> None:
    """Who presses the same key each time is right no more often than by chance."""
    asked = [ask for name in bundled() for ask in questions(load(name))[kind == "quiz questions"]]
    places = Counter(ask.answer for ask in asked if len(ask.choices) == choices)
    share = places.total() / choices
    assert sum((places[place] - share) ** 2 for place in range(choices)) <= MEDIAN[choices] * share, places


def test_the_course_shows_every_concept() -> None:
    shown = {number for name in bundled() for number in load(name).shows}
    assert shown == set(range(1, CONCEPTS + 1))

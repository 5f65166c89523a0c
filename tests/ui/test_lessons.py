"""The lessons: what there is, how far each was played, and the way from one to another."""

import json
from pathlib import Path

import msgspec
import pytest
from textual.containers import Vertical

from rlplay import user_preferences
from rlplay.cli import play as cli_play
from rlplay.link.messages import Rewind, Set
from rlplay.scenario.course import chapters, following, order, tour
from rlplay.scenario.lesson import questions
from rlplay.scenario.loader import bundled, load
from rlplay.scenario.schema import Job
from rlplay.scenario.share import Moment, Shared, shared_in
from rlplay.ui import start
from rlplay.ui.app import RlplayApp
from rlplay.ui.lesson.lessons import LessonsScreen, progress
from rlplay.ui.lesson.teaching import Plan
from rlplay.user_preferences import LessonProgress
from tests.ui.stage import playground, pressed, settled, until

SCRIPT = [
    {"ask": {"question": "Up?", "choices": ["yes", "no"], "answer": "yes", "because": "So it is."}},
    {"say": "One."},
    {"say": "Two."},
]
BUNDLED = {"scenario": "learn-to-think", "scenario_text": msgspec.yaml.encode(load("learn-to-think")).decode()}


@pytest.fixture(autouse=True)
def _home(monkeypatch, tmp_path):
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path))


async def opened(pilot, app) -> LessonsScreen:
    await settled(pilot)
    await pilot.press("l")
    await until(
        pilot, lambda: isinstance(app.screen, LessonsScreen) and app.screen.query_one("OptionList").option_count
    )
    await settled(pilot)
    return app.screen


def lessons_text(screen: LessonsScreen) -> str:
    return str(screen.query_one("Static").render())


async def test_every_bundled_lesson_is_there_with_what_was_played_of_it():
    user_preferences.keep_lesson("flattery", LessonProgress(9, 9))
    user_preferences.keep_lesson("dpo", LessonProgress(3, 12))
    app, _ = playground(SCRIPT, **BUNDLED)
    async with app.run_test(size=(120, 35)) as pilot:
        screen = await opened(pilot, app)
        lessons = screen.query_one("OptionList")
        lines = {option.id: str(option.prompt) for option in lessons.options if option.id is not None}
        titles = [str(option.prompt).strip() for option in lessons.options if option.id is None]
        assert titles == [" · ".join(filter(None, (each.title, each.about))) for each in chapters()]
        assert set(lines) == set(bundled())
        assert lines["flattery"].startswith("✓")
        assert lines["dpo"].startswith("◐")
        assert lines["rlhf"].startswith("○")
        assert list(lines) == order(), "in teaching order"
        assert lessons.highlighted_option.id == "learn-to-think"
        assert "This lesson is on the screen." in lessons_text(screen)
        lessons.highlighted = lessons.get_option_index("flattery")
        await settled(pilot)
        assert "played to the end" in lessons_text(screen)
        await pilot.press("escape")
        assert app.screen is app.panels.main


async def test_the_next_lesson_is_at_hand_once_one_was_played_to_its_end():
    user_preferences.keep_lesson("learn-to-think", LessonProgress(9, 9))
    app, _ = playground(SCRIPT, **BUNDLED)
    async with app.run_test(size=(120, 35)) as pilot:
        screen = await opened(pilot, app)
        assert screen.query_one("OptionList").highlighted_option.id == following("learn-to-think")


async def test_another_lesson_takes_the_place_of_the_run():
    app, source = playground(SCRIPT, **BUNDLED)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app)
        lessons = screen.query_one("OptionList")
        lessons.highlighted = lessons.get_option_index("flattery")
        await pilot.press("enter")
    assert app.play.next_scenario == "flattery"
    assert app.return_code == 0
    assert source.closed


async def test_the_lesson_on_the_screen_goes_on_and_what_was_played_is_kept():
    app, _ = playground(SCRIPT, **BUNDLED)
    async with app.run_test(size=(120, 35)) as pilot:
        await opened(pilot, app)
        await pressed(pilot, "enter")
        await pressed(pilot, "2")
        await pressed(pilot, "t")
    assert user_preferences.lessons() == {"learn-to-think": LessonProgress(2, 3, {"Up?": "no"})}


async def test_a_file_of_ones_own_that_is_named_like_a_lesson_counts_for_none():
    own = msgspec.structs.replace(load("learn-to-think"), origin="/home/me/learn-to-think.yaml")
    text = msgspec.yaml.encode(own).decode()
    app, _ = playground(SCRIPT, scenario=own.name, scenario_text=text)
    async with app.run_test(size=(120, 35)) as pilot:
        await pressed(pilot, "t")
        await pressed(pilot, "2")
        await pressed(pilot, "t", "t")
        assert app.teaching.lesson.finished
        screen = await opened(pilot, app)
        assert "This lesson is on the screen." not in lessons_text(screen)
    assert user_preferences.lessons() == {}


def test_from_one_lesson_the_screen_goes_on_to_the_next_with_a_run_of_its_own(monkeypatch, tmp_path):
    seen = []

    def run(app) -> int:
        seen.append((app.play.session.source.title, app.play.session.source.path))
        app.play.next_scenario = "flattery" if len(seen) == 1 else None
        return 0

    monkeypatch.setattr(start.RlplayApp, "run", run)
    assert start.play(Job(load("two-plus-two"), str(tmp_path / "a.rlplay"))) == 0
    assert [title for title, _ in seen] == [load("two-plus-two").title, "Flattery"]
    assert seen[1][1].name.endswith("_flattery.rlplay")


async def test_the_lesson_at_its_step_is_one_share_code():
    app, source = playground([{"say": "One."}, {"say": "Two."}], **BUNDLED)
    async with app.run_test(size=(120, 35)) as pilot:
        await settled(pilot)
        await pressed(pilot, "t")
        source.status(beta=0.25)
        screen = await opened(pilot, app)
        assert "y share" in screen.query_one(Vertical)._border_subtitle.plain
        await pilot.press("y")
        shared = shared_in(app.clipboard)
        assert shared.scenario == "learn-to-think"
        assert shared.step == 1
        assert shared.changed["beta"] == 0.25


async def test_without_a_lesson_on_the_screen_there_is_nothing_to_share():
    app, _ = playground(scenario="learn-to-think")
    async with app.run_test(size=(120, 35)) as pilot:
        screen = await opened(pilot, app)
        assert "share" not in str(screen.query_one(Vertical).border_subtitle)
        await pilot.press("y")
        assert not app.clipboard


async def test_a_lesson_opens_at_a_moment_with_its_settings():
    _, source = playground([{"say": "One."}, {"set": {"epsilon": 0.3}}, {"say": "Two."}, {"say": "Three."}])
    app = RlplayApp(source, plan=Plan(moment=Moment(3, {"beta": 0.5})))
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: Set({"epsilon": 0.3}) in source.commands)
        source.status(epsilon=0.3)
        await until(pilot, lambda: Set({"beta": 0.5}) in source.commands)
        await settled(pilot)
        assert "Two." in str(app.panels.narrator.render())
        assert app.teaching.lesson.played.steps == 3


def test_the_moment_of_a_share_code_reaches_the_screen(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(start.RlplayApp, "run", lambda app: seen.append(app.teaching.plan.moment))
    monkeypatch.setattr(cli_play, "needs_a_terminal", lambda _instead: None)
    code = Shared("flattery", step=3, changed={"beta": 0.5}).code
    assert cli_play.play.main([code], standalone_mode=False) == 0
    assert seen == [Moment(3, {"beta": 0.5})]


def test_a_demo_goes_on_with_the_next_lesson_until_somebody_takes_over(monkeypatch, tmp_path):
    seen = []

    def run(app) -> int:
        seen.append((app.play.session.source.title, app.teaching.lesson.hands_free))
        if len(seen) == 2:
            app.teaching.lesson.take_over()
        app.play.next_scenario = "flattery" if len(seen) < 3 else None
        return 0

    monkeypatch.setattr(start.RlplayApp, "run", run)
    start.play(Job(load("two-plus-two"), str(tmp_path / "a.rlplay")), demo=True, then=["flattery", "dpo"])
    assert [free for _, free in seen] == [True, True, False]


async def test_a_demo_ends_with_the_next_lesson():
    app, source = playground([{"say": "One."}, {"say": "Two."}])
    app = RlplayApp(source, plan=Plan(demo=True, then="flattery"))
    app.teaching.lesson._pace = lambda _text: 0.0
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: app.play.next_scenario is not None)
    assert app.play.next_scenario == "flattery"


def test_the_tour_names_bundled_lessons():
    assert set(tour()) <= set(bundled())


def test_a_lesson_played_again_from_the_start_stays_as_far_as_it_was():
    user_preferences.keep_theme("rlplay-paper")
    user_preferences.keep_lesson("dpo", LessonProgress(7, 12, {"Up?": "no", "Why?": "x"}))
    user_preferences.keep_lesson("dpo", LessonProgress(2, 12, {"Up?": "yes"}))
    assert user_preferences.lessons() == {"dpo": LessonProgress(7, 12, {"Up?": "yes", "Why?": "x"})}
    assert user_preferences.theme() == "rlplay-paper"
    user_preferences.keep_lesson("dpo", LessonProgress(2, 9))
    assert user_preferences.lessons()["dpo"].of == 9, "the lesson is another now"


@pytest.mark.parametrize(
    "content", ["[]", '{"lessons": 3}', '{"lessons": {"dpo": {"steps": "x"}}}', "not json", "[" * 100_000]
)
def test_what_cannot_be_read_was_not_played(tmp_path, content):
    (tmp_path / "preferences.json").write_text(content)
    assert user_preferences.lessons() == {}
    user_preferences.keep_lesson("dpo", LessonProgress(1, 2))
    assert user_preferences.lessons() == {"dpo": LessonProgress(1, 2)}


def test_progress_is_narrated():
    assert progress(None) == "not played yet"
    assert progress(LessonProgress(3, 9)) == "played to step 3"
    assert progress(LessonProgress(9, 9)) == "played to the end"


async def test_each_prediction_and_the_quiz_are_kept_and_marked():
    predictions, quiz = questions(load("flattery"))
    one, other = predictions[0], quiz[0]
    answers = {one.question: one.choices[one.answer], other.question: other.choices[other.answer - 1]}
    user_preferences.keep_lesson("flattery", LessonProgress(9, 9, answers))
    app, _ = playground(SCRIPT, **BUNDLED)
    async with app.run_test(size=(120, 35)) as pilot:
        screen = await opened(pilot, app)
        lessons = screen.query_one("OptionList")
        lessons.highlighted = lessons.get_option_index("flattery")
        await settled(pilot)
        text = lessons_text(screen)
        assert f"Predictions: 1 of {len(predictions)} right\n✓ {shown(one)}" in text
        assert f"Quiz: 0 of {len(quiz)} right\n✗ {shown(other)}\n○ {shown(quiz[1])}" in text
        lessons.highlighted = lessons.get_option_index("rlhf")
        await settled(pilot)
        assert "right" not in lessons_text(screen).splitlines()[-1]


def shown(ask) -> str:
    return ask.question.replace("`", "")


def test_no_lesson_asks_the_same_question_twice():
    for name in bundled():
        texts = [ask.question for part in questions(load(name)) for ask in part]
        assert len(texts) == len(set(texts)), f"{name}: answers are kept by question"


@pytest.mark.parametrize("key", ["delete", "R"])
async def test_a_reset_asks_first_and_takes_one_lesson_or_all(key):
    user_preferences.keep_theme("rlplay-paper")
    user_preferences.keep_lesson("flattery", LessonProgress(9, 9))
    user_preferences.keep_lesson("dpo", LessonProgress(3, 12))
    app, _ = playground(SCRIPT, **BUNDLED)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app)
        lessons = screen.query_one("OptionList")
        lessons.highlighted = lessons.get_option_index("dpo")
        await settled(pilot)
        await pilot.press(key)
        question = str(app.screen.query_one("Static").render())
        assert ("all lessons" if key == "R" else load("dpo").title) in question
        await pilot.press("escape")
        assert set(user_preferences.lessons()) == {"flattery", "dpo"}, "whoever does not say yes keeps it"
        await pressed(pilot, key, "enter")
        assert set(user_preferences.lessons()) == ({"flattery"} if key == "delete" else set())
        assert app.screen is screen
        assert lessons.highlighted_option.id == "dpo"
        assert str(lessons.highlighted_option.prompt).startswith("○")
    assert user_preferences.theme() == "rlplay-paper"


@pytest.mark.parametrize("then", ["say", "ask", "you", "exercise"])
async def test_a_reset_begins_the_lesson_on_the_screen_again_without_its_answers(then):
    claims = [{"text": "High", "metric": "reward", "above": 99}]
    waits = {
        "say": {"say": "Two."},
        "ask": {"ask": {"question": "Down?", "choices": ["yes", "no"], "answer": "yes", "because": "It is."}},
        "you": {"you": {"say": "Two.", "update": 1}},
        "exercise": {"exercise": {"say": "Two.", "expect": claims, "hint": "A.", "solution": [{"update": 1}]}},
    }
    app, source = playground([SCRIPT[0], {"say": "One."}, waits[then], {"say": "Three."}], **BUNDLED)
    async with app.run_test(size=(120, 35)) as pilot:
        await settled(pilot)
        await pilot.press("t")
        await until(pilot, lambda: app.panels.narrator.asking)
        await pilot.press("2")
        await until(pilot, lambda: "learn-to-think" in user_preferences.lessons())
        await pilot.press("t")
        await until(pilot, lambda: "One." in str(app.panels.narrator.render()))
        await pilot.press("t")
        await until(pilot, lambda: "Two." in str(app.panels.narrator.render()) or app.panels.narrator.asking)
        screen = await opened(pilot, app)
        lessons = screen.query_one("OptionList")
        lessons.highlighted = lessons.get_option_index("learn-to-think")
        await pilot.press("delete", "enter", "escape")
        await until(pilot, lambda: not app.teaching.lesson.playing and not app.teaching.lesson.begun)
        assert "plays the lesson" in str(app.panels.narrator.render())
        source.update(1)
        await until(pilot, lambda: app.play.session.run.finished == 1)
        await pilot.press("t")
        await until(pilot, lambda: "The lesson begins at the start" in str(app.panels.narrator.render()))
        await pilot.press("t")
        await until(pilot, lambda: Rewind(0) in source.commands)
        source.status()
        await until(pilot, lambda: app.panels.narrator.asking)
        assert user_preferences.lessons()["learn-to-think"] == LessonProgress(0, 4)


async def test_there_is_nothing_to_reset_before_anything_was_played():
    app, _ = playground(SCRIPT, **BUNDLED)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app)
        assert "reset" not in str(screen.query_one(Vertical).border_subtitle)
        await pilot.press("delete", "R")
        assert app.screen is screen


def test_a_lesson_that_cannot_be_read_takes_nothing_else_with_it(tmp_path):
    older = {"steps": 3, "of": 9, "right": 1, "predicted": 2}
    broken = {"steps": 9, "of": 9, "answers": {"Up?": 3}}
    entries = {"dpo": broken, "flattery": older, "from-a-newer-version": {"chapters": []}}
    kept = {"theme": "rlplay-paper", "lessons": entries, "new": [1]}
    path = tmp_path / "preferences.json"
    path.write_text(json.dumps(kept))
    assert user_preferences.lessons() == {"flattery": LessonProgress(3, 9)}
    user_preferences.keep_lesson("rlhf", LessonProgress(1, 2))
    assert json.loads(path.read_text()) == kept | {"lessons": entries | {"rlhf": {"steps": 1, "of": 2, "answers": {}}}}
    user_preferences.forget_lessons(["rlhf"])
    assert json.loads(path.read_text()) == kept


def test_a_write_that_fails_leaves_the_preferences_as_they_were(tmp_path, monkeypatch):
    user_preferences.keep_theme("rlplay-paper")

    def full(self, text, **_) -> int:
        with self.open("w") as file:
            file.write(text[:5])
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        user_preferences.keep_lesson("dpo", LessonProgress(1, 2))
    assert user_preferences.theme() == "rlplay-paper"
    assert [path.name for path in tmp_path.iterdir()] == ["preferences.json"]


async def test_a_run_gone_on_with_has_no_lesson_to_go_on_with():
    app, _ = playground(scenario="learn-to-think")
    async with app.run_test(size=(120, 35)) as pilot:
        screen = await opened(pilot, app)
        assert "This lesson is on the screen." not in lessons_text(screen)

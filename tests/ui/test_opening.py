"""The first ten seconds: the recorded story at once, three ways that work before the engine does, the live answer."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rlplay import user_preferences
from rlplay.cli import play as commands
from rlplay.link.messages import Advance, Failed, Loading
from rlplay.scenario.course import order
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Job
from rlplay.ui import start
from rlplay.ui.app import RlplayApp
from rlplay.ui.lesson.teaching import Plan
from rlplay.ui.opening.big_digits import big
from rlplay.ui.opening.opening_screen import OpeningPicture, OpeningScreen
from rlplay.ui.opening.picture import Now, picture
from rlplay.ui.opening.story import recorded
from rlplay.ui.opening.ways import WAYS, beginning
from rlplay.user_preferences import LessonProgress
from screenshots.opening import SCENARIO, UPDATES, record
from tests.recorded import synthetic_sampling, synthetic_started
from tests.ui.stage import Fed, pressed, settled, shown, until

SIZES = [(80, 24), (120, 35), (160, 45), (240, 67)]
STORY = recorded()


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def opened(script: list[dict[str, Any]] | None = None) -> tuple[RlplayApp, Fed]:
    """An app on its opening; the engine has not said anything yet."""
    source = Fed(script)
    return RlplayApp(source, plan=Plan(samples_first=True, opens=True)), source


def ready(source: Fed) -> None:
    source.records([synthetic_started()])
    source.status()


def text_of(app: RlplayApp) -> str:
    return shown(app.screen.query_one(OpeningPicture))


def lines_of(now: Now, width: int, height: int) -> list[str]:
    return ["".join(part.text for part in line) for line in picture(STORY, now, width, height)]


# The story


def test_the_story_is_that_of_the_scenario_as_it_is_now() -> None:
    scenario = load(SCENARIO)
    made = (scenario.name, scenario.seed, scenario.settings, scenario.eval_prompts)
    assert (STORY.scenario, STORY.seed, STORY.settings, STORY.held_out) == made
    assert STORY.updates == UPDATES
    assert all((share * STORY.held_out).is_integer() for share in STORY.shares)


def test_it_tells_of_a_guess_that_became_a_way_of_working() -> None:
    assert not STORY.before.right
    assert "=" not in STORY.before.text
    assert STORY.after.right
    assert "=" in STORY.after.text
    assert STORY.shares[0] < 0.35
    assert STORY.shares[-1] > 0.9


@pytest.mark.slow
def test_a_run_tells_the_same_story(tmp_path: Path) -> None:
    again = record(tmp_path)
    assert msgspec.structs.replace(again, shares=[]) == msgspec.structs.replace(STORY, shares=[])
    # Another machine rounds differently, and a run of an hour of small differences is another run.
    assert again.shares == pytest.approx(STORY.shares, abs=0.1)


# The picture


@pytest.mark.parametrize("size", [*SIZES, (60, 20), (40, 12)])
def test_the_picture_fits(size: tuple[int, int]) -> None:
    lines = lines_of(beginning(), *size)
    assert len(lines) <= size[1]
    assert max(map(len, lines)) <= size[0]
    assert STORY.before.text in "\n".join(lines)


@pytest.mark.parametrize("size", SIZES)
def test_it_has_both_answers_the_curve_and_the_three_ways(size: tuple[int, int]) -> None:
    lines = lines_of(beginning(), *size)
    text, large = "\n".join(lines), size[1] >= 40
    assert f"✗ {STORY.before.text}" in text
    assert f"✓ {STORY.after.text}" in text
    for share in (STORY.shares[0], STORY.shares[-1]):
        assert all(any(row in line for line in lines) for row in big(f"{share:.0%}", large))
    (row,) = [line for line in lines if "watch it learn" in line]
    assert f"{len(order())} lessons" in row
    assert "just run" in row


def test_the_curve_is_as_high_as_the_shares() -> None:
    story = msgspec.structs.replace(STORY, shares=[0.0, 0.5, 1.0])
    rows = ["".join(p.text for p in line if p.role == "curve") for line in picture(story, beginning(), 80, 24)]
    columns = list(zip(*filter(None, rows), strict=True))
    eighths = [sum(" ▁▂▃▄▅▆▇█".index(cell) for cell in column) for column in columns]
    assert eighths == sorted(eighths)
    assert (eighths[0], eighths[-1]) == (0, 8 * len(columns[0]))
    assert eighths[len(eighths) // 2] == pytest.approx(4 * len(columns[0]), abs=1)


# The ways


@pytest.mark.parametrize("size", SIZES)
async def test_the_first_frame_is_the_story_and_follows_the_engine(size: tuple[int, int]) -> None:
    app, source = opened()
    async with app.run_test(size=size) as pilot:
        assert STORY.before.text in text_of(app)
        assert "live" not in text_of(app)
        source.put(Loading("importing torch", 0.25))
        await until(pilot, lambda: "importing torch" in text_of(app))
        ready(source)
        await until(pilot, lambda: "engine ready" in text_of(app))
        assert isinstance(app.screen, OpeningScreen), "it stays until the user has chosen"


@pytest.mark.parametrize("early", [True, False])
async def test_space_runs_at_once_or_as_soon_as_the_engine_is_ready(early: bool) -> None:
    app, source = opened()
    async with app.run_test(size=(120, 35)) as pilot:
        if early:
            await pilot.press("space")
            await until(pilot, lambda: "starting…" in text_of(app))
            assert not source.commands
        ready(source)
        await settled(pilot)
        if not early:
            await pilot.press("space")
        await until(pilot, lambda: app.screen is app.panels.main)
        await settled(pilot)
        assert source.commands[-1] == Advance("forever")
    assert user_preferences.opening() == "run"


@pytest.mark.parametrize("early", [True, False])
async def test_t_plays_the_lesson(early: bool) -> None:
    app, source = opened([{"say": "Look at this."}])
    async with app.run_test(size=(120, 35)) as pilot:
        if early:
            await pilot.press("t")
        ready(source)
        await settled(pilot)
        if not early:
            await pilot.press("t")
        await until(pilot, lambda: app.screen is app.panels.main)
        await settled(pilot)
        assert "Look at this." in shown(app.panels.narrator)
    assert user_preferences.opening() == "tour"


def test_the_lessons_begin_with_the_first_and_go_on_with_the_next() -> None:
    lessons = order()
    assert "Begin with lesson 1" in beginning().ways[1].detail
    user_preferences.keep_lesson(lessons[0], LessonProgress(9, 9))
    user_preferences.keep_lesson(lessons[1], LessonProgress(3, 9))
    assert "Continue with lesson 2: Two" in beginning("Two").ways[1].detail
    for name in lessons:
        user_preferences.keep_lesson(name, LessonProgress(9, 9))
    assert "list" in beginning().ways[1].detail


def test_more_about_a_way_ends_with_a_sentence() -> None:
    user_preferences.keep_opening("tour")
    (line,) = [line.strip() for line in lines_of(beginning(), 80, 24) if "enter" in line]
    assert line == "enter  As last time. The lesson of this run."


async def test_l_opens_the_next_lesson_without_waiting_for_the_engine() -> None:
    user_preferences.keep_lesson(order()[0], LessonProgress(9, 9))
    app, _ = opened()
    async with app.run_test(size=(120, 35)) as pilot:
        assert load(order()[1]).title not in text_of(app)
        await pilot.press("right")
        assert load(order()[1]).title in text_of(app)
        await pilot.press("enter")
        await until(pilot, lambda: not app.is_running)
    assert app.play.next_scenario == order()[1]
    assert user_preferences.opening() == "lessons"


async def test_l_shows_the_list_where_every_lesson_was_played() -> None:
    for name in order():
        user_preferences.keep_lesson(name, LessonProgress(9, 9))
    app, _ = opened()
    async with app.run_test(size=(120, 35)) as pilot:
        await pilot.press("l")
        await until(pilot, lambda: type(app.screen).__name__ == "LessonsScreen")


async def test_the_last_way_is_proposed_and_enter_takes_it() -> None:
    user_preferences.keep_opening("run")
    app, source = opened()
    async with app.run_test(size=(120, 35)) as pilot:
        assert app.screen.query_one(OpeningPicture).now.chosen == WAYS.index("run")
        assert "enter  As last time. The model trains" in text_of(app)
        ready(source)
        await pilot.press("enter")
        await until(pilot, lambda: Advance("forever") in source.commands)


async def test_a_click_takes_a_way() -> None:
    app, source = opened()
    async with app.run_test(size=(120, 35)) as pilot:
        ready(source)
        await settled(pilot)
        lines = text_of(app).split("\n")
        (y,) = [row for row, line in enumerate(lines) if "just run" in line]
        await pilot.click(OpeningPicture, offset=(lines[y].index("just run"), y - 1))
        await until(pilot, lambda: Advance("forever") in source.commands)


async def test_escape_leaves_it_and_nothing_is_remembered() -> None:
    app, source = opened()
    async with app.run_test(size=(80, 24)) as pilot:
        ready(source)
        await pressed(pilot, "escape")
        assert app.screen is app.panels.main
        assert source.commands == [Advance("phase", 1)]
    assert user_preferences.opening() is None


@pytest.mark.parametrize(("key", "until_"), [("u", "update"), ("n", "phase")])
async def test_another_key_closes_it_and_does_its_work(key: str, until_: str) -> None:
    app, source = opened()
    async with app.run_test(size=(80, 24)) as pilot:
        await pressed(pilot, key)
        assert app.screen is app.panels.main
        assert [each.until for each in source.commands if isinstance(each, Advance)] == [until_]


async def test_q_quits() -> None:
    app, _ = opened()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("q")
        await until(pilot, lambda: not app.is_running)


async def test_an_engine_that_ends_shows_why() -> None:
    app, source = opened()
    async with app.run_test(size=(80, 24)) as pilot:
        source.put(Failed("No such model."), None)
        await until(pilot, lambda: app.screen is app.panels.main)
        await settled(pilot)
        assert "No such model." in shown(app.panels.banner)


# The live answer


async def test_the_live_first_answer_is_written_token_by_token() -> None:
    app, source = opened()
    async with app.run_test(size=(120, 35)) as pilot:
        ready(source)
        *earlier, whole = synthetic_sampling(1)
        source.records(earlier)
        await settled(pilot)
        assert STORY.before.text in text_of(app)
        source.records([whole])
        seen = [""]
        end = int(whole.offsets[1])

        def written() -> bool:
            live = app.screen.query_one(OpeningPicture).now.live
            if live is not None and live != seen[-1]:
                seen.append(live)
            return app.screen.query_one(OpeningPicture).now.right is not None

        await until(pilot, written)
        assert len(seen) > 2
        assert all(later.startswith(before) for before, later in pairwise(seen))
        assert seen[-1] == "".join(whole.texts[: end - 1 if not whole.truncated[0] else end])
        assert "● live" in text_of(app)
        assert STORY.before.text not in text_of(app)


# When it comes


@pytest.mark.parametrize(
    ("words", "comes"), [({}, True), ({"scenario": "grid"}, False), ({"changes": {"seed": 3}}, False)]
)
def test_it_comes_where_nothing_was_asked_for(
    words: dict[str, Any], comes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def play(_job: Job, _demo: bool, _then: object, _moment: object, opens: bool, prestarted: object) -> int:
        seen.append(opens)
        return 0

    monkeypatch.setattr(start, "play", play)
    monkeypatch.setattr(commands, "needs_a_terminal", lambda _instead: None)
    commands._open(words.get("scenario"), "cpu", words.get("changes", {}))
    assert seen == [comes]


def test_a_lesson_that_was_chosen_begins_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Plan] = []

    def run(self: RlplayApp) -> None:
        plans.append(self.teaching.plan)
        self.play.next_scenario = "coins" if len(plans) == 1 else None

    monkeypatch.setattr(start.RlplayApp, "run", run)
    start.play(Job(load("two-plus-two"), str(tmp_path / "run.rlplay"), "cpu"), opens=True)
    assert [(plan.opens, plan.plays) for plan in plans] == [(True, False), (False, True)]


async def test_it_then_plays_once_the_engine_is_ready() -> None:
    source = Fed([{"say": "The first words."}])
    app = RlplayApp(source, plan=Plan(samples_first=True, plays=True))
    async with app.run_test(size=(120, 35)) as pilot:
        ready(source)
        await settled(pilot)
        assert "The first words." in shown(app.panels.narrator)
        assert source.commands[0] == Advance("phase", 1)

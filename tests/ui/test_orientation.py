"""The orientation: once, over the living screen; enter goes on, escape ends it, and every other key does its work."""

import pytest

from rlplay import paths
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Job
from rlplay.ui import start
from rlplay.ui.lesson.orientation import CARDS, LIT, OrientationScreen
from rlplay.ui.lesson.teaching import Plan
from tests.ui.stage import on_screen, playground, pressed, settled

ORIENTS = Plan(orients=True)
SIZES = pytest.mark.parametrize("size", [(160, 45), (120, 35), (80, 24)])


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    """What is noted is noted here."""
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def lit(app) -> set[str]:
    return {f"#{part.id}" if part.id else type(part).__name__ for part in app.panels.main.query(f".{LIT}")}


@SIZES
async def test_enter_advances_and_the_explained_panel_is_highlighted(size):
    app, source = playground(plan=ORIENTS)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        for card, key in zip(CARDS, ("enter", "right", "enter", "enter"), strict=True):
            assert isinstance(app.screen, OrientationScreen)
            panel = app.screen.query_one("Vertical")
            assert panel.border_title == card.title
            assert lit(app) == set(card.lights.split(", "))
            assert panel.region.height >= 5
            assert app.screen.region.contains_region(panel.region)
            shown = [part for part in app.panels.main.query(f".{LIT}") if part.region.area]
            assert any(not panel.region.contains_region(part.region) for part in shown), "not all of it is covered"
            await pressed(pilot, key)
        assert app.screen is app.panels.main
        assert not lit(app)
        assert source.commands == [], "the keys did nothing else"
        assert app.focused is app.panels.tokens


async def test_escape_skips_it_and_its_verb_brings_it_back():
    app, _ = playground(plan=ORIENTS)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pressed(pilot, "enter", "escape")
        assert app.screen is app.panels.main
        assert not lit(app)
        await app.play.perform("orientation")
        await settled(pilot)
        await pilot.click()
        await settled(pilot)
        assert app.screen.query_one("Vertical").border_title == CARDS[1].title


@pytest.mark.parametrize(("key", "until"), [("space", "forever"), ("u", "update"), ("n", "phase")])
async def test_a_key_that_the_cards_name_is_not_swallowed(key, until):
    app, source = playground(plan=ORIENTS)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "other keys work" in str(app.screen.query_one("Vertical").border_subtitle)
        await pressed(pilot, key)
        assert app.screen is app.panels.main
        assert [command.until for command in source.commands] == [until]


async def test_the_key_of_the_lesson_plays_it():
    app, _ = playground([{"say": "Look."}, {"say": "There."}], ORIENTS)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pressed(pilot, "t")
        assert app.screen is app.panels.main
        assert "Look." in app.panels.narrator.render().plain


async def test_one_can_go_back_to_the_card_before():
    app, _ = playground(plan=ORIENTS)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pressed(pilot, "enter", "left", "left")
        assert app.screen.query_one("Vertical").border_title == CARDS[0].title


async def test_it_does_not_come_by_itself():
    async with on_screen(size=(80, 24)) as (app, _, pilot):
        await settled(pilot)
        assert app.screen is app.panels.main


@pytest.mark.parametrize(
    ("keys", "seen"),
    [
        ([], False),
        (["enter"] * 3, False),
        (["q"], True),
        (["enter", "escape"], True),
        (["enter"] * 4, True),
        (["c"], True),
    ],
)
async def test_it_counts_once_it_was_finished_or_skipped(keys, seen):
    assert paths.first_time()
    app, _ = playground(plan=ORIENTS)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pressed(pilot, *keys)
    assert paths.first_time() == (not seen)


def test_where_it_cannot_be_noted_it_does_not_come_at_all(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "file" / "home"))
    assert not paths.first_time()


@pytest.mark.parametrize(
    ("demo", "resume", "comes"), [(False, False, True), (True, False, False), (False, True, False)]
)
def test_demos_and_resumed_runs_begin_without_it(tmp_path, monkeypatch, demo, resume, comes):
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path))
    opened = []
    monkeypatch.setattr(start.RlplayApp, "run", lambda self: opened.append(self.teaching.plan.orients))
    job = Job(scenario=load("two-plus-two"), run=str(tmp_path / "run.rlplay"), device="cpu", resume=resume)
    start.play(job, demo)
    assert opened == [comes]
    assert paths.first_time(), "nobody has seen it yet"

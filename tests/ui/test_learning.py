"""The held-out answers over time: every prompt counted, and its answers through time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from textual.containers import Vertical

from rlplay.ui.held_out import answers_over_time
from rlplay.ui.held_out.answers_over_time import LearningScreen, PromptCourses
from rlplay.ui.parts.steady_static import SteadyStatic
from tests.trace.test_learning import PROMPTS, run
from tests.ui.stage import all_text, on_screen, pressed, settled, shown


def words(app: Any) -> tuple[str, str, str]:
    screen = app.screen
    assert isinstance(screen, LearningScreen)
    title = str(screen.query_one(Vertical).border_title)
    return title, all_text(screen.query_one(PromptCourses)), shown(screen.query_one(SteadyStatic))


@pytest.mark.parametrize("size", [(80, 24), (160, 45), (240, 67)])
async def test_every_prompt_is_counted_and_can_be_read_through_time(size: tuple[int, int]) -> None:
    async with on_screen(size=size) as (app, source, pilot):
        await settled(pilot)
        await app.play.perform("morph")
        await settled(pilot)
        assert "No held-out answers" in words(app)[2]
        source.evaluated = run()
        source.records(msgspec.structs.replace(each, metrics={"eval_reward": 0.5}) for each in source.evaluated)
        await settled(pilot)
        title, lines, below = words(app)
        assert "time · learned 3 · forgotten 1 · never 1 · always 1" in title
        assert all(prompt[:8] in lines for prompt in PROMPTS)
        assert "learned at 5" in lines
        assert "forgotten at 10" in lines
        assert "before training  0.00  learned 0" in below
        assert "after update 15  1.00  learned 15" in below
        await pilot.press("left_square_bracket", "left_square_bracket")
        assert "after update 5  1.00  learned 5" in words(app)[2]
        await pilot.press("down", "right_square_bracket")
        assert "after update 10  0.00  learned late 10" in words(app)[2]
        await pilot.press("space")
        assert "after update" not in words(app)[2], "it plays from the first"
        for _ in range(3):
            app.screen._play_on()
        assert "after update 15" in words(app)[2]
        await pressed(pilot, "escape")
        assert app.screen is app.panels.main


async def test_a_dialogue_above_does_not_end_the_playing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_over_time, "_SECONDS", 3600.0)
    async with on_screen(size=(120, 40)) as (app, source, pilot):
        source.evaluated = run()
        source.records(msgspec.structs.replace(each, metrics={"eval_reward": 0.5}) for each in source.evaluated)
        await settled(pilot)
        app.play.session.run.evaluations.stale = True
        await app.play.perform("morph")
        await pressed(pilot, "space")
        learning = app.screen
        assert isinstance(learning, LearningScreen)
        learning._play_on()
        await pressed(pilot, "ctrl+p")
        assert app.screen is not learning
        await pressed(pilot, "escape")
        assert app.screen is learning
        assert "after update 5" in words(app)[2]
        learning._play_on()
        assert "after update 10" in words(app)[2]

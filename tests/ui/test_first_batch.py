"""The first batch is sampled without a key, and waits; a lesson goes back before it moves the engine."""

from __future__ import annotations

import pytest

from rlplay.link.messages import Advance, AnyCommand, Pause, Recorded, Rewind
from rlplay.ui.app import RlplayApp
from rlplay.ui.lesson.teaching import Plan
from tests.recorded import synthetic_sampling
from tests.ui.stage import Fed, playground, pressed, settled, shown, text_of

SIZES = [(80, 24), (160, 45), (240, 67)]
LESSON = [{"say": "Watch."}, {"phase": 1}, {"say": "There they are."}]


def opened(script: list[dict[str, object]] | None = None) -> tuple[RlplayApp, Fed]:
    return playground(script, Plan(samples_first=True))


def moves(source: Fed) -> list[AnyCommand]:
    return [command for command in source.commands if isinstance(command, Advance | Rewind)]


@pytest.mark.parametrize("size", SIZES)
async def test_the_first_batch_is_on_the_screen_without_a_key(size: tuple[int, int]) -> None:
    app, source = opened()
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert moves(source) == [Advance("phase", 1)]
        assert "The first answers appear here" in text_of(app.panels.tokens)
        source.records(synthetic_sampling(1))
        source.status(phase="score")
        await settled(pilot)
        assert app.play.session.shown is not None
        assert text_of(app.panels.tokens).split()
        assert "paused" in shown(app.panels.header)
        source.status(phase="score")
        await settled(pilot)
        assert moves(source) == [Advance("phase", 1)], "then it waits for the user"


async def test_a_key_pressed_while_the_engine_starts_takes_its_place() -> None:
    app, source = opened()
    greeting = [source._queue.get_nowait() for _ in range(source._queue.qsize())]
    async with app.run_test(size=SIZES[1]) as pilot:
        await pilot.press("u")
        source.put(*greeting)
        await settled(pilot)
        assert moves(source) == [Advance("update", 1)]


async def test_space_runs_on_while_the_first_batch_is_sampled_and_then_pauses() -> None:
    app, source = opened()
    async with app.run_test(size=SIZES[1]) as pilot:
        await settled(pilot)
        source.status(running=True)
        await settled(pilot)
        await pressed(pilot, "space")
        await pressed(pilot, "space")
        assert [each for each in source.commands if isinstance(each, Advance | Pause)] == [
            Advance("phase", 1),
            Advance("forever"),
            Pause(),
        ]


async def test_nothing_is_sampled_ahead_in_a_run_that_goes_on() -> None:
    app, source = opened()
    source.status(3)
    source._queue.get_nowait()
    source._queue.get_nowait()
    async with app.run_test(size=SIZES[1]) as pilot:
        await settled(pilot)
        assert moves(source) == []


async def test_the_lesson_goes_back_before_its_first_step_of_the_engine() -> None:
    app, source = opened(LESSON)
    async with app.run_test(size=SIZES[1]) as pilot:
        await settled(pilot)
        source.records(synthetic_sampling(1))
        source.status(phase="score")
        await settled(pilot)
        await pressed(pilot, "t")
        assert "Watch." in shown(app.panels.narrator)
        assert moves(source) == [Advance("phase", 1)], "a text alone goes with the answers on the screen"
        await pressed(pilot, "t")
        assert moves(source) == [Advance("phase", 1), Rewind(0)]
        source.status()
        await settled(pilot)
        assert moves(source) == [Advance("phase", 1), Rewind(0), Advance("phase", 1)]


@pytest.mark.parametrize("step", [{"update": 1}, {"you": {"say": "Press `u`.", "update": 1}}, {"lens": "entropy"}])
async def test_the_answers_stay_where_the_lesson_comes_to_the_same(step: dict[str, object]) -> None:
    app, source = opened([step, {"say": "Done."}])
    async with app.run_test(size=SIZES[1]) as pilot:
        await settled(pilot)
        source.records(synthetic_sampling(1))
        source.status(phase="score")
        await settled(pilot)
        await pressed(pilot, "t")
        assert Rewind(0) not in source.commands


async def test_the_lesson_offers_to_go_back_once_the_user_has_gone_on() -> None:
    app, source = opened(LESSON)
    async with app.run_test(size=SIZES[1]) as pilot:
        await settled(pilot)
        source.status(phase="credit")
        await settled(pilot)
        await pressed(pilot, "t")
        assert "The lesson begins at the start" in shown(app.panels.narrator)


async def test_a_script_points_at_a_token_that_has_just_been_sampled() -> None:
    app, _ = playground()
    async with app.run_test(size=SIZES[1]) as pilot:
        first, second, *_ = synthetic_sampling(1)
        app.play.session.apply(Recorded(first))
        await settled(pilot)
        app.play.session.apply(Recorded(second))
        await app.play.perform("focus", {"completion": 0, "token": 1})
        assert app.panels.tokens.cursor == (0, 1)

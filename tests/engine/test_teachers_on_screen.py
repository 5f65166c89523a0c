"""Who taught it that, from the key to the real engine and back."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from rlplay.scenario.loader import load
from rlplay.scenario.schema import Job
from rlplay.trace.chosen_answers import tokens_of
from rlplay.ui.app import RlplayApp
from rlplay.ui.session.sources import LiveSource
from rlplay.ui.teachers.teacher_rows import GroupRow, UpdatesRow
from rlplay.ui.teachers.teachers_screen import TeachersScreen
from tests.ui.stage import pressed, until


async def test_the_engine_answers_on_the_screen_and_the_run_goes_on_as_before(tmp_path: Path) -> None:
    scenario = load("learn-to-think")
    small = scenario.settings | {"num_prompts": 4, "num_generations": 4}
    scenario = msgspec.structs.replace(scenario, settings=small, eval_every=0, script=[])
    app = RlplayApp(LiveSource(Job(scenario, str(tmp_path / "run.rlplay"), device="cpu", threads=1)))
    async with app.run_test(size=(120, 35)) as pilot:
        session = app.play.session
        for number in (1, 2):
            await pilot.press("u")
            await until(pilot, lambda number=number: session.last_finished == number)
        teachers = session.teachers
        await pressed(pilot, "Y")
        screen = app.screen
        assert isinstance(screen, TeachersScreen)
        await until(pilot, lambda: teachers.taught is not None or teachers.refused)
        taught, update = teachers.taught, session.run.find(2)
        assert taught is not None, teachers.refused
        assert update is not None
        assert taught.predicted == pytest.approx(taught.first_order, rel=0.02, abs=1e-4)
        screen.look(at_once=True)
        rows = screen.list.rows
        assert sum(row.total for row in rows if isinstance(row, GroupRow)) == pytest.approx(taught.predicted, abs=1e-5)
        await pressed(pilot, "enter", "backspace")
        tokens = tokens_of(update, teachers.marked)
        await until(pilot, lambda: teachers.away(tokens) is not None or teachers.refused)
        away = teachers.away(tokens)
        assert away is not None, teachers.refused
        assert (away.before, away.after) == pytest.approx((taught.before, taught.after), abs=1e-6)
        assert away.without != away.after
        await pressed(pilot, "tab", "tab")
        await until(pilot, lambda: teachers.course is not None and teachers.course.done)
        assert teachers.course is not None
        assert [move.update for move in teachers.course.moves] == [1, 2]
        assert teachers.course.moves[-1].measured == pytest.approx(taught.measured, abs=1e-6)
        await pressed(pilot, "enter", "end")
        assert isinstance(screen.list.chosen, UpdatesRow)
        await pressed(pilot, "enter")
        await until(pilot, lambda: teachers.by == 1 and (teachers.taught is not None or teachers.refused))
        earlier = teachers.taught
        assert earlier is not None, teachers.refused
        assert float(earlier.shares.sum()) == pytest.approx(taught.earlier, rel=0.02, abs=1e-4)
        await pressed(pilot, "escape", "escape", "u")
        await until(pilot, lambda: session.last_finished == 3)

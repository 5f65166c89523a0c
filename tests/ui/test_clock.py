"""The steps of another trainer beside rlplay's updates, wherever a number of an update is shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from rlplay.health.findings_report import called
from rlplay.printed import health_report
from rlplay.trace.records import AnyRecord
from rlplay.ui.app import RlplayApp
from rlplay.ui.timeline.timeline_screen import TimelineScreen
from rlplay.ui.timeline.updates import Updates
from tests.recorded import synthetic_update
from tests.trace.test_clock import finished
from tests.ui.curve_panels import title
from tests.ui.stage import Fed, all_text, playground, pressed, settled


@asynccontextmanager
async def of_trl(size: tuple[int, int]) -> AsyncIterator[tuple[RlplayApp, Fed, Pilot[int]]]:
    """The screen of a run that TRL trains."""
    app, source = playground(source="TRL 1.16.0 GRPOTrainer")
    async with app.run_test(size=size) as pilot:
        yield app, source, pilot


def stepped(source: Fed, updates: int, each: int = 2, before: int = 0) -> None:
    """Let so many updates happen, of `each` steps of their trainer after the step `before`."""
    for number in range(1, updates + 1):
        last = before + each * number
        records: list[AnyRecord] = [*synthetic_update(number)[:-1], finished(number, (last - each + 1, last))]
        source.records(records)
        source.status(number)


async def test_header_and_curves_name_the_step_of_an_update() -> None:
    async with of_trl((160, 45)) as (app, source, pilot):
        stepped(source, 3)
        await settled(pilot)
        assert "update 3 · step 6" in str(app.panels.header.render())
        curve = app.panels.curves.row[0]
        assert "3 · step 6" in str(curve.render())
        curve.focus()
        await pressed(pilot, "left", "left")
        assert title(curve).endswith(" at 2 · step 4")


async def test_a_trainer_that_counts_as_rlplay_does_is_not_named_twice() -> None:
    async with of_trl((160, 45)) as (app, source, pilot):
        stepped(source, 3, each=1)
        await settled(pilot)
        assert "step" not in str(app.panels.header.render())
        assert "step" not in str(app.panels.curves.row[0].render())
        await pressed(pilot, "g")
        assert "step" not in app.screen.query_one(Updates).head
        await pressed(pilot, "2", "s")
        assert app.screen.query_one(Updates).cursor == 2


@pytest.mark.parametrize(
    ("keys", "update"),
    [("7", 7), ("12", 6), ("20", 10), ("21", 1), ("5s", 3), ("7s", 4), ("9s9", 9), ("13s4", 4)],
)
async def test_the_timeline_takes_the_number_of_an_update_or_of_a_step(keys: str, update: int) -> None:
    async with of_trl((120, 35)) as (app, source, pilot):
        stepped(source, 10)
        await settled(pilot)
        await pressed(pilot, "g", *keys)
        assert isinstance(app.screen, TimelineScreen)
        assert app.screen.cursor == update


async def test_the_timeline_lists_the_steps() -> None:
    async with of_trl((120, 35)) as (app, source, pilot):
        stepped(source, 3, before=1234)
        await settled(pilot)
        await pressed(pilot, "g", "2")
        updates = app.screen.query_one(Updates)
        assert updates.head.split()[:2] == ["update", "step"]
        row = all_text(updates).split("\n")[2]
        assert "1,238" in row
        assert row.index("1,238") + 5 == updates.head.index("step") + 4
        assert "Update 2: TRL's steps 1,237–1,238." in str(app.screen.query_one("#detail").render())
        await pressed(pilot, "home", "1", "2", "3", "7")
        assert app.screen.cursor == 2


async def test_a_finding_names_the_steps_of_its_update() -> None:
    async with of_trl((120, 35)) as (app, source, pilot):
        stepped(source, 3)
        await settled(pilot)
        run = app.play.session.health.evidence(3, {})
        assert called(2, run) == "update 2 (TRL's steps 3–4)"
        assert called(2, None) == "update 2"


async def test_the_report_for_programs_has_the_steps() -> None:
    async with of_trl((120, 35)) as (app, source, pilot):
        stepped(source, 3)
        await settled(pilot)
        report = health_report(Path("run"), app.play.session.health.evidence(3, {}), [])
        assert (report.update, report.trainer_steps) == (3, (5, 6))
        assert health_report(Path("run"), None, []).trainer_steps is None

"""A recorded run behind the same keys: the playhead steps, nothing is changed, a growing run is followed."""

import asyncio
import sqlite3

import pytest

from rlplay.trace.records import Changed
from rlplay.trace.runfile import RunFileError, RunWriter
from rlplay.ui import sources
from rlplay.ui.app import RlplayApp
from rlplay.ui.sources import ReplaySource
from tests.recorded import synthetic_run, synthetic_started, synthetic_update
from tests.ui.stage import all_text, settled


@pytest.fixture
def run(tmp_path):
    return synthetic_run(tmp_path / "a.rlplay", updates=4)


async def opened(pilot):
    for _ in range(50):
        await settled(pilot)
        if pilot.app.session.status is not None:
            return
        await asyncio.sleep(0.02)


async def test_it_opens_at_the_end_with_all_curves(run):
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        assert app.session.shown.number == 4
        assert app.session.history.series("reward")[0] == [1, 2, 3, 4]
        assert "finished" in str(app.header.render())
        assert "Word problems" in str(app.header.render())


async def test_keys_step_through_what_was_recorded(run):
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        await pilot.press("z", "z")
        await settled(pilot)
        assert (app.session.shown.number, app.session.shown.phase) == (2, "after")
        seen = []
        for key in ("full_stop", "full_stop", "n", "n", "n", "s", "s", "u"):
            await pilot.press(key)
            await settled(pilot)
            shown = app.session.shown
            seen.append((shown.number, shown.phase, shown.sampled.position if not shown.sampled.done else "done"))
        assert seen == [
            (3, "sample", 1),
            (3, "sample", 2),
            (3, "sample", "done"),
            (3, "score", "done"),
            (3, "credit", "done"),
            (3, "update", "done"),
            (3, "update", "done"),
            (3, "after", "done"),
        ]
        assert "replay" in str(app.header.render())
        await pilot.press("u", "u")
        await settled(pilot)
        assert app.session.shown.number == 4, "there is nothing after the end"


async def test_undo_reaches_the_start(run):
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        for _ in range(6):
            await pilot.press("z")
            await settled(pilot)
        assert all_text(app.tokens) == ""
        await pilot.press("u")
        await settled(pilot)
        assert app.session.shown.number == 1


async def test_running_plays_on_and_space_stops_it(run, monkeypatch):
    monkeypatch.setattr(sources, "PACE", 0.01)
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        await pilot.press("space")
        for _ in range(60):
            await settled(pilot)
            if app.session.status.finished and not app.session.status.running:
                break
            await asyncio.sleep(0.02)
        assert app.session.shown.number == 4
        assert not app.session.status.running


async def test_settings_cannot_be_changed(run):
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        await app._turned([("beta", 0.3)])
        await settled(pilot)
        assert app.session.settings["beta"] == synthetic_started().settings["beta"]
        assert any("cannot be changed" in n.message for n in app._notifications)


async def test_the_settings_are_those_of_the_update_shown(run):
    writer = RunWriter.reopen(run)
    for changed in (
        Changed(update=2, phase="after", name="epsilon", value=0.7, previous=0.2),
        Changed(
            update=4, phase="score", name="algorithm", value="reinforce", previous="grpo", also={"surrogate": "logp"}
        ),
    ):
        writer.append(changed)
    writer.close()
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        assert "−A·ℓ" in all_text(app.inspector)
        assert app.session.settings["surrogate"] == "logp"
        await pilot.press("z")
        await settled(pilot)
        assert "clip(w, 0.3, 1.7)" in all_text(app.inspector)
        assert app.session.settings["surrogate"] == "ppo"
        await pilot.press("z")
        await settled(pilot)
        assert "clip(w, 0.8, 1.2)" in all_text(app.inspector), "after the update is after its optimizer steps"


async def test_a_damaged_record_is_told_not_waited_for(run):
    writer = RunWriter.reopen(run)
    writer.append(Changed(update=2, phase="sample", name="epsilon", value=0.7, previous=0.2))
    writer.close()
    with sqlite3.connect(run) as db:
        db.execute("UPDATE records SET data = x'00' WHERE kind = 'changed'")
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=(160, 45)) as pilot:
        for _ in range(50):
            await settled(pilot)
            if app.session.failed is not None:
                break
            await asyncio.sleep(0.02)
        assert "update 2 is damaged" in str(app.banner.render())
        assert app.banner.has_class("-visible")


async def test_a_growing_run_that_cannot_be_read_any_more_is_told(run, monkeypatch):
    monkeypatch.setattr(sources, "LOOK_AGAIN", 0.02)
    source = ReplaySource(run)
    app = RlplayApp(source)
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        with sqlite3.connect(run) as db:
            db.execute("INSERT INTO records (number, kind, data) VALUES (5, 'sampled', x'00')")
        for _ in range(50):
            await settled(pilot)
            if app.session.failed is not None:
                break
            await asyncio.sleep(0.02)
        assert "update 5 is damaged" in str(app.banner.render())


def test_opening_decodes_no_record_of_the_updates(run, monkeypatch):
    source = ReplaySource(run)
    monkeypatch.setattr(source._reader, "follow", lambda _after: pytest.fail("every record decoded"))

    async def start():
        await source.start()
        await source.close()

    asyncio.run(start())


async def test_a_growing_run_is_followed(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LOOK_AGAIN", 0.02)
    path = synthetic_run(tmp_path / "a.rlplay", updates=1)
    app = RlplayApp(ReplaySource(path))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        writer = RunWriter.reopen(path)
        for record in synthetic_update(2):
            writer.append(record)
        writer.close()
        for _ in range(50):
            await settled(pilot)
            if app.session.shown.number == 2:
                break
            await asyncio.sleep(0.02)
        assert app.session.shown.number == 2
        assert app.session.history.series("reward")[0] == [1, 2]


def test_a_missing_run_says_so(tmp_path):
    with pytest.raises(RunFileError, match="nothing"):
        ReplaySource(tmp_path / "nothing.rlplay")

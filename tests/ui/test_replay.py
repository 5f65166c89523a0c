"""A recorded run behind the same keys: the playhead steps, nothing is changed, a growing run is followed."""

import asyncio
import sqlite3

import msgspec
import numpy as np
import pytest

from rlplay.algorithms.settings import UNKNOWN
from rlplay.trace.history import History
from rlplay.trace.records import Changed, Rewound
from rlplay.trace.runfile import RunFileError, RunWriter
from rlplay.trace.update import Update
from rlplay.ui.app import RlplayApp
from rlplay.ui.plot.picture import CURSOR
from rlplay.ui.session import sources
from rlplay.ui.session.reading import next_belief
from rlplay.ui.session.session import Session
from rlplay.ui.session.sources import ReplaySource
from tests.recorded import synthetic_run, synthetic_started, synthetic_update
from tests.ui.stage import all_text, pressed, settled, text_of, until
from tests.ui.test_narration import narrated_with_findings


@pytest.fixture
def run(tmp_path):
    return synthetic_run(tmp_path / "a.rlplay", updates=4)


async def opened(pilot):
    await until(pilot, lambda: pilot.app.play.session.status is not None)
    await settled(pilot)


async def test_it_opens_at_the_end_with_all_curves(run):
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        assert app.play.session.shown.number == 4
        assert app.play.session.run.history.series("reward")[0] == [1, 2, 3, 4]
        assert "end of the recording" in str(app.panels.header.render())
        assert "Word problems" in str(app.panels.header.render())


async def test_the_update_shown_is_numbered_and_lit_in_the_curves(run):
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        panel = app.panels.curves.panels[0]
        for key, number, lit in (("", 4, False), ("z", 3, True), ("z", 2, True), ("u", 3, True), ("u", 4, False)):
            if key:
                await pilot.press(key)
            await settled(pilot)
            header = str(app.panels.header.render())
            assert f"update {number} of 4" in header
            tokens = dict(zip(*app.play.session.run.history.series("num_tokens"), strict=True))[number]
            assert f"{tokens:,.0f} tokens" in header
            spans = [span for span in panel.render().spans if span.style == CURSOR]
            assert bool(spans) == lit
            if lit:
                assert spans[0].start == panel._drawn[1].frame.column(number)


async def test_keys_step_through_what_was_recorded(run):
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        await pressed(pilot, "z", "z")
        assert (app.play.session.shown.number, app.play.session.shown.phase) == (2, "after")
        seen = []
        for key in ("full_stop", "full_stop", "n", "n", "n", "s", "s", "u"):
            await pressed(pilot, key)
            shown = app.play.session.shown
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
        assert "replay" in str(app.panels.header.render())
        await pressed(pilot, "u", "u")
        assert app.play.session.shown.number == 4, "there is nothing after the end"


async def test_settings_cannot_be_changed(run):
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        await app.play.perform("set", {"beta": 0.3})
        await pressed(pilot, "k", "right", "a")
        assert app.play.session.on_record() == synthetic_started().settings
        assert "recorded run" in app.screen.query_one("Vertical").border_title, "it stays open and says why"


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
        await app.play.perform("maths", True)
        await settled(pilot)
        assert "−A·ℓ" in all_text(app.panels.inspector)
        assert app.play.session.settings.surrogate == "logp"
        await pressed(pilot, "z")
        assert "clip(w, 0.3, 1.7)" in all_text(app.panels.inspector)
        assert app.play.session.settings.surrogate == "ppo"
        await pressed(pilot, "z")
        assert "clip(w, 0.8, 1.2)" in all_text(app.panels.inspector), "after the update is after its optimizer steps"


async def test_hints_speak_of_a_recording(run):
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        assert "The recording ends here" in str(app.panels.narrator.render())
        assert "lesson" not in str(app.panels.keys.render())
        await pressed(pilot, "left_square_bracket")
        assert "v goes back" in str(app.panels.narrator.render())
        await pressed(pilot, "v", "Z")
        assert "start of the recording" in str(app.panels.narrator.render())
        assert "play the recording" in text_of(app.panels.tokens)
        for key, hint in (
            ("full_stop", "shows the next token"),
            ("n", "n shows what the answers earned"),
            ("n", "n shows which answers"),
            ("n", "s shows one optimizer step"),
            ("n", "u what the update changed"),
            ("n", "u shows the next update, space plays on"),
        ):
            await pressed(pilot, key)
            assert hint in str(app.panels.narrator.render()), key
        await pilot.press("t")
        assert any("has no lesson" in n.message and "rlplay synthetic" in n.message for n in app._notifications)


async def test_a_warning_is_the_same_in_a_recording(run):
    update, history = Update(1), History()
    for record in synthetic_update(1):
        update.add(record)
    update.add(msgspec.structs.replace(update.sampled, truncated=np.ones_like(update.sampled.truncated)))
    live, replayed = (narrated_with_findings(update, history, UNKNOWN, place).warning for place in ("live", "replay"))
    assert live.endswith("Raise max_completion_length. `h` for details.")
    assert replayed == live


def damage(run, where):
    with sqlite3.connect(run) as db:
        db.execute(f"UPDATE records SET data = x'00' WHERE {where}")


async def test_a_damaged_update_is_a_line_and_the_others_stay_within_reach(run):
    damage(run, "number = 3 AND kind = 'sampled'")
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        for key, number, damaged in (
            ("left_square_bracket", 3, True),
            ("left_square_bracket", 2, False),
            ("v", 4, False),
            ("z", 3, True),
            ("z", 2, False),
            ("u", 3, True),
            ("u", 4, False),
        ):
            await pressed(pilot, key)
            assert app.play.session.shown.number == number
            for panel in (app.panels.narrator.render(), text_of(app.panels.tokens)):
                assert ("update 3 is damaged" in " ".join(str(panel).split())) == damaged
        assert app.play.session.failed is None


async def test_an_unreadable_update_is_reported_while_a_key_moves(run):
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        with sqlite3.connect(run) as db:
            db.execute("ALTER TABLE records RENAME TO gone")
        for key in ("z", "left_square_bracket"):
            await pressed(pilot, key)
        assert "Cannot read the run" in app.panels.banner.border_title
        assert "no such table" in str(app.panels.banner.render())
        assert any("no such table" in n.message for n in app._notifications)
        with sqlite3.connect(run) as db:
            db.execute("ALTER TABLE gone RENAME TO records")
        await pressed(pilot, "r")
        assert not app.panels.banner.has_class("-visible")
        await pressed(pilot, "z")
        assert app.play.session.shown.number == 3


async def test_a_damaged_record_is_reported_without_waiting(run):
    writer = RunWriter.reopen(run)
    writer.append(Changed(update=2, phase="sample", name="epsilon", value=0.7, previous=0.2))
    writer.close()
    with sqlite3.connect(run) as db:
        db.execute("UPDATE records SET data = x'00' WHERE kind = 'changed'")
    app = RlplayApp(ReplaySource(run))
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: app.play.session.failed is not None)
        await settled(pilot)
        assert "update 2 is damaged" in str(app.panels.banner.render())
        assert app.panels.banner.has_class("-visible")


async def test_a_growing_run_that_becomes_unreadable_is_reported(run, monkeypatch):
    monkeypatch.setattr(sources, "POLL_SECONDS", 0.02)
    source = ReplaySource(run)
    app = RlplayApp(source)
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        with sqlite3.connect(run) as db:
            db.execute("INSERT INTO records (number, kind, data) VALUES (5, 'changed', x'00')")
        await until(pilot, lambda: app.play.session.failed is not None)
        await settled(pilot)
        assert "update 5 is damaged" in str(app.panels.banner.render())


def test_opening_decodes_no_record_of_the_updates(run, monkeypatch):
    source = ReplaySource(run)
    monkeypatch.setattr(source._reader, "follow", lambda _after: pytest.fail("every record decoded"))

    async def start():
        await source.start()
        await source.close()

    asyncio.run(start())


async def test_a_recording_that_is_opened_again_is_read_anew(run):
    source = ReplaySource(run)
    session, kept = Session(source), []
    for _ in range(2):
        await source.start()
        while not source._queue.empty():
            session.apply(source._queue.get_nowait())
        kept.append(session.run.beliefs.known)
        while next_belief(session):
            pass
        kept.append(session.run.beliefs.known)
    assert kept == [0, 4, 0, 4], "the trainer may have gone back while nobody looked"
    await source.close()


async def test_a_growing_run_is_followed(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "POLL_SECONDS", 0.02)
    path = synthetic_run(tmp_path / "a.rlplay", updates=1)
    app = RlplayApp(ReplaySource(path))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        writer = RunWriter.reopen(path)
        for record in synthetic_update(2):
            writer.append(record)
        writer.close()
        await until(pilot, lambda: app.play.session.shown.number == 2)
        assert app.play.session.shown.number == 2
        assert app.play.session.run.history.series("reward")[0] == [1, 2]


async def test_a_growing_run_that_goes_back_forgets_the_health_of_what_it_undid(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "POLL_SECONDS", 0.02)
    path = synthetic_run(tmp_path / "a.rlplay", updates=2)
    app = RlplayApp(ReplaySource(path))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(pilot)
        health = app.play.session.health
        await until(pilot, lambda: app.play.session.digesting.left(2) == 0 and health.knows(2))
        writer = RunWriter.reopen(path)
        writer.append(Rewound(update=1, abandoned=2))
        writer.close()
        await until(pilot, lambda: not health.knows(2))
        assert health.knows(1)


def test_a_missing_run_says_so(tmp_path):
    with pytest.raises(RunFileError, match="nothing"):
        ReplaySource(tmp_path / "nothing.rlplay")

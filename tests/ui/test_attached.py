"""A screen on a trainer that listens: it steers what it can, says why it cannot the rest, and stops nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("transformers")
from rlplay.foreign.copy import Copy
from rlplay.link.trainer_address import find
from rlplay.record.trl.steering import CANNOT, TAKEN
from rlplay.trace.runfile import RunReader
from rlplay.ui.app import RlplayApp
from rlplay.ui.session.attached import GONE, AttachedSource
from rlplay.ui.status.footer import Footer
from tests.record.batches import answers, begun, write
from tests.record.fake_trainer import Trainer
from tests.ui.stage import pressed, settled, until
from tests.ui.test_knobs import go_to


@pytest.fixture
def trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trainer]:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    recorder = begun(tmp_path / "run")

    def record(update: int) -> None:
        time.sleep(0.02)  # so that there are not thousands of updates
        write(recorder, update, answers(update, 2, 2, 1), range(4))

    made = Trainer(tmp_path / "run", record=record)
    yield made
    made.end()
    recorder.close()


def attached(tmp_path: Path) -> RlplayApp:
    copy = Copy(tmp_path / "run")
    return RlplayApp(AttachedSource(copy, find(copy.origin)))


async def paused(pilot) -> int:
    """The update that it is paused after, once the screen shows it."""
    session = pilot.app.play.session
    await until(pilot, lambda: session.status is not None and session.status.running and session.shown is not None)
    await pilot.press("space")
    await until(pilot, lambda: not session.status.running)
    await until(pilot, lambda: session.shown.number == session.status.update and session.shown.finished is not None)
    await settled(pilot)
    return session.status.update


async def test_it_pauses_steps_and_runs_again(trainer: Trainer, tmp_path: Path) -> None:
    app = attached(tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        at = await paused(pilot)
        assert trainer.updates == at
        await pilot.press("u")
        await until(pilot, lambda: app.play.session.shown.number == at + 1 and not app.play.session.status.running)
        assert trainer.updates == at + 1
        await pilot.press("space")
        await until(pilot, lambda: trainer.updates > at + 3)
        assert app.play.session.failed is None


async def test_a_paused_trainer_is_shown_with_its_newest_update(
    trainer: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlplay.ui.session.attached.POLL_SECONDS", 3600.0)
    app = attached(tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        session = app.play.session
        await until(pilot, lambda: session.status is not None)
        await pilot.press("space")
        await until(pilot, lambda: not session.status.running)
        assert session.run.finished == session.status.update


async def test_a_setting_of_another_type_is_not_taken(trainer: Trainer, tmp_path: Path) -> None:
    app = attached(tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        at = await paused(pilot)
        trainer.settings |= {"warmup_steps": 0.1, "beta": 0.5}
        await pilot.press("u")
        await until(pilot, lambda: app.play.session.status.update == at + 1)
        assert app.play.session.settings.beta == 0.5
        assert "warmup_steps" not in app.play.session.on_record()


async def test_what_the_trainer_cannot_do_is_dim_and_says_why(trainer: Trainer, tmp_path: Path) -> None:
    app = attached(tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        at = await paused(pilot)
        content = app.query_one(Footer).render()
        inks = {content.plain[s.start : s.end]: str(s.style) for s in content.spans}
        assert inks["z"] == "$text-muted"
        assert inks["u"] == inks["?"] == "bold $foreground"
        for key, verb in (("z", "undo"), (".", "token"), ("i", "probe")):
            await pressed(pilot, key)
            assert [n.message for n in app._notifications] == [CANNOT[verb]]
            app.clear_notifications()
        assert trainer.updates == at
        assert app.play.session.status.update == at


async def test_a_setting_that_the_trainer_reads_again_is_changed_and_the_others_are_fixed(
    trainer: Trainer, tmp_path: Path
) -> None:
    app = attached(tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await paused(pilot)
        app.tuning.open(at="temperature")  # the run does not say how it is set, so only a jump leads there
        await until(pilot, lambda: app.screen is app.tuning.knobs and app.screen.is_mounted)
        assert app.tuning.knobs.draft.fixed("temperature") == "TRL reads it only when training begins"
        go_to(app.tuning.knobs, "temperature")
        before = app.tuning.knobs.draft.value("temperature")
        await pilot.press("right")
        assert app.tuning.knobs.draft.value("temperature") == before
        assert not app.tuning.knobs.draft.fixed("learning_rate")
        go_to(app.tuning.knobs, "learning_rate")
        await pilot.press("enter", *["backspace"] * 12, *"0.02", "enter", "a")
        await until(pilot, lambda: trainer.settings["learning_rate"] == 0.02)
        await until(pilot, lambda: app.play.session.settings.learning_rate == 0.02)


async def test_a_refused_setting_is_shown_with_its_reason(trainer: Trainer, tmp_path: Path) -> None:
    trainer._change = lambda name, value: "there is no reference model"  # type: ignore[method-assign]
    app = attached(tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await paused(pilot)
        app.clear_notifications()
        await pilot.press("k")
        await until(pilot, lambda: app.screen is app.tuning.knobs and app.screen.is_mounted)
        go_to(app.tuning.knobs, "learning_rate")
        await pilot.press("enter", *["backspace"] * 12, *"0.02", "enter", "a")
        await until(pilot, lambda: app._notifications)
        assert "learning_rate stays as it is: there is no reference model." in [n.message for n in app._notifications]


async def test_leaving_lets_a_paused_training_run(trainer: Trainer, tmp_path: Path) -> None:
    app = attached(tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await paused(pilot)
        await pilot.press("q")
    trainer.goes_on()


async def test_leaving_waits_for_what_is_being_read(
    trainer: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    begun_one, go_on, pull, close = threading.Event(), threading.Event(), Copy.pull, RunReader.close

    def slow(copy: Copy) -> int:
        begun_one.set()
        assert go_on.wait(30)
        done.append("read")
        return pull(copy)

    def closed(reader: RunReader) -> None:
        if reader is app.play.session.source._reader:
            done.append("closed")
        close(reader)

    app = attached(tmp_path)
    monkeypatch.setattr(Copy, "pull", slow)
    monkeypatch.setattr(RunReader, "close", closed)
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, begun_one.is_set)
        leaving = asyncio.create_task(app.play.session.source.close())
        await pilot.pause()
        assert not leaving.done()
        go_on.set()
        await leaving
    assert done.index("read") < done.index("closed")


async def test_a_trainer_that_is_gone_leaves_its_recording_on_the_screen(trainer: Trainer, tmp_path: Path) -> None:
    app = attached(tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        at = await paused(pilot)
        trainer.remote._server.close()
        trainer.remote._screen.shutdown(2)
        await until(pilot, lambda: app.play.session.failed is not None)
        assert app.play.session.failed.text == GONE
        assert app.play.session.shown.number >= at


async def test_the_end_of_the_training_is_no_failure(trainer: Trainer, tmp_path: Path) -> None:
    app = attached(tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: app.play.session.status is not None)
        trainer.end()
        await until(pilot, lambda: app.play.session.status.finished)
        await until(
            pilot,
            lambda: app.play.session.shown is not None and app.play.session.shown.number == trainer.updates,
        )
        await settled(pilot)
        assert app.play.session.failed is None


async def test_a_second_screen_is_told_why_it_cannot_enter(trainer: Trainer, tmp_path: Path) -> None:
    first, second = attached(tmp_path), attached(tmp_path)
    async with first.run_test(size=(160, 45)) as pilot:
        await paused(pilot)
        async with second.run_test(size=(120, 35)) as other:
            await until(other, lambda: second.play.session.failed is not None)
            assert second.play.session.failed.text == TAKEN
        assert first.play.session.failed is None

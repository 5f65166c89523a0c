"""A run that has curves and no answers: they have all the room, and no key needs what is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlplay.foreign.copy import Copy
from rlplay.record import Recorder
from rlplay.ui.app import RlplayApp
from rlplay.ui.compare.compare_screen import CompareScreen
from rlplay.ui.compare.differences import differing_line
from rlplay.ui.curves.first_views import of_metrics
from rlplay.ui.session.sources import ReplaySource
from rlplay.verbs import VERBS
from tests.foreign.grown import Row, lines
from tests.ui.stage import settled, text_of, until

LEAVES = ("q", "ctrl+q", "ctrl+c")


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def logged(steps: int) -> list[Row]:
    return [
        {"step": 10 * step, "train/reward": step / 9, "train/grad_norm": 1.0, "train/entropy": 2.0, "train/mine": 5.0}
        | ({"eval/reward": 0.5} if step % 2 else {})
        for step in range(1, steps + 1)
    ]


def app_of(folder: Path, steps: int = 4) -> RlplayApp:
    lines(folder / "metrics.jsonl", logged(steps))
    return RlplayApp(ReplaySource(Copy(folder).path))


@pytest.mark.parametrize(("size", "seen"), [
    ((80, 24), ["reward", "grad_norm"]),
    ((120, 35), ["reward", "grad_norm", "entropy", "mine"]),
    ((160, 45), ["reward", "grad_norm", "entropy", "mine"]),
])  # fmt: skip
async def test_the_curves_that_there_are_fill_the_screen(
    size: tuple[int, int], seen: list[str], tmp_path: Path
) -> None:
    app = app_of(tmp_path)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.play.session.status is not None)
        await settled(pilot)
        assert [panel.view.metrics[0] for panel in app.panels.curves.seen] == seen
        assert all(panel.region.height > 6 for panel in app.panels.curves.seen)
        assert not app.panels.tokens.region
        shown = app.play.session.shown
        assert shown is not None
        assert shown.number == 4
        assert "none of its answers" in text_of(app.panels.narrator)
        await pilot.press("z")
        await settled(pilot)
        assert app.play.session.shown.number == 3


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_every_key_works_without_answers(size: tuple[int, int], tmp_path: Path) -> None:
    app = app_of(tmp_path)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.play.session.status is not None)
        for key in [key for verb in VERBS.values() for key in verb.keys if key not in LEAVES]:
            await pilot.press(key)
            await settled(pilot)
            await pilot.press("escape", "escape")
        await settled(pilot)
        assert app.is_running


def test_no_curve_is_there_twice() -> None:
    views = of_metrics(["reward", "completions/mean_length", "entropy", "grad_norm", "mine", "other"])
    assert [view.metrics for view in views] == [
        ("reward", "eval_reward"), ("completions/mean_length", "entropy"), ("grad_norm",), ("mine",),
    ]  # fmt: skip


async def test_it_follows_the_file(tmp_path: Path) -> None:
    app = app_of(tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: app.play.session.status is not None)
        lines(tmp_path / "metrics.jsonl", logged(6))
        await until(pilot, lambda: app.play.session.shown is not None and app.play.session.shown.number == 6)
        await settled(pilot)
        assert "update 6 of 6 · step 60" in str(app.panels.header.render())


async def test_a_recording_of_numbers_alone_is_shown_as_curves(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "mine")
    recorder.begin("my trainer 1.0", {"algorithm": "grpo"})
    for update in range(1, 5):
        recorder.end(update, {"reward": update / 9, "grad_norm": 1.0})
    recorder.close()
    app = RlplayApp(ReplaySource(Copy(tmp_path / "mine").path))
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: app.play.session.shown is not None and app.play.session.shown.number == 4)
        await settled(pilot)
        assert [panel.view.metrics[0] for panel in app.panels.curves.seen] == ["reward", "grad_norm"]
        assert not app.panels.tokens.region
        assert "none of its answers" in text_of(app.panels.narrator)


async def test_several_runs_have_all_the_room_for_their_curves(tmp_path: Path) -> None:
    for name in ("one", "other"):
        lines(tmp_path / name / "metrics.jsonl", logged(4 + len(name)))
    one, other = (ReplaySource(Copy(tmp_path / name).path) for name in ("one", "other"))
    app = RlplayApp(one, [other])
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, CompareScreen) and app.screen.runs.number > 0)
        screen = app.screen
        assert isinstance(screen, CompareScreen)
        await settled(pilot)
        assert len(screen.curves.seen) == 4
        assert all(panel.region.height >= 20 for panel in screen.curves.seen)
        assert not screen.tokens[0].region
        assert "not on record" in differing_line(screen.runs, 160).plain

"""While the engine starts: what the run is about, in the place of panels that would be empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlplay.link.messages import Advance, Failed, Loading
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Job
from rlplay.ui.app import RlplayApp
from rlplay.ui.session.sources import LiveSource
from rlplay.ui.words.batch import batch
from tests.recorded import synthetic_started
from tests.ui.stage import Fed, settled, shown, until

SIZES = [(80, 24), (120, 35), (160, 45), (240, 67)]


@pytest.mark.parametrize("stage", ["all", "map", "token"])
@pytest.mark.parametrize("size", SIZES)
async def test_it_says_what_the_run_is_about_until_the_engine_is_there(size: tuple[int, int], stage: str) -> None:
    source = Fed()
    source.stage = stage
    app = RlplayApp(source)
    async with app.run_test(size=size) as pilot:
        source.put(Loading("importing torch", 0.25))
        await until(pilot, lambda: "importing torch" in shown(app.panels.starting))
        await settled(pilot)
        assert all(text in shown(app.panels.starting) for text in (source.title, source.question, *source.about))
        assert app.panels.starting.region.height >= 10
        assert not app.panels.splits.region.area
        assert not app.panels.curves.region.area
        source.records([synthetic_started()])
        source.status()
        await settled(pilot)
        assert not app.panels.starting.region.area
        assert app.panels.splits.region.area or app.panels.curves.region.area
        assert app.focused is not None
        assert app.focused.region.area


async def test_keys_work_meanwhile() -> None:
    source = Fed()
    app = RlplayApp(source)
    async with app.run_test(size=(120, 35)) as pilot:
        await pilot.press("u")
        await settled(pilot)
        assert source.commands[-1] == Advance("update", 1)
        assert app.panels.starting.region.area, "the engine is still not there"


async def test_an_engine_that_cannot_start_gives_the_panels_back() -> None:
    source = Fed()
    app = RlplayApp(source)
    async with app.run_test(size=(120, 35)) as pilot:
        source.put(Failed("No such model."), None)
        await settled(pilot)
        assert not app.panels.starting.region.area
        assert "No such model." in shown(app.panels.banner)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("learn-to-think", "16 prompts, 8 answers to each. GRPO, at most 60 updates."),
        ("grid", "16 episodes. PPO-clip"),
        ("dpo", "Supervised fine-tuning, then DPO, at most 30 updates."),
    ],
)
def test_it_says_what_an_update_is_made_of(name: str, words: str, tmp_path: Path) -> None:
    source = LiveSource(Job(load(name), str(tmp_path / "run.rlplay")))
    assert words in batch(load(name))
    assert source.about == (load(name).summary.strip(), batch(load(name)))

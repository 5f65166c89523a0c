"""What the screen gives its room to."""

from __future__ import annotations

import msgspec
import pytest

from rlplay.scenario.loader import ScenarioError, load
from rlplay.scenario.subject import subject
from rlplay.ui.app import RlplayApp
from rlplay.ui.compat import notifications_of
from rlplay.ui.main.stages import fitting
from rlplay.verbs import STAGES
from tests.ui.stage import on_screen, playground, pressed, settled


def stages_of(app: RlplayApp) -> list[str]:
    return [name for name in STAGES if app.panels.main.has_class(f"-stage-{name}")]


@pytest.mark.parametrize(("name", "stage"), [("grid", "map"), ("pick-two", "all"), ("two-plus-two", "all")])
def test_a_world_with_squares_begins_with_its_map(name, stage):
    assert subject(msgspec.structs.replace(load(name), stage="")) == stage


def test_a_run_file_may_name_what_is_no_stage():
    assert subject(msgspec.structs.replace(load("grid"), stage="a b")) == "map"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("stage: tokn", "2: unknown stage 'tokn'; did you mean 'token'?"),
        ("stage: map", "2: stage map needs a world, and this scenario has none"),
        ("script: [{stage: map}]", "script step 1: stage map needs a world, and this scenario has none"),
    ],
)
def test_a_stage_that_cannot_be(line, words, tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(f"title: Own\n{line}\nquestion: Why?\ntask: arithmetic\n")
    with pytest.raises(ScenarioError) as caught:
        load(str(path))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_run_begins_with_its_own_subject():
    source = playground()[1]
    source.stage = "answers"
    app = RlplayApp(source)
    async with app.run_test(size=(120, 35)) as pilot:
        source.update(1)
        await settled(pilot)
        assert stages_of(app) == ["answers"]
        assert not app.panels.inspector.region
        await pressed(pilot, "p")
        assert stages_of(app) == ["all"]
        assert app.panels.inspector.region
        await pressed(pilot, *["p"] * (len(fitting(app.play.session)) - 1))
        assert stages_of(app) == ["answers"]


async def test_a_script_names_the_stage():
    async with on_screen(1, size=(120, 35)) as (app, _, pilot):
        await app.play.perform("stage", "token")
        await settled(pilot)
        assert stages_of(app) == ["token"]
        assert app.focused is app.panels.tokens
        await app.play.perform("panel", "curves")
        await settled(pilot)
        assert app.focused in app.panels.curves.seen
        assert app.focused.region


async def test_a_run_without_a_world_has_no_map():
    async with on_screen(1, size=(120, 35), notifications=True) as (app, _, pilot):
        await app.play.perform("stage", "map")
        await settled(pilot)
        assert stages_of(app) == ["all"]
        assert "This run has no map" in next(iter(notifications_of(app))).message

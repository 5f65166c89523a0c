"""What the screen gives its room to."""

from __future__ import annotations

import msgspec
import pytest

from rlplay.scenario.loader import ScenarioError, load
from rlplay.scenario.schema import Scenario
from rlplay.scenario.subject import subject
from rlplay.ui.app import RlplayApp
from rlplay.ui.command_palette import commands
from rlplay.ui.compat import notifications_of
from rlplay.ui.main.stages import fitting
from rlplay.ui.session.sources import ReplaySource
from rlplay.ui.world.world_map import MAPS
from rlplay.verbs import STAGES
from tests.ui.stage import on_screen, playground, pressed, settled, shown, until
from tests.ui.test_world_map import recorded


def stages_of(app: RlplayApp) -> list[str]:
    return [name for name in STAGES if app.panels.main.has_class(f"-stage-{name}")]


MAZE, ARMS = {"map": ["S.G"], "moves": ["←", "→"]}, {"arms": {"a": 1, "b": 0}}


@pytest.mark.parametrize(
    ("about", "stage"),
    [
        ({"world": MAZE}, "map"),
        ({"world": ARMS}, "all"),
        ({"task": "arithmetic"}, "all"),
        ({"task": "guess"}, "conversation"),
        ({"task": "mine.py:make"}, "all"),
        ({"task": "guess", "stage": "token"}, "token"),
        ({"task": "arithmetic", "stage": "map"}, "all"),  # as a run file may claim
        ({"world": MAZE, "stage": "a b"}, "map"),
    ],
)
def test_what_a_scenario_is_about(about, stage):
    assert subject(Scenario("own", "Own", "Why?", **about)) == stage


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("stage: tokn", "2: unknown stage 'tokn'; did you mean 'token'?"),
        ("stage: map", "2: stage map needs a world, and this scenario has none"),
        ("script: [{stage: map}]", "script step 1: stage map needs a world, and this scenario has none"),
        ("script: [{you: {say: Look., stage: map}}]", "script step 1: stage map needs a world"),
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


async def test_the_stages_stand_above_the_panels_and_a_click_chooses_one():
    async with on_screen(1, size=(160, 45)) as (app, _, pilot):
        names = fitting(app.play.session)
        assert shown(app.panels.tabs).split() == ["p", *names]
        x = shown(app.panels.tabs).index("river") + 1
        await pilot.click(app.panels.tabs, offset=(x, 0))
        await settled(pilot)
        assert stages_of(app) == ["river"]
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        assert shown(app.panels.tabs).split() == ["p", "river"]
        assert app.panels.tabs.region.right == 80


PANELS_SEEN = {
    "token": ({"tokens", "inspector"}, {"tokens", "inspector"}),
    "answers": ({"rollouts", "tokens"}, {"rollouts", "tokens", "row"}),
    "curve": ({"row"}, {"rollouts", "tokens", "row"}),
    "tree": ({"subject"}, {"subject", "beside"}),
    "river": ({"tokens", "subject"}, {"tokens", "subject", "beside"}),
    "all": ({"rollouts", "tokens", "row"}, {"rollouts", "tokens", "row", "inspector"}),
}
"""What a stage shows on a narrow screen, and on wider ones."""


def seen(app: RlplayApp) -> set[str]:
    panels, curves = app.panels, app.panels.curves
    widgets = {"row": curves, "beside": curves.beside, "subject": curves.subject} | {
        widget.id: widget for widget in (panels.rollouts, panels.tokens, panels.inspector)
    }
    return {name for name, widget in widgets.items() if widget.region.area}


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (160, 45), (240, 67)])
async def test_what_a_stage_shows(size):
    async with on_screen(1, 2, size=size) as (app, _, pilot):
        for stage, (small, large) in PANELS_SEEN.items():
            await app.play.perform("stage", stage)
            await settled(pilot)
            there = (
                small if size[0] < 110 else large | ({"inspector"} if size[0] >= 150 and stage == "answers" else set())
            )
            assert seen(app) - {"beside" * (size[0] == 240 and stage == "all")} == there, stage
            assert app.focused is app.panels.subject, stage
            main = app.panels.inspector if stage == "token" else app.panels.subject
            others = [app.panels.curves.beside, app.panels.side, app.panels.tokens, app.panels.inspector]
            if stage != "all":
                most = main.parent.region.area if stage == "tree" else main.region.area
                assert all(most >= other.region.area for other in others), stage


async def test_a_map_has_the_room_and_the_knobs_show_the_answers(tmp_path):
    app = RlplayApp(ReplaySource(recorded(tmp_path, load("grid").world, algorithm="ppo")))
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: app.play.session.run.newest is not None)
        await settled(pilot)
        assert seen(app) == {"subject", "beside", "inspector"}
        assert app.focused is app.panels.curves.first
        await pressed(pilot, "k")
        assert {"tokens", "inspector"} <= seen(app)
        assert "subject" not in seen(app)
        await pressed(pilot, "escape")
        assert seen(app) == {"subject", "beside", "inspector"}
        await app.play.perform("curve", "optimal map")
        await settled(pilot)
        assert stages_of(app) == ["map"]
        assert app.panels.curves.first.view == MAPS[2]
        await pilot.resize_terminal(240, 67)
        await settled(pilot)
        assert app.panels.curves.subject.region.width > 2 * app.panels.side.region.width
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        assert seen(app) == {"subject"}


async def test_a_walk_over_squares_that_are_none_leaves_the_map():
    app, source = playground(scenario="grid", scenario_text=msgspec.yaml.encode(load("grid")).decode())
    async with app.run_test(size=(160, 45)) as pilot:
        source.update(1)  # whose prompts are sums
        await settled(pilot)
        assert "a1" in shown(app.panels.curves.first)


@pytest.mark.parametrize(
    ("stage", "verb", "argument", "then"),
    [
        ("token", "curve", "entropy", "curve"),
        ("answers", "belief", None, "river"),
        ("river", "tree", None, "tree"),
        ("tree", "pull", None, "curve"),
        ("tree", "panel", "token", "all"),
        ("token", "panel", "answers", "all"),
        ("answers", "curve", "reward", "answers"),
        ("all", "belief", None, "all"),
    ],
)
async def test_what_is_asked_for_and_hidden_is_shown(stage, verb, argument, then):
    async with on_screen(1, 2, size=(160, 45)) as (app, _, pilot):
        await app.play.perform("stage", stage)
        await settled(pilot)
        await app.play.perform(verb, argument)
        await settled(pilot)
        assert stages_of(app) == [then]
        assert app.focused is not None
        assert app.focused.region


async def test_a_curve_that_a_lesson_speaks_of_stands_below_the_token():
    async with on_screen(1, 2, size=(120, 35)) as (app, _, pilot):
        await app.play.perform("stage", "token")
        app.panels.exhibit(["entropy"])
        await settled(pilot)
        assert "entropy" in app.panels.curves.shown
        assert app.panels.inspector.region
        app.panels.exhibit([])
        await settled(pilot)
        assert not app.panels.curves.region


@pytest.mark.parametrize("name", ["grid", "beta"])
async def test_a_curve_has_its_place_beside_a_map_and_needs_the_room_on_a_narrow_screen(name, tmp_path):
    app = RlplayApp(ReplaySource(recorded(tmp_path, load(name).world, algorithm="ppo")))
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: app.play.session.run.newest is not None)
        for size, then in (((120, 35), "map"), ((80, 24), "curve")):
            await pilot.resize_terminal(*size)
            await app.play.perform("stage", "token")
            await settled(pilot)
            await app.play.perform("stage", "map")
            await app.play.perform("curve", "grad_norm")  # at once, as a script does
            await settled(pilot)
            assert stages_of(app) == [then]
            panels = [panel for panel in app.panels.curves.seen if panel.region.area]
            assert "grad_norm" in {metric for panel in panels for metric in panel.view.metrics}


async def test_the_palette_finds_the_stages_of_this_run():
    async with on_screen(1) as (app, _, _pilot):
        found = {each.title for each in commands(app.play) if each.title.startswith("Stage: ")}
        assert found == {f"Stage: {name}" for name in fitting(app.play.session)}

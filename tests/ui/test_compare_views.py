"""River, tree, pull map and learning map of two runs: which run each is of, and whether both are equal."""

from __future__ import annotations

import pytest

from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.river.belief_river import River, named, shared
from rlplay.verbs import VERBS, VIEWS
from tests.ui.comparison import compared, opened
from tests.ui.curve_panels import subtitle, title
from tests.ui.stage import pressed, settled, shown
from tests.ui.test_belief_river import run

KEYS = {name: VERBS[name].keys[0] for name in VIEWS}


async def read_all(pilot) -> None:
    """Let the comparison read every record that a view lacks."""
    for _ in range(8):
        pilot.app.screen.follow()
    await settled(pilot)


async def test_each_view_names_its_run_by_what_differs_and_the_same_key_brings_the_curves_back(tmp_path):
    app = compared(tmp_path, updates=(4, 4), seeds=(0, 1))
    async with app.run_test(size=(160, 45)) as pilot:
        screen = await opened(pilot)
        for name, key in KEYS.items():
            await pilot.press(key)
            await read_all(pilot)
            one, other = screen.views.panels
            assert one.region.y == other.region.y
            assert one.region.area
            assert not screen.curves.region.area
            assert title(one).startswith("━ A seed 0 · ")
            assert title(other).startswith("┅ B seed 1 · ")
            # The synthetic held-out answers are the same in both runs.
            assert ("equal" in title(one) + title(other)) == (name == "learning")
            assert any(word in title(one).lower() for word in VERBS[name].title.split() if len(word) > 2)
            assert (shown(one) == shown(other)) == (name == "learning")
        await pressed(pilot, key)
        assert screen.curves.region.area
        assert not screen.views.region.area


async def test_equal_runs_are_said_to_be_equal(tmp_path):
    app = compared(tmp_path, updates=(4, 4), seeds=(0, 0))
    async with app.run_test(size=(160, 45)) as pilot:
        screen = await opened(pilot)
        for key in KEYS.values():
            await pilot.press(key)
            await read_all(pilot)
            one, other = screen.views.panels
            assert title(one).startswith("━ A equal to B · ")
            assert title(other).startswith("┅ B equal to A · ")
            assert shown(one) == shown(other)
            assert subtitle(one) == subtitle(other)


async def test_a_run_that_is_ahead_has_the_same_axis_and_is_not_equal(tmp_path):
    app = compared(tmp_path, updates=(8, 4), seeds=(0, 0))
    async with app.run_test(size=(160, 45)) as pilot:
        screen = await opened(pilot)
        await pilot.press(KEYS["belief"])
        await read_all(pilot)
        one, other = screen.views.panels
        assert "equal" not in title(one)
        frames = [panel._drawn[1].frame for panel in (one, other)]
        assert [(frame.first, frame.last) for frame in frames] == [(1, 8), (1, 8)]
        one.focus()
        await pilot.press("left")
        assert one.cursor == other.cursor == 8


@pytest.mark.parametrize("size", [(80, 24), (100, 30)])
async def test_on_a_narrow_screen_one_is_above_the_other_and_the_arrows_change_both(tmp_path, size):
    app = compared(tmp_path, updates=(3, 3), seeds=(0, 1))
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot)
        await pressed(pilot, KEYS["tree"])
        one, other = screen.views.panels
        assert one.has_focus
        assert one.region.bottom <= other.region.y
        assert min(one.region.height, other.region.height) >= 5
        await pressed(pilot, "down")
        assert "Pull map" in title(one)
        assert "Pull map" in title(other)
        assert screen.views.region.area
        await pressed(pilot, "p")
        assert screen.tokens[0].region.area, "the answers alone"


def test_a_token_has_the_same_band_in_both_rivers() -> None:
    one, other = run(), run()
    assert other.beliefs is not None
    for kept in other.beliefs._kept.values():
        kept.top_ids[:] = 1 - kept.top_ids
    place = one.beliefs.place(one.shown, one.cursor)
    assert named(one.beliefs.at(place)) != named(other.beliefs.at(place))
    bands = shared([one, other])
    assert sorted(bands) == [0, 1]
    assert shared([one, PlotData(one.history)]) == tuple(named(one.beliefs.at(place))), "a run without answers"
    assert River().data(one) != River().data(other)

"""Three sizes of screen: what is in sight, and that nothing is cut off."""

import pytest

from tests.ui.stage import playground, settled, text_of


def seen(app):
    return {w.id or type(w).__name__ for w in (app.rollouts, app.tokens, app.inspector, app.curves) if w.region.area}


@pytest.mark.parametrize(
    ("size", "panels"),
    [
        ((160, 45), {"rollouts", "tokens", "inspector", "CurvePanels"}),
        ((120, 35), {"rollouts", "tokens", "inspector", "CurvePanels"}),
        ((80, 24), {"rollouts", "tokens"}),
    ],
)
async def test_what_is_in_sight(size, panels):
    app, source = playground()
    async with app.run_test(size=size) as pilot:
        source.update(1)
        await settled(pilot)
        assert seen(app) == panels
        assert app.tokens.size.height >= 6
        assert app.tokens.size.width >= 40
        for bar in (app.header, app.phases, app.keys):
            assert bar.region.height == 1
            assert len(str(bar.render())) <= size[0]
        assert "paused" in str(app.header.render())
        assert "? help" in str(app.keys.render())


async def test_the_panel_key_reaches_everything_on_a_small_screen():
    app, source = playground()
    async with app.run_test(size=(80, 24)) as pilot:
        source.update(1)
        await settled(pilot)
        assert "p " in str(app.keys.render())
        found = set()
        for _ in range(3):
            await pilot.press("p")
            await settled(pilot)
            found |= seen(app)
        assert found == {"rollouts", "tokens", "inspector", "CurvePanels"}
        assert seen(app) == {"rollouts", "tokens"}, "once round"


async def test_another_size_lays_everything_out_again():
    app, source = playground()
    async with app.run_test(size=(160, 45)) as pilot:
        source.update(1)
        await settled(pilot)
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        widths = {len(line) for line in text_of(app.rollouts).split("\n")}
        assert widths == {app.rollouts.scrollable_content_region.width}


async def test_footer_clicks_carry_out_verbs():
    app, source = playground()
    async with app.run_test(size=(160, 45)) as pilot:
        await settled(pilot)
        x = str(app.keys.render()).index("n phase")
        await pilot.click(app.keys, offset=(x, 0))
        await settled(pilot)
        assert [command.until for command in source.commands] == ["phase"]

"""Looking at an older update cannot be taken for the present, and one key leads back."""

import pytest

from rlplay.link.messages import Advance, RecordView
from tests.ui.stage import on_screen, pressed, settled

SIZES = pytest.mark.parametrize("size", [(160, 45), (120, 35), (80, 24)])


def borders(app) -> set[tuple[str, str]]:
    """Line and colour of the borders of what is in sight."""
    panels = [app.panels.rollouts, app.panels.tokens, app.panels.inspector, *app.panels.curves.panels]
    return {(panel.styles.border_top[0], panel.styles.border_top[1].hex6) for panel in panels if panel.region.area}


async def looking_back(pilot, source) -> None:
    for number in (1, 2, 3):
        source.update(number)
    await settled(pilot)
    await pressed(pilot, "left_square_bracket")


@SIZES
@pytest.mark.parametrize("key", ["v", "escape"])
@pytest.mark.parametrize("panel", ["tokens", "curves"])
async def test_the_whole_frame_changes_and_one_key_leads_back(size, key, panel):
    async with on_screen(size=size) as (app, source, pilot):
        await settled(pilot)
        await app.play.perform("panel", panel)
        await settled(pilot)
        before = borders(app)
        await looking_back(pilot, source)
        await settled(pilot)
        assert app.play.session.looking == 2
        assert "◉ looking at update 2  v back to live" in str(app.panels.header.render())
        assert "update 3" in str(app.panels.header.render()), "how far the run is stays in sight"
        assert not borders(app) & before, "no border looks as it does at present"
        await pressed(pilot, key)
        assert app.play.session.looking is None
        assert "looking" not in str(app.panels.header.render())
        assert borders(app) == before


@SIZES
async def test_what_is_lit_of_the_phases_differs(size):
    async with on_screen(size=size) as (app, source, pilot):
        await looking_back(pilot, source)
        past = {str(span.style) for span in app.panels.phases._content.spans}
        await pressed(pilot, "v")
        present = {str(span.style) for span in app.panels.phases._content.spans}
        assert "bold $background on $text-muted" in past - present
        assert "bold $background on $foreground" in present - past


async def test_what_was_looked_at_is_noted_with_what_is_done_next_and_only_where_it_changed():
    async with on_screen(1, size=(120, 35)) as (app, source, pilot):
        await app.play.perform("update", 1)
        assert source.commands == [Advance("update", 1)], "nothing was chosen yet"
        await app.play.perform("lens", "entropy")
        await app.play.perform("lens", "credit")
        await app.play.perform("focus", {"completion": 2, "token": 1})
        await settled(pilot)
        await app.play.perform("step", 1)
        await app.play.perform("step", 1)
        look = RecordView("credit", 2, 1)
        assert source.commands[1:] == [look, Advance("step", 1), Advance("step", 1)], "what was only passed is not"


async def test_without_colours_the_panel_with_the_focus_differs_from_the_others_in_the_past_too(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        await looking_back(pilot, source)
        app.panels.inspector.focus()
        await settled(pilot)
        assert app.panels.inspector.styles.border_top[0] == "heavy"
        assert app.panels.curves.seen[0].styles.border_top[0] == "dashed"

"""Motion with a cause: it begins where things were, ends where they are without motion, and never alone."""

from __future__ import annotations

import pytest
from rich.style import Style

from rlplay import user_preferences
from rlplay.ui.lesson.teaching import Plan
from rlplay.ui.theme.inks import blended, palette
from rlplay.ui.theme.themes import THEMES
from tests.recorded import synthetic_update
from tests.ui.stage import all_text, on_screen, playground, settled, until

WIDE = (160, 45)


def looks(app) -> list[list[tuple[str, Style]]]:
    """Every line of the tokens and of the token's panel, with its styles."""
    panels = app.panels.tokens, app.panels.inspector
    return [[(s.text, s.style) for s in panel.line(row)] for panel in panels for row in range(panel.count())]


def still(app) -> bool:
    """Whether nothing moves."""
    return app.panels.tokens._fade.share == app.panels.inspector._slide.share == app.panels.phases._flow.share == 1


async def played(app, source, pilot, moves: bool) -> list:
    """How an update looks after each of its records; with motion each time once it has ended."""
    app.moves = moves
    found = []
    for record in synthetic_update(1):
        source.records([record])
        await settled(pilot)
        await until(pilot, lambda: still(app))
        await settled(pilot)
        found.append((looks(app), app.panels.phases.render()))
    return found


async def test_what_has_moved_looks_as_it_does_without_motion():
    shown = []
    for moves in (False, True):
        async with on_screen(size=WIDE) as (app, source, pilot):
            shown.append(await played(app, source, pilot, moves))
    assert shown[0] == shown[1]


async def test_at_the_end_of_an_update_bars_slide_and_shades_fade_and_numbers_are_true_at_once():
    async with on_screen(size=WIDE) as (app, source, pilot):
        *before, finished = synthetic_update(1)
        source.records(before)
        await settled(pilot)
        app.moves = True
        old = looks(app)
        steady = all_text(app.panels.inspector)
        source.records([finished])
        await until(pilot, lambda: app.panels.tokens._fade.share < 1 and app.panels.inspector._slide.share < 1)
        bars = [
            line[2:5] for line in map(app.panels.inspector.line, range(app.panels.inspector.count())) if len(line) > 6
        ]
        assert any(line.strip() for line in all_text(app.panels.inspector).split("\n"))
        on_the_way = looks(app)
        assert "went" in all_text(app.panels.inspector) or "hardly moved" in all_text(app.panels.inspector)
        assert steady != all_text(app.panels.inspector), "the numbers after the update are there"
        await until(pilot, lambda: app.panels.tokens._fade.share == app.panels.inspector._slide.share == 1)
        await settled(pilot)
        assert looks(app) != on_the_way
        assert looks(app) != old
        assert bars


async def test_while_updates_follow_each_other_the_bars_of_each_slide_when_it_ends():
    async with on_screen(1, size=WIDE) as (app, source, pilot):
        await app.play.perform("lens", "prob_delta")
        source.status(0, running=True)
        source.status(1, running=True)
        *begun, finished = synthetic_update(2)
        source.records(begun)
        await settled(pilot)
        app.moves = True
        assert app.play.session.shown.number == 1
        source.records([finished])
        await until(pilot, lambda: app.panels.inspector._slide.share < 1)
        assert app.play.session.shown.number == 2
        await until(pilot, lambda: still(app))


async def test_nothing_moves_without_a_cause():
    async with on_screen(1, 2, 3, size=WIDE) as (app, _, pilot):
        app.moves = True
        back, on = "left_square_bracket", "right_square_bracket"
        for key in ("c", "c", "right", "down", "m", "x", back, back, on, on):
            await pilot.press(key)
            assert still(app), key


async def test_the_arrow_to_the_next_stage_shows_what_flows_there():
    async with on_screen(size=WIDE) as (app, source, pilot):
        app.moves = True
        sampled, scored, *_ = synthetic_update(1)
        source.records([sampled])
        await settled(pilot)
        line = str(app.panels.phases.render())
        assert "── answers ──▶" in line
        assert "── weights ──▶" in line
        source.records([scored])
        await until(pilot, lambda: app.panels.phases._flow.share < 1)
        assert "●" in str(app.panels.phases.render())
        await until(pilot, lambda: app.panels.phases._flow.share == 1)
        await settled(pilot)
        assert "●" not in str(app.panels.phases.render())
        assert len(str(app.panels.phases.render())) <= app.size.width


@pytest.mark.parametrize("width", [60, 100, 124, 160])
async def test_the_line_of_stages_fits_with_the_longest_detail(width):
    async with on_screen(size=(width, 30)) as (app, source, pilot):
        source.records(synthetic_update(1)[:-1])
        await settled(pilot)
        assert app.panels.phases._content.cell_length <= max(width, 80)


async def test_the_palette_reduces_motion_and_the_next_start_knows(monkeypatch, tmp_path):
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path))
    app, source = playground(plan=Plan(keeps_theme=True))
    async with app.run_test(size=WIDE) as pilot:
        assert not app.moves, "nobody sees a screen without a terminal"
        app.moves = True
        await app.play.perform("motion")
        assert not app.moves
        assert user_preferences.reduced_motion()
        source.update(1)
        await settled(pilot)
        assert app.panels.inspector._slide.share == 1
        await app.play.perform("motion")
        assert not user_preferences.reduced_motion()


def test_between_two_shades_the_background_moves_and_the_text_stays_readable():
    colours = palette({**THEMES[0].to_color_system().generate(), **THEMES[0].variables})
    old, new = colours.up[4], colours.down[4]
    assert blended(old, new, 1.0, colours) == new
    assert blended(colours.text, colours.strong, 0.5, colours) == colours.strong, "no background, nothing to fade"
    between = blended(old, new, 0.5, colours)
    assert between.bgcolor not in (old.bgcolor, new.bgcolor)
    assert blended(old, new, 0.5, palette({**THEMES[0].to_color_system().generate(), **THEMES[0].variables})) == between

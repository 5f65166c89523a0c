"""How much a key makes the screen do, in lines and regions, not in seconds: what is on the screen and nothing else."""

from collections import Counter

import pytest
from textual._compositor import Compositor
from textual.dom import DOMNode

from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.tokens.token_map import TokenMap
from tests.ui.stage import on_screen, pressed, settled, until

SHAPE = {"prompts": 8, "generations": 8, "length": 32}
SIZE = (160, 45)


def note_lines(monkeypatch):
    """How often each line of the token map is made."""
    made, line = Counter(), TokenMap.line

    def noted(self, row):
        made[row] += 1
        return line(self, row)

    monkeypatch.setattr(TokenMap, "line", noted)
    return made


def note_regions(app, monkeypatch):
    """The regions that each frame of the playground draws again."""
    frames, compositor = [], app.panels.main._compositor
    plain = type(compositor).render_partial_update

    def noted():
        frames.append(set(compositor._dirty_regions))
        return plain(compositor)

    monkeypatch.setattr(compositor, "render_partial_update", noted)
    monkeypatch.setattr(compositor, "render_full_update", lambda **_: frames.append({app.screen.region}))
    return frames


async def test_another_colour_makes_each_line_in_sight_once_and_no_other(monkeypatch):
    async with on_screen(1, 2, size=SIZE, **SHAPE) as (app, _, pilot):
        tokens = app.panels.tokens
        assert tokens.count() > tokens.scrollable_content_region.height
        made = note_lines(monkeypatch)
        await pressed(pilot, "c")
        assert set(made) == set(range(tokens.scrollable_content_region.height))
        assert set(made.values()) <= {1, 2}  # `settled` paints everything once more
        made.clear()
        await pilot.press("c")
        assert max(made.values()) == 1


async def test_another_colour_draws_no_curve_and_lays_nothing_out(monkeypatch):
    async with on_screen(1, 2, size=SIZE, **SHAPE) as (app, _, pilot):
        frames = note_regions(app, monkeypatch)
        await pilot.press("c")
        await until(pilot, lambda: frames)
        tokens, curves = app.panels.tokens.region, app.panels.curves.region
        assert any(tokens.overlaps(each) for frame in frames for each in frame)
        assert not any(curves.overlaps(each) for frame in frames for each in frame)


async def test_the_focus_moves_without_another_frame_of_the_whole_screen(monkeypatch):
    async with on_screen(1, size=SIZE, **SHAPE) as (app, _, pilot):
        frames = note_regions(app, monkeypatch)
        before = app.focused
        await pressed(pilot, "tab")
        assert app.focused is not before
        assert frames
        assert not any(app.screen.region in frame for frame in frames)


@pytest.mark.parametrize("key", ["o", "k", "d", "question_mark", "g", "ctrl+p"])
async def test_a_dialogue_that_opens_is_sent_to_the_terminal_once(key, monkeypatch):
    """Its whole screen in one frame; all its widgets are styled again once, for the classes of the screen's size."""
    async with on_screen(1, size=SIZE, **SHAPE) as (app, _, pilot):
        whole, styled = [], []
        plain, style = Compositor.render_full_update, DOMNode.update_node_styles

        def noted(self, simplify=False):
            whole.append(self.root)
            return plain(self, simplify)

        def noted_style(self, animate=True):
            styled.append(self)
            style(self, animate)

        monkeypatch.setattr(Compositor, "render_full_update", noted)
        monkeypatch.setattr(DOMNode, "update_node_styles", noted_style)
        await pilot.press(key)
        await until(pilot, lambda: app.screen in whole)
        await settled(pilot)
        assert app.screen is not app.panels.main
        assert whole.count(app.screen) == 1
        assert styled.count(app.screen) == (2 if key == "ctrl+p" else 1)  # Textual's palette adds a class of its own


async def test_a_frame_has_what_textual_draws_from_all_widgets(monkeypatch):
    """The bytes for the terminal are the same, whichever keys changed the screen."""
    async with on_screen(1, 2, size=SIZE, **SHAPE) as (app, source, pilot):
        compositor, drawn = app.panels.main._compositor, []
        plain = type(compositor).render_partial_update

        def both():
            dirty = set(compositor._dirty_regions)
            found = plain(compositor)
            compositor._dirty_regions |= dirty
            expected = Compositor.render_partial_update(compositor)
            if found is not None:
                drawn.append(found.render_segments(app.console))
                assert drawn[-1] == expected.render_segments(app.console)
            return found

        monkeypatch.setattr(compositor, "render_partial_update", both)
        for key in ("c", "down", "right", "tab", "shift+tab", "x", "m", "pagedown", "["):
            await pressed(pilot, key)
        source.update(3, **SHAPE)
        await settled(pilot)
        app.notify("above the panels")
        await settled(pilot)
        assert len(drawn) > 8


async def test_a_frame_asks_only_the_widgets_that_have_a_part_in_it(monkeypatch):
    async with on_screen(1, size=SIZE, **SHAPE) as (app, _, pilot):
        await settled(pilot)
        asked, compositor = [], app.panels.main._compositor
        for widget in compositor.visible_widgets:
            monkeypatch.setattr(widget, "render_lines", _noted(asked, widget, widget.render_lines))
        app.panels.tokens.redraw(0)
        await settled(pilot)
        panels = {widget for widget, _ in asked if isinstance(widget, TokenMap | CurvePanel)}
        assert panels == {app.panels.tokens}
        assert {crop.height for widget, crop in asked if widget is app.panels.tokens} == {1}


def _noted(asked, widget, render_lines):
    def noted(crop):
        asked.append((widget, crop))
        return render_lines(crop)

    return noted

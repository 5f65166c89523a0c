"""The screen below a dialogue looks as Textual draws it, and only lines that change are drawn again."""

import pytest
from rich.segment import Segment
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import Screen

from rlplay.ui.compat import OverAnother
from tests.ui.stage import on_screen, pressed, settled


def cells(segments):
    """The characters of a line with the colours and attributes of each."""
    styled = ((text, str(style and style.clear_meta_and_links())) for text, style, control in segments if not control)
    return [(character, style) for text, style in styled for character in text]


def as_textual_draws(app):
    """The lines of the playground below the dialogue that is open."""
    found = BackgroundScreen(app.panels.main, app.screen.styles.background)
    segments = app.console.render(found, app.console.options.update_dimensions(*app.size))
    return [cells(line) for line in Segment.split_lines(segments)]


@pytest.mark.parametrize("theme", ["rlplay-dark", "rlplay-light"])
@pytest.mark.parametrize("keys", [["o"], ["question_mark"], ["k"], ["ctrl+p"], ["k", "ctrl+p"]])
async def test_the_screen_below_looks_as_textual_draws_it(keys, theme):
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        app.theme = theme
        source.update(1)
        await settled(pilot)
        await pressed(pilot, *keys)
        screen = app.screen
        assert isinstance(screen, OverAnother)
        for news in (lambda: None, lambda: source.update(2)):
            news()
            await settled(pilot)
            if len(keys) == 1:
                drawn = [cells(screen.render_line(y)) for y in range(35)]
                assert drawn == as_textual_draws(app)
        below = app.screen_stack[-2]
        middle = below._compositor.render_strips()[17].text
        assert "".join(text for text, *_ in screen.render_line(17)) == middle


async def test_only_lines_that_change_are_composed_again_and_only_once(monkeypatch):
    async with on_screen(1, size=(120, 35)) as (app, _, pilot):
        await pressed(pilot, "question_mark")
        composed, plain = [], app.panels.main._compositor._render_chops

        def render_chops(crop, is_rendered_line):
            composed.append([y for y in range(35) if is_rendered_line(y)])
            return plain(crop, is_rendered_line)

        monkeypatch.setattr(app.panels.main._compositor, "_render_chops", render_chops)
        app.screen.refresh()
        await settled(pilot)
        assert composed[-1] == list(range(35))
        composed.clear()
        app.panels.narrator.refresh()
        await settled(pilot)
        lines = {y for rows in composed for y in rows}
        assert lines
        assert lines <= set(app.panels.narrator.region.line_range)
        composed.clear()
        app.screen.query("*").last().refresh()  # the dialogue itself changes
        await settled(pilot)
        assert not composed


async def test_a_dialogue_is_laid_out_in_one_go(monkeypatch):
    """A second round of layout is what makes a dialogue open late."""
    async with on_screen(size=(120, 35)) as (app, _, pilot):
        await settled(pilot)
        laid_out, layout = [], Screen._refresh_layout

        def note_layout(self, size=None, scroll=False):
            laid_out.append(self)
            layout(self, size, scroll)

        monkeypatch.setattr(Screen, "_refresh_layout", note_layout)
        await pressed(pilot, "o")
        assert app.screen.has_class("-medium", "-middle")
        assert app.panels.main not in laid_out
        assert laid_out.count(app.screen) <= 3

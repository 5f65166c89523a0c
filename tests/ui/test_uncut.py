"""Every dialogue, at every size: what stands in its frames fits into them."""

import pytest
from textual.content import Content
from textual.widgets import Static

from rlplay.ui.app import RlplayApp
from rlplay.ui.screens.compare import CompareScreen
from rlplay.ui.screens.labels import LabelScreen
from rlplay.ui.screens.paste import PasteScreen
from rlplay.ui.session.sources import ReplaySource
from tests.recorded import synthetic_run, synthetic_update
from tests.ui.stage import Fed, playground, settled

SIZES = [(160, 45), (120, 35), (80, 24)]
OPENED = {
    "find": ["slash", *"length>0"],
    "knobs": ["k"],
    "knobs, changed": ["k", "down", "down", "right"],
    "knobs, found": ["k", *"beta"],
    "branch": ["b"],
    "branch, changed": ["b", "down", "down", "right"],
    "timeline": ["g"],
    "probe": ["i"],
    "log": ["f12"],
    "help": ["question_mark"],
    "glossary": ["d"],
    "glossary, found": ["d", *"hacking"],
    "palette": ["ctrl+p"],
    "lessons": ["l"],
}
CORNERS = 4


def cut(screen) -> list[str]:
    """Words in frames that are wider than their frame."""
    found = []
    for widget in screen.query("*"):
        for words in (widget.border_title, widget.border_subtitle):
            plain = Content.from_markup(words).plain if words else ""
            if widget.display and widget.outer_size.width and len(plain) > widget.outer_size.width - CORNERS:
                found.append(f"{type(widget).__name__}: {plain}")
    return found


@pytest.mark.parametrize("size", SIZES)
async def test_no_frame_cuts_its_words(size):
    app, source = playground()
    async with app.run_test(size=size) as pilot:
        for number in range(1, 13):
            source.update(number)
        await settled(pilot)
        for name, keys in OPENED.items():
            await pilot.press(*keys)
            await settled(pilot)
            assert app.screen is not app.main, name
            assert cut(app.screen) == [], name
            while app.screen is not app.main:
                await pilot.press("escape")
                await settled(pilot)
            await pilot.press("escape")


@pytest.mark.parametrize("size", SIZES)
async def test_nor_do_the_dialogues_that_need_an_occasion(size):
    app, source = playground()
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await app.perform("paste")
        await settled(pilot)
        assert isinstance(app.screen, PasteScreen)
        assert cut(app.screen) == []
        await pilot.press("escape")
        source.records(synthetic_update(1, prompts=32, generations=2)[:1])
        source.waiting(*range(32))
        await settled(pilot)
        assert isinstance(app.screen, LabelScreen)
        assert cut(app.screen) == []
        await pilot.press("a")
        await settled(pilot)
        assert cut(app.screen) == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("live", [True, False])
async def test_nor_does_the_comparison(tmp_path, size, live):
    sides = [Fed(), Fed()]
    if live:
        for side in sides:
            side.update(1)
    else:
        sides = [ReplaySource(synthetic_run(tmp_path / f"{name}.rlplay", 2)) for name in "ab"]
    app = RlplayApp(sides[0], others=sides[1:])
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, CompareScreen)
        app.screen.follow()
        await settled(pilot)
        assert cut(app.screen) == []
        keys = app.screen.query_one("#keys", Static)
        assert len(str(keys.render())) <= keys.content_size.width

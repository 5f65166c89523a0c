"""Every screen and dialogue, at every size: the gallery has it, and what stands in its frames fits into them."""

import re
from contextlib import aclosing
from itertools import product

import pytest
from textual.content import Content
from textual.widgets import Static

from rlplay.ui.app import RlplayApp
from rlplay.ui.compare.compare_screen import VIEWS
from rlplay.ui.screenshot.cells import capture, text_of
from rlplay.ui.session.sources import ReplaySource
from screenshots.gallery import LOOKS, SIZES, file_name, index, shots
from tests.recorded import synthetic_run
from tests.ui.stage import settled
from tests.ui.touring import all_screens

CORNERS = 4


def cut(screen) -> list[str]:
    """Words in frames that are wider than their frame."""
    found = []
    for widget in screen.query("*"):
        for words in (widget.border_title, widget.border_subtitle):
            plain = Content.from_markup(words).plain if words else ""
            if plain and widget.display and widget.outer_size.width and len(plain) > widget.outer_size.width - CORNERS:
                found.append(f"{type(widget).__name__}: {plain}")
    return found


@pytest.mark.parametrize("size", [SIZES[0], *(pytest.param(size, marks=pytest.mark.slow) for size in SIZES[1:])])
async def test_every_screen_is_in_the_gallery_and_no_frame_cuts_its_words(size, tmp_path, monkeypatch):
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path))
    seen = {}
    async with aclosing(shots(size, LOOKS["dark"], tmp_path)) as every:
        async for name, app in every:
            assert app.screen is app.panels.main or cut(app.screen) == [], (
                name
            )  # what is sought may be longer than any frame
            seen.setdefault(type(app.screen).__name__, set()).add(text_of(capture(app)))
    assert all_screens() | {"PaletteScreen"} <= set(seen)
    assert min(len(next(iter(texts))) for texts in seen.values()) > 200, "none is empty"
    assert len(seen["CompareScreen"]) == len(VIEWS) + 1, "occasions show what they are called after"
    assert len(seen["LabelScreen"]) == len(seen["ProbeScreen"]) == 2
    assert any("implicit reward" in text for text in seen["LabelScreen"]), "every question has an answer"


@pytest.mark.parametrize("size", SIZES)
async def test_nor_does_the_comparison_of_recordings_and_its_keys_fit(tmp_path, size):
    one, other = (ReplaySource(synthetic_run(tmp_path / f"{name}.rlplay", 2)) for name in "ab")
    app = RlplayApp(one, others=[other])
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        app.screen.follow()
        await settled(pilot)
        assert cut(app.screen) == []
        keys = app.screen.query_one("#keys", Static)
        assert len(str(keys.render())) <= keys.content_size.width


def test_the_index_shows_every_picture_at_every_size_in_every_look():
    shown = re.findall(r"!\[\]\((.+)\)", index(["help", "compare, token"]).replace(") |", ")\n"))
    wanted = {file_name(name, *kind) for name in ("help", "compare, token") for kind in product(SIZES, LOOKS)}
    assert sorted(shown) == sorted(wanted)

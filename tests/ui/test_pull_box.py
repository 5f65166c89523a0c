"""A box of the pull map filters the tokens: by mouse, by key and as typed; what is named is what is found."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlplay.trace.find import find, parse
from rlplay.trace.pulls import PlaneBox, box, pulls
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.plot.picture import CURSOR, Size
from rlplay.ui.pull.pull_map import PullMap
from rlplay.ui.pull.pull_plane import plane, regions
from tests.recorded import synthetic_update
from tests.ui.curve_panels import subtitle, title
from tests.ui.stage import on_screen, pressed, settled
from tests.ui.test_pull_map import SIZE, recorded


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("ratio 0.8..1.2 A 0..2", PlaneBox(0.8, 1.2, 0, 2)),
        ("ratio ..1.2 A -0.5..", PlaneBox(-math.inf, 1.2, -0.5, math.inf)),
        ("ratio ..  A ..", None),
        ("ratio>1.2", None),
        ("ratio 0.8..1.2", None),
        ("RATIO .9996..1.0004 a ..1e-3", PlaneBox(0.9996, 1.0004, -math.inf, 0.001)),
    ],
)
def test_a_box_is_read_as_it_is_written(typed: str, expected: PlaneBox | None) -> None:
    assert box(typed) == expected
    if expected is not None:
        assert box(expected.words) == expected
        query = parse(typed)
        assert query is not None
        assert (query.box, query.conditions, query.text) == (expected, (), "")


@pytest.mark.parametrize("steps", [1, 4])
def test_exactly_the_tokens_between_the_ends_are_found(steps: int) -> None:
    update = recorded(steps=steps)
    known = pulls(update)
    assert known is not None
    query = parse("ratio 0.9..1.1 A ..0")
    assert query is not None
    found = find(query, update)
    assert found.tokens is not None
    expected = [
        int(token)
        for token, ratio, advantage in zip(known.tokens, known.ratio, known.advantage, strict=True)
        if 0.9 < ratio < 1.1 and advantage < 0
    ]
    assert 0 < len(expected) < len(known.ratio)
    assert np.flatnonzero(found.tokens).tolist() == sorted(expected)
    assert update.sampled is not None
    owners = {int(np.searchsorted(update.sampled.offsets, token, side="right")) - 1 for token in expected}
    assert set(np.flatnonzero(found.answers).tolist()) == owners


def test_the_box_between_two_cells_holds_exactly_the_dots_in_them() -> None:
    known = pulls(recorded(steps=1))
    assert known is not None
    on = plane(known, SIZE)
    x, y = on.dots(known.ratio, known.advantage)
    dice = np.random.default_rng(0)
    for _ in range(200):
        one, other = (
            (int(dice.integers(on.frame.left, on.frame.right + 1)), int(dice.integers(0, on.height))) for _ in "ab"
        )
        chosen = box(on.box(one, other).words)
        assert chosen is not None
        left, right = sorted((one[0] - on.frame.left, other[0] - on.frame.left))
        top, bottom = sorted((one[1], other[1]))
        there = (x // 2 >= left) & (x // 2 <= right) & (y // 4 >= top) & (y // 4 <= bottom)
        assert (chosen.holds(known) == there).all()
        columns, lines = on.covered(chosen)
        assert (columns, lines) == (range(left + on.frame.left, right + on.frame.left + 1), range(top, bottom + 1))


def test_regions_have_tokens_and_none_twice() -> None:
    known = pulls(recorded(steps=1))
    assert known is not None
    found = regions(known, (0.8, 1.2))
    counts = np.sum([region.holds(known) for region in found], axis=0)
    moved = (known.advantage != 0) & ~np.isin(known.ratio, (0.8, 1.0, 1.2))
    assert counts.tolist() == moved.astype(int).tolist()
    assert all(region.holds(known).any() for region in found)
    assert regions(known, ()) == [region for region in regions(known, (1.0, 1.0)) if region.holds(known).any()]


async def test_enter_goes_through_the_regions_and_esc_shows_all_again() -> None:
    async with on_screen(2, size=(160, 45)) as (app, _, pilot):
        await pressed(pilot, "P")
        panel = app.focused
        assert isinstance(panel, CurvePanel)
        seen = []
        await pressed(pilot, "enter")
        while app.play.finder.query is not None:
            chosen = app.play.finder.query.box
            assert chosen is not None
            seen.append(chosen.words)
            assert chosen.words in title(app.panels.tokens), "the filter is named"
            known = pulls(app.play.session.shown)
            assert known is not None
            assert subtitle(panel).startswith(f"box {int(chosen.holds(known).sum())} of {len(known.ratio)} tokens")
            assert any(str(span.style) == CURSOR for span in panel.render().spans), "the box is on the map"
            places = set()
            for _ in range(int(chosen.holds(known).sum())):
                await pilot.press("f")
                start = int(app.play.session.shown.sampled.offsets[app.panels.tokens.cursor[0]])
                places.add(start + app.panels.tokens.cursor[1])
            # Identical answers share a line, so f goes to the first of them.
            assert places <= set(known.tokens[chosen.holds(known)].tolist())
            await pressed(pilot, "enter")
        assert len(seen) == len(set(seen)) > 2
        assert "box" not in subtitle(panel)
        await pressed(pilot, "enter", "escape")
        assert app.play.finder.query is None


async def test_the_mouse_drags_a_box_and_a_click_chooses_nothing() -> None:
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        source.records(synthetic_update(2, steps=1))
        source.status(2)
        await settled(pilot)
        panel = next(panel for panel in app.panels.curves.seen if panel.shows_map)
        assert panel.view.title == "Ratio · clip", "with one step it shows the pull map"
        await pilot.click(panel, offset=(10, 4))
        assert app.play.finder.query is None
        one, other = (12, 2), (25, 6)
        await pilot.mouse_down(panel, offset=one)
        await pilot.hover(panel, offset=other)
        assert any(str(span.style) == CURSOR for span in panel.render().spans), "it can be seen while it is drawn"
        await pilot.mouse_up(panel, offset=other)
        await settled(pilot)
        assert app.play.finder.query is not None
        inner = panel.content_region.offset - panel.region.offset
        corners = ((x - inner.x, y - inner.y) for x, y in (one, other))
        assert panel.source is not None
        assert app.play.finder.query.typed == PullMap().boxed(panel.source, Size(*panel.content_size), *corners)
        await pressed(pilot, "escape")
        assert app.play.finder.query is None

"""What the program makes cheaper in Textual works as before."""

import gc
import weakref

import pytest
from rich.segment import Segment
from textual._styles_cache import StylesCache
from textual.cache import FIFOCache
from textual.color import Color
from textual.css.model import RuleSet
from textual.strip import Strip
from textual.widgets import OptionList

from rlplay.ui.lean import _SIZES, slim
from tests.ui.stage import home, playground, settled, until


@pytest.fixture(autouse=True)
def lean():
    slim()


def caches(strip):
    return [each for each in gc.get_referents(strip) if isinstance(each, FIFOCache)]


def test_a_strip_has_the_caches_that_it_has_used():
    strip = Strip([Segment("ab"), Segment("c")], 3)
    assert not caches(strip)
    assert strip.crop(1, 3).text == "bc"
    assert strip.crop(1, 3) is strip.crop(1, 3)
    assert len(caches(strip)) == 1
    assert [part.text for part in strip.divide([2, 3])] == ["ab", "c"]
    assert strip.extend_cell_length(5).text == "abc  "
    assert strip.apply_offsets(1, 1).text == "abc"
    assert not hasattr(strip, "unheard_of")


def test_each_cache_of_textual_is_known():
    assert set(_SIZES) == {slot for slot in Strip.__slots__ if slot.endswith("_cache")} - {"_render_cache"}


def test_a_rule_is_found_by_identity():
    one, other = RuleSet(), RuleSet()
    assert RuleSet.__hash__ is object.__hash__
    assert {one: 1, other: 2}[other] == 2


async def test_a_closed_dialogue_leaves_no_lines_behind():
    app, _ = playground()
    async with app.run_test(size=(120, 35)) as pilot:
        await settled(pilot)
        await pilot.press("o")
        await settled(pilot)
        lines = weakref.ref(app.screen.query_one(OptionList)._styles_cache)
        await home(pilot)

        def gone():
            gc.collect()
            return lines() is None

        await until(pilot, gone)  # a timer knows the dialogue a little longer


def test_colours_around_a_border_are_as_textual_mixes_them():
    below, widget = Color.parse("#102030"), Color.parse("#ffffff").with_alpha(0.5)
    inner, outer = StylesCache().get_inner_outer(below, widget)
    assert (inner.background, outer.background) == (below + widget, below)

"""What the program makes cheaper in Textual works as before."""

import gc

import pytest
from rich.segment import Segment
from textual.cache import FIFOCache
from textual.css.model import RuleSet
from textual.strip import Strip

from rlplay.ui.lean import _SIZES, slim


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

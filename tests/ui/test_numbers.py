"""Numbers on the screen: real minus signs, one width, no number is no zero."""

import math

import pytest

from rlplay.trace.numbers import percent
from rlplay.ui.format.numbers import plain, short, signed, tenths


@pytest.mark.parametrize(
    ("value", "shown"), [(0.93, "+0.93"), (-1.084, "−1.08"), (0.0, " 0.00"), (-0.001, " 0.00"), (math.nan, "·")]
)
def test_signed(value, shown):
    assert signed(value) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.0, "0.0 %"), (1 / 2970, "<0.1 %"), (0.011, "1.1 %"), (0.9999, ">99.9 %"), (1.0, "100.0 %"), (None, "–")],
)
def test_a_share_is_nothing_or_all_only_where_it_is(share, shown):
    assert percent(share) == shown


@pytest.mark.parametrize(("value", "shown"), [(0.93, "0.93"), (-1.5, "−1.50"), (-0.001, "0.00"), (math.inf, "·")])
def test_plain(value, shown):
    assert plain(value) == shown


@pytest.mark.parametrize(
    ("value", "diverging", "shown"),
    [(0.41, False, ".41"), (1.39, False, "1.4"), (0.93, True, "+.93"), (-1.08, True, "−1.1"), (140.0, True, "+140"),
     (0.0, True, ".00"), (math.nan, True, "")],
)  # fmt: skip
def test_short_fits_in_five_cells(value, diverging, shown):
    assert short(value, diverging) == shown
    assert len(shown) <= 5


@pytest.mark.parametrize(("seconds", "shown"), [(0.44, "0.4 s"), (31, "31 s"), (185, "3 min 05 s")])
def test_durations(seconds, shown):
    assert tenths(seconds) == shown

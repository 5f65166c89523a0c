"""Numbers on the screen: real minus signs, one width, no number is no zero."""

import math

import pytest

from rlplay.algorithms.equations import terms
from rlplay.algorithms.setting_values import written
from rlplay.algorithms.settings import Settings, row
from rlplay.algorithms.symbols import Expression
from rlplay.export.trl.fields import literal
from rlplay.scenario.expect import _written
from rlplay.trace.numbers import compact, number, percent
from rlplay.ui.format.number_cells import plain, short, signed, tenths
from rlplay.ui.formula.formula_lines import TokenNumbers
from rlplay.ui.formula.surrogate import why_clipped


@pytest.mark.parametrize(
    ("value", "shown"), [(0.93, "+0.93"), (-1.084, "−1.08"), (0.0, " 0.00"), (-0.001, " 0.00"), (math.nan, "·")]
)
def test_signed(value, shown):
    assert signed(value) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0, "0.0 %"),
        (1 / 2970, "<0.1 %"),
        (0.011, "1.1 %"),
        (0.9999, ">99.9 %"),
        (1.0, "100.0 %"),
        (None, "–"),
        (-0.0, "0.0 %"),
        (-1e-9, "0.0 %"),
        (-0.25, "−25.0 %"),
    ],
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


@pytest.mark.parametrize(("value", "shown"), [(4e-5, "4e-5"), (-1.5e-7, "-1.5e-7"), (4e-4, "0.0004"), (2.0, "2")])
def test_an_exponent_has_no_padding(value, shown):
    assert compact(value) == written(value) == shown
    assert number(value, noise=0) == _written(value) == ("−" + shown[1:] if value < 0 else shown)


def test_a_small_setting_is_written_alike_in_settings_equations_and_scripts():
    settings = Settings(beta=4e-5, kl_placement="loss", entropy_coef=4e-5)
    assert written(1.23456789e-5) == "1.23456789e-5"
    assert literal(4e-5) == "4e-5"
    assert " ".join(terms(settings).values()).count("4e-5") == 2


def test_a_bound_has_the_exponent_of_all_other_numbers():
    wide = Settings(epsilon=0.99999, epsilon_high=1e6)
    assert why_clipped(wide, TokenNumbers(clip_state=-1))[0].endswith("w < 1e-5")
    assert why_clipped(wide, TokenNumbers(clip_state=1))[0].endswith("w > 1e6")
    cispo = row(Settings(surrogate="cispo", epsilon_high=1e6), "surrogate")
    assert "the weight 1e6, not" in cispo.unclipped(Settings(surrogate="cispo", epsilon_high=1e6), 1.0, 2e6)[0]
    assert (Expression("x") ** 1e-5).text == "^1e-5"


@pytest.mark.parametrize(
    ("value", "end", "shown"),
    [(0.0041, 0.02, "+.004"), (-0.0121, 0.02, "−.012"), (0.00041, 0.002, "+4e-4"), (-0.0003, 0.002, "−3e-4"),
     (0.0, 0.002, ".000"), (2.5, 0.02, "+2.5")],
)  # fmt: skip
def test_a_small_scale_shows_more_decimals(value, end, shown):
    assert short(value, True, end) == shown

"""The plot adapter: what is drawn where, what happens to numbers that are none, and how long it takes."""

from dataclasses import replace

import numpy as np
import pytest

from rlplay.trace.numbers import number
from rlplay.ui.plot.drawn_curves import BAND, Curve, _dashes, curves
from rlplay.ui.plot.histogram import HistogramStyle, histogram
from rlplay.ui.plot.picture import Axes, Size

SIZE = Size(38, 8)


def lines(picture) -> list[str]:
    return picture.content.plain.split("\n")


def test_every_line_is_as_wide_as_asked():
    for size in (SIZE, Size(60, 15), Size(12, 4)):
        rows = lines(curves([Curve(range(1, 30), np.linspace(0, 22, 29), "$primary")], [], size))
        assert len(rows) == size.height
        assert {len(row) for row in rows} == {size.width}


def test_a_rising_curve_ends_in_the_upper_right_corner_and_the_axis_names_its_ends():
    rows = lines(curves([Curve(range(1, 41), np.linspace(0, 1, 40), "$primary")], [], SIZE))
    assert rows[0].split()[0] == "1"
    assert rows[0].rstrip()[-1] != "1", "dots, not only the label"
    assert rows[-2].split()[0] == "0"
    assert rows[-1].split() == ["1", "20", "40"]
    assert rows[0][4:20].strip() == ""


@pytest.mark.parametrize(
    ("values", "height", "ticks"),
    [
        ([0, 1.2], 9, ["1.2", "0.5", "0"]),
        ([-1, 3], 9, ["3", "2", "0", "-1"]),
        ([-0.3, 0.9], 12, ["0.9", "0.5", "0", "-0.3"]),
        ([0, 31], 12, ["35", "20", "10", "0"]),
        ([0, 1], 4, ["1", "0"]),
    ],
)
def test_labels_between_the_ends_are_round_and_in_their_rows(values, height, ticks):
    rows = lines(curves([Curve([1, 2], values, "$primary")], [], Size(40, height)))[:-1]
    found = {row.split()[0].replace("−", "-"): at for at, row in enumerate(rows) if row[0:4].strip()}
    assert list(found) == ticks
    low, high = float(ticks[-1]), float(ticks[0])
    for label, at in found.items():
        assert at == pytest.approx((high - float(label)) / (high - low) * (height - 2), abs=0.5)


def test_empty_cells_beside_a_label_are_lined():
    rows = lines(curves([Curve([1, 9], [0, 1], "$primary")], [], Size(40, 10)))
    assert ["┈" in row for row in rows] == [bool(at and row.split()[0] == "0.5") for at, row in enumerate(rows)]


def test_few_points_are_marked_and_many_are_not():
    for count, marked in ((4, True), (30, False)):
        rows = lines(curves([Curve(range(count), np.linspace(0, 1, count), "$primary")], [], SIZE))
        assert ("".join(rows).count("◦") == count) == marked


def test_where_curves_meet_both_show_and_grey_gives_way():
    line, dashed = Curve([1, 9], [1, 1], "$primary"), Curve([1, 9], [1, 1], "$secondary", "dotted")
    picture = curves([line, dashed], [], SIZE).content
    drawn = {str(span.style) for span in picture.spans if span.end <= picture.plain.index("\n")}
    assert {"$primary", "$secondary"} <= drawn, "the line shows between the dashes"
    alone, both = (lines(curves(series, [], SIZE)) for series in ([line], [line, replace(dashed, style="$text-muted")]))
    assert alone == both


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_dashes_are_as_long_on_a_steep_part(end):
    x, y = _dashes(np.array([0.0, 1.0]), np.array([0.0, end]), Axes(20, 0, 19, 0, 1), 10)
    way = np.hypot(np.array(x) * 40, np.array(y) * 40)  # in dots: two to a cell across, four down
    gaps = np.diff(way)
    assert gaps[gaps < 1] == pytest.approx(0.5)
    assert gaps[gaps >= 1] == pytest.approx(3.5)
    assert np.diff(np.flatnonzero(gaps >= 1)).tolist() == [12] * (sum(gaps >= 1) - 1), "dashes of six dots"


def test_colours_are_names_of_the_theme_so_that_a_theme_change_needs_no_drawing():
    first, second = Curve([1, 2, 3], [1, 2, 3], "$primary"), Curve([1, 2, 3], [3, 2, 1], "$secondary")
    styles = {str(span.style) for span in curves([first, second], [], SIZE).content.spans}
    assert {"$primary", "$secondary"} <= styles
    assert "\x1b" not in curves([first, second], [], SIZE).content.plain


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_no_number_leaves_a_gap_and_a_mark(bad):
    rows = lines(curves([Curve([1, 2, 3, 4, 5], [0.5, 0.5, bad, 0.5, 0.5], "$primary")], [], Size(22, 6)))
    middle = rows[-1].index("×")
    assert all(row[middle] in " ⠀┈" for row in rows[:-1])
    assert rows[-1].split() == ["1", "×", "5"]


def test_nothing_but_bad_numbers_still_draws():
    assert lines(curves([Curve([1, 2], [float("nan"), float("inf")], "$primary")], [], SIZE))[-1].count("×") == 2


def test_a_log_scale_has_powers_of_ten_and_marks_what_it_cannot_show():
    rows = lines(curves([Curve([1, 2, 3], [0.0, 0.02, 0.5], "$primary")], [], SIZE, log=True))
    assert rows[0].split()[0] == "1"
    assert rows[-2].split()[0] == "0.01"
    assert "×" in rows[-1]


def test_what_rounding_leaves_of_zero_does_not_stretch_a_log_scale():
    rows = lines(curves([Curve([1, 2, 3], [3e-11, 0.02, 0.5], "$primary")], [], SIZE, log=True))
    assert rows[-2].split()[0] == "0.01"
    assert "×" in rows[-1]


def test_negative_values_get_an_axis_below_zero():
    rows = lines(curves([Curve([1, 2, 3], [-0.2, 0.1, -0.05], "$primary")], [], SIZE))
    assert rows[-2].startswith("−0.2 ")


def test_one_value_is_a_dot():
    assert sum(row.count("•") for row in lines(curves([Curve([1], [0.3], "$primary")], [], SIZE))) == 1


def test_marks_stand_on_the_axis_where_the_cursor_finds_them():
    picture = curves([Curve(range(1, 22), np.ones(21), "$primary")], [(11, "↶"), (99, "◆")], SIZE)
    assert lines(picture)[-1].index("↶") == picture.frame.column(11)
    lit = picture.with_cursor(11, "epsilon 0.2 → 0.1")
    assert lit.plain.split("\n")[-1] == "epsilon 0.2 → 0.1"
    assert lit.plain.split("\n")[:-1] == lines(picture)[:-1]
    assert picture.with_cursor(11, "epsilon 0.2 → 0.1 · " * 3).plain.split("\n")[-1][-1] == "…", "what is cut shows it"


def test_the_cursor_lights_one_cell_of_every_line():
    picture = curves([Curve(range(1, 22), np.ones(21), "$primary")], [], SIZE)
    added = picture.with_cursor(5).spans[len(picture.content.spans) :]
    assert [span.start % (SIZE.width + 1) for span in added] == [picture.frame.column(5)] * SIZE.height


def test_the_band_shades_the_cells_between_its_edges():
    flat = Curve([1, 2, 3], [0.5, 0.5, 1.0], "$primary", band=[0.1, 0.1, 0.0])
    shaded = [span for span in curves([flat], [], Size(33, 11)).content.spans if str(span.style).startswith("on")]
    column = [span.start // 34 for span in shaded if span.start % 34 == 5]
    assert column == [4, 5]


def test_a_band_that_reaches_below_zero_goes_down_to_the_end_of_a_log_scale():
    curve = Curve([1, 2, 3], [0.5, 0.5, 0.5], "$primary", band=[0.2, 0.7, float("nan")])
    picture = curves([curve], [], Size(33, 11), log=True)
    shaded = [divmod(span.start, 34) for span in picture.content.spans if str(span.style) == BAND]
    lowest = {column: max(row for row, at in shaded if at == column) for _, column in shaded}
    first, second = (picture.frame.column(update) for update in (1, 2))
    assert lowest[first] < 9 == lowest[second]
    assert max(lowest) == second, "a spread that is no number is not drawn"


def test_a_frame_maps_columns_back_to_updates():
    frame = Axes(width=40, left=4, right=35, first=1, last=32)
    assert all(round(frame.x(frame.column(update))) == update for update in range(1, 33))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_histogram_counts_what_lies_beyond_at_its_edges(kind):
    values = np.array([0.1, 1.0, 1.0, 1.0, 9.0], dtype=kind)
    limits = (1 - 2.5 * (1 - 0.8), 1 + 2.5 * 0.2)  # the first is a little more than 0.5
    rows = lines(histogram(values, values[:0], (0.8, 1.2), Size(21, 5), HistogramStyle(limits, "a", "b", log=False)))
    assert rows[-1].startswith("≤0.5")
    assert rows[-1].endswith("≥1.5")
    assert rows[0].strip("│ ") == "█"
    assert rows[-2][0] != " "
    assert rows[-2][-1] != " "


def test_clipped_ratios_stand_in_front_of_the_others():
    values = np.concatenate([np.full(50, 1.3), np.full(9, 0.9)])
    content = histogram(
        values, values[:25], (0.8, 1.2), Size(30, 9), HistogramStyle((0.5, 1.5), "whole", "front", log=False)
    ).content
    painted = {str(span.style): content.plain[span.start : span.end] for span in content.spans}
    assert "front" in painted
    assert any(style.startswith("front on whole") or style == "whole" for style in painted)


def test_a_log_histogram_lifts_the_small_bars():
    values = np.concatenate([np.full(1000, 1.0), np.full(3, 1.3)])
    heights = {}
    for log in (False, True):
        rows = lines(histogram(values, values[:0], (), Size(31, 9), HistogramStyle((0.5, 1.5), "a", "b", log)))
        heights[log] = sum(row[24] != " " for row in rows[:-1])
    assert heights[True] > heights[False] == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.013149, "0.0131"),
        (25.0, "25"),
        (0.00004, "4e-5"),
        (12864, "12,864"),
        (-1234.5, "−1,234"),
        (-1.5, "−1.5"),
        (1234567, "1.23e6"),
        (float("nan"), "nan"),
        (2.7e-13, "≈0"),
        (0.0, "0"),
    ],
)
def test_numbers_are_short(value, text):
    assert number(value) == text


def test_what_rounding_leaves_of_zero_does_not_fill_the_plot():
    for noise, values, written in ((1e-6, [1e-7, -3e-7, 2e-7], "≈0"), (1e-9, [0.0, 0.0, 0.0], "0")):
        rows = lines(curves([Curve([1, 2, 3], values, "$primary", noise=noise)], [], SIZE))
        assert [set(row) - {" "} for row in rows[:-2]] == [set()] * (SIZE.height - 2), "a line at the bottom"
        assert rows[-2].startswith(f"{written} ")
    rows = lines(curves([Curve([1, 2, 3], [1e-7, 3e-7, 2e-7], "$primary")], [], SIZE))
    assert rows[0].startswith("3e-7 "), "so small, but not known to be rounding"


def test_a_side_too_small_to_see_is_written_as_next_to_nothing():
    rows = lines(curves([Curve([1, 2, 3], [-0.0004, 0.1, 0.2], "$primary")], [], SIZE))
    assert (rows[0].split()[0], rows[-2].split()[0]) == ("0.2", "≈0")
    rows = lines(curves([Curve([1, 2, 3], [0.0004, -0.1, -0.2], "$primary")], [], SIZE))
    assert (rows[0].split()[0], rows[-2].split()[0]) == ("≈0", "−0.2")
    rows = lines(curves([Curve([1, 2, 3], [-0.01, 0.1, 0.2], "$primary")], [], SIZE))
    assert rows[-2].split()[0] == "−0.01"


def test_a_cut_curve_leaves_its_band_and_its_letter_on_its_stretches():
    updates = [*range(1, 11), *range(31, 41)]
    curve = Curve(updates, [0.1] * 10 + [0.9] * 10, "$primary", band=[0.05] * 20, letter="A", cuts=[31])
    for place in ([curve], [curve, Curve([1, 40], [0.5, 0.5], "$secondary", letter="B")]):
        picture = curves(place, [], Size(60, 12))
        rows, stride = lines(picture), 61
        apart = range(picture.frame.column(11) + 1, picture.frame.column(30))
        assert not any("A" in row[apart.start : apart.stop] for row in rows[:-1])
        shaded = {span.start % stride for span in picture.content.spans if str(span.style) == BAND}
        assert shaded
        assert not shaded & set(apart), "there is no curve to shade"

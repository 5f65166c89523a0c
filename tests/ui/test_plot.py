"""The plot adapter: what is drawn where, what happens to numbers that are none, and how long it takes."""

from dataclasses import replace

import numpy as np
import pytest

from rlplay.trace.numbers import number
from rlplay.ui.plot.canvas import Canvas
from rlplay.ui.plot.curve import FIRST, Curve
from rlplay.ui.plot.drawn_curves import NEWEST, curves
from rlplay.ui.plot.guess import WORDS, Guess
from rlplay.ui.plot.histogram import HistogramStyle, histogram
from rlplay.ui.plot.picture import NOTE, Axes, Size
from rlplay.ui.plot.scale import tick
from rlplay.ui.plot.strokes import WEIGHT, heavy

SIZE = Size(38, 8)


def lines(picture) -> list[str]:
    return picture.content.plain.split("\n")


def test_every_line_is_as_wide_as_asked():
    for size in (SIZE, Size(60, 15), Size(12, 4)):
        rows = lines(curves([Curve(range(1, 30), np.linspace(0, 22, 29), "$curve-a")], [], size))
        assert len(rows) == size.height
        assert {len(row) for row in rows} == {size.width}


def test_a_rising_curve_ends_in_the_upper_right_corner_and_the_axis_names_its_ends():
    rows = lines(curves([Curve(range(1, 41), np.linspace(0, 1, 40), "$curve-a")], [], SIZE))
    assert rows[0].split()[0] == "1"
    assert rows[0].rstrip()[-1] != "1", "a line, not only the label"
    assert rows[-2].split()[0] == "0"
    assert rows[-1].split() == ["1", "10", "20", "30", "40"]
    assert rows[0][4:20].strip() == ""


@pytest.mark.parametrize(
    ("values", "height", "ticks"),
    [
        ([0, 0.9], 9, ["1", ".5", "0"]),
        ([-1, 3], 9, ["2", "0"]),
        ([-0.3, 0.9], 12, ["1", ".5", "0", "-.5"]),
        ([0, 31], 14, ["30", "20", "10", "0"]),
        ([0, 9.8], 9, ["10", "5", "0"]),
        ([0, 1900], 9, ["2k", "1k", "0"]),
        ([0, 1], 4, ["1", "0"]),
        ([0, 1], 40, ["1", ".8", ".6", ".4", ".2", "0"]),
    ],
)
def test_labels_between_the_ends_are_round_and_in_their_rows(values, height, ticks):
    picture = curves([Curve([1, 2], values, "$curve-a")], [], Size(40, height))
    labels = [row[: picture.frame.left].strip().replace("−", "-") for row in lines(picture)[:-1]]
    found = {label: at for at, label in enumerate(labels) if label}
    assert list(found) == ticks
    numbers = [float(label.replace("k", "e3")) for label in ticks]
    ups = np.diff(list(found.values())) / np.diff(numbers)
    assert ups == pytest.approx(ups.mean(), abs=1 / abs(np.diff(numbers)).min()), "as far apart as their numbers"


def test_empty_cells_beside_a_label_are_lined():
    rows = lines(curves([Curve([1, 9], [0, 1], "$curve-a")], [], Size(40, 10)))
    assert ["┈" in row for row in rows] == [bool(at and row.split()[0] == ".5") for at, row in enumerate(rows)]


def test_a_line_has_weight_and_no_gap():
    for values in (np.full(40, 0.5), np.linspace(0, 1, 40), np.arange(40) % 2):
        canvas = Canvas(40, 8)
        heavy(canvas, np.arange(40.0), values.astype(float), "$curve-a")
        drawn = canvas._eighths > 0
        assert (drawn.sum(axis=0) >= WEIGHT).all()
        shared = (drawn[:, 1:] & drawn[:, :-1]).any(axis=0)
        assert shared.all(), "each column touches the next"


def test_the_newest_point_is_marked_where_it_is():
    picture = curves([Curve(range(1, 22), np.linspace(0, 0.5, 21), "$curve-a", newest=True, ends=(0, 1))], [], SIZE)
    rows = lines(picture)
    (row,) = [at for at, text in enumerate(rows) if "●" in text]
    assert rows[row].index("●") == picture.frame.column(21) == SIZE.width - 1
    assert row == pytest.approx((SIZE.height - 2) / 2, abs=1)
    styled = [picture.content.plain[span.start : span.end] for span in picture.content.spans if span.style == NEWEST]
    assert styled == ["●"]


def test_where_curves_meet_both_show_and_grey_gives_way():
    line, dashed = Curve([1, 9], [1, 1], "$curve-a"), Curve([1, 9], [1, 1], "$curve-b", "dashed")
    picture = curves([line, dashed], [], SIZE).content
    drawn = {str(span.style).split()[0] for span in picture.spans if span.end <= picture.plain.index("\n")}
    assert {"$curve-a", "$curve-b"} <= drawn, "the line shows between the dashes"
    alone, both = (
        lines(curves(series, [], SIZE))
        for series in ([line], [line, replace(dashed, style="$curve-ghost", kind="thin")])
    )
    assert alone == both


def test_two_lines_that_cross_are_both_in_the_cells_around():
    up, down = np.linspace(0, 1, 30), np.linspace(1, 0, 30)
    series = [Curve(range(30), up, "$curve-a"), Curve(range(30), down, "$curve-b", "dashed")]
    picture = curves(series, [], Size(40, 12))
    stride, middle = 41, (picture.frame.column(14) + picture.frame.column(15)) // 2
    near = {
        ink for span in picture.content.spans for ink in ("$curve-a", "$curve-b")
        if ink in str(span.style) and any(abs(at % stride - middle) <= 2 for at in range(span.start, span.end))
    }  # fmt: skip
    assert near == {"$curve-a", "$curve-b"}


def test_the_area_between_two_lines_has_the_colour_of_the_upper_one():
    one = Curve([1, 21], [1.0, 0.0], "$curve-a", area="between")
    other = Curve([1, 21], [0.0, 1.0], "$curve-b", "dashed", area="between")
    picture = curves([one, other], [], Size(44, 14))
    halves = {"left": set(), "right": set()}
    for span in picture.content.spans:
        if "-shade" in str(span.style):
            column = span.start % 45
            away = column - (picture.frame.column(1) + picture.frame.column(21)) / 2
            if abs(away) > 4:
                halves["left" if away < 0 else "right"].update(
                    word for word in str(span.style).split() if "-shade" in word
                )
    assert halves == {"left": {"$curve-a-shade"}, "right": {"$curve-b-shade"}}


def test_the_area_under_a_line_reaches_down_to_zero_and_needs_tints():
    curve = Curve([1, 9], [1.0, 1.0], "$curve-a", area="under")
    shaded = curves([curve], [], SIZE).content.spans
    rows = {span.start // (SIZE.width + 1) for span in shaded if str(span.style).endswith("on $curve-a-shade")}
    assert rows == set(range(1, SIZE.height - 1))
    assert not any("shade" in str(span.style) for span in curves([curve], [], SIZE, tinted=False).content.spans)


def test_the_name_of_a_curve_is_near_its_end_where_nothing_else_is():
    ghost = Curve([1, 20], [0.2, 0.2], "$curve-ghost", "thin", name="before undo")
    rows = lines(curves([ghost], [], SIZE))
    assert [row.rstrip().endswith("before undo") for row in rows].count(True) == 1
    full = [Curve(range(1, 40), np.arange(39) % 2, "$curve-a"), ghost]
    assert "before" not in "".join(lines(curves(full, [], SIZE)))


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_a_dashed_line_has_gaps_on_flat_and_on_steep_parts(end):
    canvas = Canvas(40, 20)
    heavy(canvas, np.array([0.0, 39.0]), np.array([0.0, end]), "$curve-a", "dashed")
    columns = (canvas._eighths > 0).any(axis=0)
    changes = np.flatnonzero(np.diff(columns.astype(int)))
    assert len(changes) >= 8
    assert columns.mean() == pytest.approx(3 / 5, abs=0.12)


@pytest.mark.parametrize(("way", "arrow"), [("falls", "↘"), ("stays", "→"), ("rises", "↗"), (None, "")])
def test_a_guess_is_an_arrow_from_where_the_curve_was(way, arrow):
    guess = Guess("reward", 2, 12, way)
    series = [Curve([1, 2], [0.5, 0.5], "$curve-a", ends=(0, 1))]
    picture = curves(series, [], Size(60, 16), span=(1, 12), guess=guess)
    found = [(at, row.index(arrow)) for at, row in enumerate(lines(picture)[:-1]) if arrow and arrow in row]
    assert len(found) == bool(way)
    assert (WORDS in picture.content.plain) == bool(way)
    if found:
        ((row, column),) = found
        assert column == picture.frame.column(12)
        middle = 7
        assert (row > middle + 2, abs(row - middle) <= 1, row < middle - 2) == (
            way == "falls",
            way == "stays",
            way == "rises",
        )


def test_the_truth_is_drawn_over_a_guess():
    guess, span = Guess("reward", 1, 20, "stays"), (1, 20)
    series = [Curve(range(1, 21), np.full(20, 0.5), "$curve-a", ends=(0, 1))]
    with_guess, without = (lines(curves(series, [], Size(60, 16), span=span, guess=each)) for each in (guess, None))
    changed = [(one, other) for one, other in zip(with_guess, without, strict=True) if one != other]
    assert all("→" in one or WORDS in one for one, _ in changed)


@pytest.mark.parametrize(("value", "text"), [(0.5, ".5"), (-0.25, "−.25"), (12, "12"), (1500, "1.5k"), (2e6, "2M"),
                                             (0.0005, ".0005"), (4e-5, "4e-5")])  # fmt: skip
def test_ticks_are_written_as_people_do(value, text):
    assert tick(value) == text


def test_colours_are_names_of_the_theme_so_that_a_theme_change_needs_no_drawing():
    first, second = Curve([1, 2, 3], [1, 2, 3], "$curve-a"), Curve([1, 2, 3], [3, 2, 1], "$curve-b")
    styles = {str(span.style) for span in curves([first, second], [], SIZE).content.spans}
    assert {"$curve-a", "$curve-b"} <= styles
    assert "\x1b" not in curves([first, second], [], SIZE).content.plain


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_no_number_leaves_a_gap_and_a_mark(bad):
    rows = lines(curves([Curve([1, 2, 3, 4, 5], [0.5, 0.5, bad, 0.5, 0.5], "$curve-a")], [], Size(22, 6)))
    middle = rows[-1].index("×")
    assert all(row[middle] in " ┈" for row in rows[:-1])
    assert rows[-1].split() == ["1", "2", "×", "4", "5"]


def test_nothing_but_bad_numbers_still_draws():
    assert lines(curves([Curve([1, 2], [float("nan"), float("inf")], "$curve-a")], [], SIZE))[-1].count("×") == 2


def test_a_log_scale_has_powers_of_ten_and_marks_what_it_cannot_show():
    rows = lines(curves([Curve([1, 2, 3], [0.0, 0.02, 0.5], "$curve-a")], [], SIZE, log=True))
    assert rows[0].split()[0] == "1"
    assert rows[-2].split()[0] == ".01"
    assert "×" in rows[-1]


def test_what_rounding_leaves_of_zero_does_not_stretch_a_log_scale():
    rows = lines(curves([Curve([1, 2, 3], [3e-11, 0.02, 0.5], "$curve-a")], [], SIZE, log=True))
    assert rows[-2].split()[0] == ".01"
    assert "×" in rows[-1]


def test_negative_values_get_an_axis_below_zero():
    rows = lines(curves([Curve([1, 2, 3], [-0.2, 0.1, -0.05], "$curve-a")], [], SIZE))
    assert any(row.split()[0] == "−.2" for row in rows[:-1])


def test_one_value_is_a_dot():
    assert sum(row.count("●") for row in lines(curves([Curve([1], [0.3], "$curve-a")], [], SIZE))) == 1


def test_marks_stand_on_the_axis_where_the_cursor_finds_them():
    picture = curves([Curve(range(1, 22), np.ones(21), "$curve-a")], [(11, "↶"), (99, "◆")], SIZE)
    assert lines(picture)[-1].index("↶") == picture.frame.column(11)
    lit = picture.with_cursor(11, "epsilon 0.2 → 0.1")
    assert lit.plain.split("\n")[-1] == "epsilon 0.2 → 0.1"
    assert lit.plain.split("\n")[:-1] == lines(picture)[:-1]
    assert picture.with_cursor(11, "epsilon 0.2 → 0.1 · " * 3).plain.split("\n")[-1][-1] == "…", "what is cut shows it"


def test_the_cursor_lights_one_cell_of_every_line():
    picture = curves([Curve(range(1, 22), np.ones(21), "$curve-a")], [], SIZE)
    added = picture.with_cursor(5).spans[len(picture.content.spans) :]
    assert [span.start % (SIZE.width + 1) for span in added] == [picture.frame.column(5)] * SIZE.height


def shaded(picture, columns):
    """By column, the rows that an area or a band reaches into."""
    stride = picture.frame.width + 1
    cells = [
        divmod(at, stride) for span in picture.content.spans if "-shade" in str(span.style)
        for at in range(span.start, span.end)
    ]  # fmt: skip
    return {column: {row for row, at in cells if at == column} for column in columns}


def test_the_band_shades_what_is_between_its_edges():
    flat = Curve([1, 2, 3], [0.5, 0.5, 1.0], "$curve-a", band=([0.4, 0.4, 1.0], [0.6, 0.6, 1.0]))
    assert shaded(curves([flat], [], Size(33, 11)), [5])[5] == {3, 4, 5, 6}


def test_a_band_that_reaches_below_zero_goes_down_to_the_end_of_a_log_scale():
    nan = float("nan")
    curve = Curve([1, 2, 3], [0.5, 0.5, 0.5], "$curve-a", band=([0.3, -0.2, nan], [0.7, 1.2, nan]))
    picture = curves([curve], [], Size(33, 11), log=True)
    first, second, third = (picture.frame.column(update) for update in (1, 2, 3))
    found = shaded(picture, (first, second, third))
    assert max(found[first]) < 9 == max(found[second])
    assert not found[third], "a spread that is no number is not drawn"


def test_a_frame_maps_columns_back_to_updates():
    frame = Axes(width=40, left=4, right=35, first=1, last=32)
    assert all(round(frame.x(frame.column(update))) == update for update in range(1, 33))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_histogram_counts_what_lies_beyond_at_its_edges(kind):
    values = np.array([0.1, 1.0, 1.0, 1.0, 9.0], dtype=kind)
    limits = (1 - 2.5 * (1 - 0.8), 1 + 2.5 * 0.2)  # the first is a little more than 0.5
    rows = lines(histogram(values, values[:0], (0.8, 1.2), Size(30, 5), HistogramStyle(limits, "a", "b", log=False)))
    assert rows[-1].split()[0] == "≤0.5"
    assert rows[-1].split()[-1] == "≥1.5"
    assert rows[0].replace("│", " ").split() == ["3", "█"], "the number of the highest bar, and that bar"
    assert rows[-2][5] != " "
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
        picture = histogram(values, values[:0], (), Size(45, 9), HistogramStyle((0.5, 1.5), "a", "b", log))
        column = picture.frame.column(1.31)
        heights[log] = sum(row[column] != " " for row in lines(picture)[:-1])
    assert heights[True] > heights[False] == 1


@pytest.mark.parametrize("width", [12, 36, 90, 230])
def test_bars_end_at_the_bounds_and_fill_the_panel(width):
    values = np.linspace(0.5, 1.5, 1001)[:-1]
    picture = histogram(values, values[(values > 1.2)], (0.8, 1.2), Size(width, 9),
                        HistogramStyle((0.5, 1.5), "whole", "front", log=False))  # fmt: skip
    rows = lines(picture)
    assert {len(row) for row in rows} == {width}
    assert picture.frame.right == width - 1
    fronts = [span.start % (width + 1) for span in picture.content.spans if str(span.style).startswith("front")]
    assert min(fronts) >= picture.frame.column(1.2) - 1, "no bar is on both sides of a bound"


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
        rows = lines(curves([Curve([1, 2, 3], values, "$curve-a", noise=noise)], [], SIZE))
        assert [set(row) - {" "} for row in rows[:-2]] == [set()] * (SIZE.height - 2), "a line at the bottom"
        assert rows[-2].startswith(f"{written} ")
    rows = lines(curves([Curve([1, 2, 3], [1e-7, 3e-7, 2e-7], "$curve-a")], [], SIZE))
    assert any(row.startswith("2e-7 ") for row in rows), "so small, but not known to be rounding"


def test_a_side_too_small_to_see_is_written_as_next_to_nothing():
    rows = lines(curves([Curve([1, 2, 3], [-0.0004, 0.1, 0.2], "$curve-a")], [], SIZE))
    assert (rows[0].split()[0], rows[-2].split()[0]) == (".2", "≈0")
    rows = lines(curves([Curve([1, 2, 3], [0.0004, -0.1, -0.2], "$curve-a")], [], SIZE))
    assert (rows[0].split()[0], rows[-2].split()[0]) == ("≈0", "−.2")
    rows = lines(curves([Curve([1, 2, 3], [-0.01, 0.1, 0.2], "$curve-a")], [], Size(38, 12)))
    assert [row.split()[0] for row in rows[:-1] if row[:3].strip()] == [".2", ".1", "0"]


def test_a_cut_curve_leaves_its_band_and_its_letter_on_its_stretches():
    updates = [*range(1, 11), *range(31, 41)]
    curve = Curve(
        updates,
        [0.1] * 10 + [0.9] * 10,
        "$curve-a",
        band=([0.05] * 10 + [0.85] * 10, [0.15] * 10 + [0.95] * 10),
        letter="A",
        cuts=[31],
    )
    for place in ([curve], [curve, Curve([1, 40], [0.5, 0.5], "$curve-b", letter="B")]):
        picture = curves(place, [], Size(60, 12))
        rows = lines(picture)
        apart = range(picture.frame.column(11) + 1, picture.frame.column(30))
        assert not any("A" in row[apart.start : apart.stop] for row in rows[:-1])
        assert shaded(picture, [picture.frame.column(5)])[picture.frame.column(5)]
        assert not any(shaded(picture, apart).values()), "there is no curve to shade"


def test_a_cut_has_the_names_of_what_the_curve_measures_on_both_sides():
    curve = Curve([1, 2, 3, 4, 5, 6], [0.1] * 3 + [0.7] * 3, FIRST, cuts=(4,), parts=((1, "SFT"), (4, "DPO")))
    lines = curves([curve], [], Size(40, 12)).content.plain.split("\n")
    border = next(line for line in lines if "┊" in line).index("┊")
    before, after = (next(line.index(name) for line in lines if name in line) for name in ("SFT", "DPO"))
    assert before + len("SFT") < border < after


def test_an_end_of_the_axis_that_a_sign_would_cut_is_left_out():
    axis = Axes(20, 0, 19, 1, 30).axis("1", "30", [(19, "◆", NOTE), (5, "×", NOTE)]).plain
    assert axis.split() == ["1", "×", "◆"]

"""Smoothed curves: the numbers of a reference, the raw values beneath them, and a title that says so."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlplay.trace.history import History
from rlplay.trace.records import Finished
from rlplay.ui.plot.curve import GHOST, Curve
from rlplay.ui.plot.curve_view import SHADE, CurveView, Trace, with_average
from rlplay.ui.plot.picture import Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.smoothing import STRENGTHS, smoothed, smoothing_label
from tests.ui.curve_panels import Host, recorded, title

FINITE = st.floats(-1e6, 1e6)


def reference(values, weight):
    """Each value the weighted mean of all before it, in float64, straight from the definition."""
    result = []
    for n in range(1, len(values) + 1):
        weights = np.array([weight ** (n - i) for i in range(1, n + 1)], dtype=np.float64)
        result.append(float((weights * np.array(values[:n], dtype=np.float64)).sum() / weights.sum()))
    return result


@given(st.lists(FINITE, min_size=1, max_size=60), st.sampled_from(STRENGTHS))
def test_it_is_the_debiased_average_of_the_reference(values, weight):
    np.testing.assert_allclose(smoothed(values, weight), reference(values, weight), rtol=1e-9, atol=1e-6)


def test_the_first_value_is_itself_and_a_constant_stays():
    assert smoothed([3.0, 7.0], 0.9)[0] == pytest.approx(3.0)
    np.testing.assert_allclose(smoothed([0.25] * 50, 0.9), 0.25, rtol=1e-12)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_stays_a_gap_and_the_average_goes_on(bad):
    values = smoothed([1.0, bad, 2.0, 3.0], 0.6)
    assert not np.isfinite(values[1])
    np.testing.assert_allclose([values[0], *values[2:]], reference([1.0, 2.0, 3.0], 0.6))


def test_raw_values_lie_beneath_in_grey_and_points_stay_as_they_are():
    curve = Curve([1, 2], [0.0, 1.0], "$curve-a", band=([0.0, 0.9], [0.1, 1.1]))
    raw, average = with_average(curve, 0.6)
    assert (raw.style, raw.values, raw.band) == (GHOST, curve.values, None)
    assert (average.style, average.values, average.band) == ("$curve-a", smoothed([0.0, 1.0], 0.6), curve.band)
    assert with_average(curve, 0.0) == [curve]
    points = Curve([1, 2], [0.0, 1.0], "$curve-a", "points")
    assert with_average(points, 0.9) == [points]


def test_both_are_to_be_seen_in_the_plot():
    history, noise = History(), np.random.default_rng(0)
    for update in range(1, 60):
        metrics = {"loss": float(noise.normal())}
        history.add(Finished(update=update, rows=np.zeros(0), logprobs=np.zeros(0), top_logprobs=np.zeros(0),
                             metrics=metrics, timings={}, seconds=0.0))  # fmt: skip
    drawn = CurveView("Loss", (Trace("loss"),)).draw(PlotData(history), Size(60, 12), False, 0.9)
    inks = {str(span.style).split()[0] for span in drawn.content.spans}
    assert {GHOST, "$curve-a"} <= inks


@pytest.mark.parametrize("size", [(160, 12), (100, 12)])
async def test_the_smoothing_key_cycles_is_named_and_leaves_the_numbers_raw(size):
    app = Host(*recorded())
    async with app.run_test(size=size) as pilot:
        reward = app.panels[0]
        reward.focus()
        await pilot.press("left", "left")
        plain = title(reward)
        for weight in (".6", ".9"):
            await pilot.press("S")
            assert title(reward).startswith(plain.removesuffix(SHADE)), "values under the cursor are not smoothed"
            assert f"smoothed {weight}" in reward.render().plain.splitlines()[-1]
            assert (f"smoothed {weight}" in title(reward)) or size[0] == 160
        assert "smoothed" not in app.panels[1].render().plain
        await pilot.press("S")
        assert title(reward) == plain
        assert "smoothed" not in reward.render().plain


def test_what_is_not_smoothed_says_nothing():
    assert [smoothing_label(weight) for weight in STRENGTHS] == ["", "smoothed .6", "smoothed .9"]

"""Finding things: the largest value, what is found put up, and taking it elsewhere."""

import numpy as np
import pytest
from textual.widgets import OptionList

from rlplay.algorithms.knobs import KNOBS
from rlplay.trace.lenses import LENSES
from rlplay.trace.records import Scored, Stepped
from rlplay.ui.format.number_cells import signed
from rlplay.ui.knobs.knobs_screen import KnobsScreen
from rlplay.ui.plot.views import single
from rlplay.ui.tokens.largest import describe_largest
from tests.recorded import END, synthetic_update
from tests.ui.stage import on_screen, pressed, settled, text_of

WIDE = (160, 45)


def value_under_cursor(app, values) -> float:
    completion, token = app.panels.tokens.cursor
    return float(values[app.play.session.shown.sampled.offsets[completion] + token])


@pytest.mark.parametrize("lens", ["credit", "entropy", "prob_delta", "importance_ratio"])
async def test_x_goes_to_the_token_with_the_largest_value(lens):
    async with on_screen(1, steps=4, size=WIDE) as (app, _, pilot):
        await app.play.perform("lens", lens)
        await pilot.press("x")
        values = LENSES[lens].values(app.play.session.shown)
        assert value_under_cursor(app, values) == np.nanmax(values)
        assert app.panels.inspector._shown[1] == app.panels.rollouts.cursor == app.panels.tokens.cursor


@pytest.mark.parametrize(
    ("lens", "best", "places", "own", "words"),
    [
        ("credit", 2.55, [(3, 1)], 9, "Largest credit: +2.55, token ⌂ of answer 4 of 8."),
        ("credit", -0.5, [(3, 1)], 9, "Smallest credit: −0.50, token ⌂ of answer 4 of 8."),
        ("entropy", 0.25, [(3, 1)], 9, "Largest entropy: 0.25, token ⌂ of answer 4 of 8."),
        ("advantages", 1.0, [(3, 0), (3, 1)], 2, "Largest advantage: +1.00: all 2 tokens of answer 4 of 8 share it"),
        ("advantages", 1.0, [(3, 0), (5, 1)], 2, "Largest advantage: +1.00, at 1 of 2 tokens that have it: ⌂ of"),
        ("importance_ratio", 1.4, [(3, 1)], 9, "Largest ratio: 1.40, token"),
        ("clip_state", -1.0, [(3, 0), (5, 1)], 9, "One of 2 clipped tokens (▼); `x` goes to the next."),
        ("clip_state", 1.0, [(3, 0)], 9, "The only clipped token (▲)."),
    ],
)
def test_the_token_that_x_finds_is_described(lens, best, places, own, words):
    assert describe_largest(LENSES[lens], best, places, 0, ("⌂", "answer 4 of 8", own), "token").startswith(words)


async def test_several_as_large_are_counted_and_x_goes_through_them():
    async with on_screen(1, size=WIDE) as (app, _, pilot):
        await app.play.perform("lens", "advantages")
        values = LENSES["advantages"].values(app.play.session.shown)
        best = np.flatnonzero(values == np.nanmax(values))
        assert len(best) > 1, "an answer's tokens share its advantage"
        offsets, visited = app.play.session.shown.sampled.offsets, []
        for _ in range(len(best) + 1):
            await pilot.press("x")
            completion, token = app.panels.tokens.cursor
            visited.append(int(offsets[completion] + token))
        assert visited == [*best.tolist(), best[0]], "top to bottom, and round the end"
        text = app.panels.narrator.render().plain
        found, _, _ = text.partition("\n")
        assert found.startswith(f"Largest advantage: {signed(values.max())}"), "what was asked for stands first"
        assert found.endswith("x goes to the next.")
        assert not app._notifications, "a toast would cover the token it speaks of"


async def test_what_x_found_stays_until_the_cursor_leaves_it_or_somebody_acts():
    async with on_screen(1, size=WIDE) as (app, source, pilot):
        await app.play.perform("lens", "credit")

        async def found():
            await pilot.press("x")
            return app.panels.narrator.render().plain.split("\n")[0]

        first = await found()
        assert first.startswith("Largest credit")
        source.update(2)
        await settled(pilot)
        lines = app.panels.narrator.render().plain.split("\n")
        assert lines[0] == f"update 1: {first}", "it names its update, which is not the one on the screen"
        assert lines[1].startswith("Update 2: reward"), "the narrator's own words stand below"
        await pressed(pilot, "left" if app.panels.tokens.cursor[1] else "right")
        assert "Largest" not in app.panels.narrator.render().plain
        assert (await found()).startswith("Largest credit")
        await pilot.press("m")
        assert "Largest" not in app.panels.narrator.render().plain


async def test_what_x_found_stays_in_a_lesson_while_the_engine_runs():
    async with on_screen(1, size=WIDE) as (app, source, pilot):
        app.panels.narrator.say("Look at them.")
        await app.play.perform("lens", "credit")
        await pilot.press("x")
        app.panels.narrator.under_way(1, 9)
        source.update(2)
        await settled(pilot)
        text = app.panels.narrator.render().plain
        assert text.startswith("Look at them.\nupdate 1: Largest credit")
        assert text.endswith("the lesson then continues by itself")
        await pilot.press("m")
        assert app.panels.narrator.render().plain.startswith("Look at them.\nrunning: update 1 of 9")


async def test_rounding_does_not_choose_among_values_that_are_the_same():
    async with on_screen(1, size=WIDE) as (app, _, _):
        await app.play.perform("lens", "advantages")
        tokens, values = app.panels.tokens, app.panels.tokens._values
        places, best = tokens.largest()
        first = int(np.flatnonzero(values == best)[0])
        tokens._values = values.copy()
        tokens._values[first + 1] = np.nextafter(best, np.inf, dtype=values.dtype)
        assert (tokens.largest()[0] == places).all()


async def test_what_is_found_far_away_is_shown_with_what_is_around_it():
    async with on_screen(1, prompts=12, size=(160, 30)) as (app, _, pilot):
        app.play.point(24, 0)
        await settled(pilot)
        row, _ = app.panels.tokens._layout.place(24, 0)
        height = app.panels.tokens.scrollable_content_region.height
        assert app.panels.tokens.scroll_y + 2 <= row <= app.panels.tokens.scroll_y + height - 3
        assert app.panels.rollouts.scroll_y == app.panels.tokens.scroll_y
        top = app.panels.tokens.scroll_y
        await pressed(pilot, "down")
        assert app.panels.tokens.scroll_y == top, "a step scrolls no more than it has to"


async def test_without_a_positive_credit_x_finds_the_most_negative():
    async with on_screen(size=WIDE) as (app, source, pilot):
        records = synthetic_update(1, steps=8)
        for step in records:
            if isinstance(step, Stepped):
                step.clip_state[step.clip_state > 0] = 0
        source.records(records)
        await settled(pilot)
        await app.play.perform("lens", "clip_state")
        assert (app.play.session.shown.latest_step("clip_state") < 0).any()
        await pilot.press("x")
        assert value_under_cursor(app, app.play.session.shown.latest_step("clip_state")) == -1
        assert "clipped token" in app.panels.narrator.render().plain
        assert "(▼)" in app.panels.narrator.render().plain


async def test_a_statistic_not_yet_computed_says_when_it_appears():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.records([record for record in synthetic_update(1)[:2] if not isinstance(record, Scored)])
        await app.play.perform("lens", "credit")
        await settled(pilot)
        await pilot.press("x")
        assert "Credit appears after ④ update." in app.panels.narrator.render().plain


async def test_y_copies_what_has_the_focus():
    async with on_screen(1, size=WIDE) as (app, _, pilot):
        app.play.point(1, 2)
        sampled = app.play.session.shown.sampled
        start, end = sampled.offsets[1:3]
        await pilot.press("y")
        assert app.clipboard == sampled.texts[start + 2]
        app.panels.rollouts.focus()
        await pilot.press("y")
        assert app.clipboard == "".join(sampled.texts[start:end]).removesuffix(END)
        assert app.clipboard
        app.panels.inspector.focus()
        await pilot.press("y")
        assert "its loss before step" in app.clipboard
        app.panels.curves.panels[3].focus()
        await pilot.press("y")
        head, row = app.clipboard.splitlines()
        assert head == "update,completions/mean_length,entropy"
        assert float(row.split(",")[1]) == app.play.session.run.history.latest("completions/mean_length")
        assert any("Copied the answer: “" in notice.message for notice in app._notifications)


async def test_nothing_that_a_terminal_obeys_is_copied():
    async with on_screen(1, size=WIDE) as (app, _, pilot):
        app.panels.rollouts.focus()
        await pilot.press("y")
        assert "\x1b" in "".join(app.play.session.shown.sampled.texts[: app.play.session.shown.sampled.offsets[1]])
        assert "␛" in app.clipboard
        assert "\x1b" not in app.clipboard


async def chosen(pilot, verb, argument=None):
    await pilot.app.play.perform(verb, argument)
    await settled(pilot)


@pytest.mark.parametrize("knob", ["algorithm", "beta", "cliprange_value"])
async def test_a_knob_opens_the_panel_on_it(knob):
    async with on_screen(size=(80, 24)) as (app, _, pilot):
        await settled(pilot)
        await chosen(pilot, "knobs", knob)
        assert isinstance(app.screen, KnobsScreen)
        assert app.screen.name_under_cursor == knob
        assert KNOBS[knob].title in text_of(app.screen.query_one(OptionList))


async def test_a_metric_puts_its_curve_up():
    async with on_screen(1, size=WIDE) as (app, _, pilot):
        app.panels.curves.panels[2].focus()
        await settled(pilot)
        await chosen(pilot, "curve", "grad_norm")
        assert app.panels.curves.panels[2].view == single("grad_norm"), "in the panel with the focus"
        await chosen(pilot, "curve", "kl")
        assert app.panels.curves.panels[1].has_focus, "it has that curve already"
        app.panels.tokens.focus()
        await settled(pilot)
        await chosen(pilot, "curve", "loss")
        assert app.panels.curves.panels[3].view == single("loss")
        assert app.panels.curves.panels[3].has_focus


@pytest.mark.parametrize(
    ("width", "views"),
    [
        (160, ["reward", "num_tokens", "grad_norm", "loss"]),
        (120, ["reward", "grad_norm", "num_tokens"]),
        (100, ["reward", "num_tokens"]),
        (80, ["num_tokens"]),
    ],
)
async def test_curves_put_up_one_after_another_all_stay_where_there_is_room(width, views):
    async with on_screen(1, size=(width, 35)) as (app, _, pilot):
        for metric in ("loss", "grad_norm", "num_tokens"):
            app.panels.curves.put_up(metric)
            await pilot.pause()
        seen = [panel for panel in app.panels.curves.panels if not panel.has_class("-beyond")]
        assert [panel.view.metrics[0] for panel in seen] == views


async def test_a_curve_is_put_up_where_it_can_be_seen():
    async with on_screen(1, size=(80, 24)) as (app, _, pilot):
        await chosen(pilot, "curve", "grad_norm")
        panel = next(panel for panel in app.panels.curves.panels if panel.view == single("grad_norm"))
        assert panel.has_focus
        assert panel.region.area

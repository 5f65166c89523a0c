"""Finding things: the largest value, what is found put up, and taking it elsewhere."""

import numpy as np
import pytest
from textual.widgets import OptionList

from rlplay.algorithms.knobs import KNOBS
from rlplay.trace.lenses import LENSES
from rlplay.trace.records import Stepped
from rlplay.ui.format.number_cells import signed
from rlplay.ui.knobs.knobs_screen import KnobsScreen
from rlplay.ui.plot.curve_view import single
from rlplay.ui.tokens.largest import describe_ranked
from rlplay.ui.tokens.ranking import Ranked
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
    ("lens", "values", "sharing", "at", "lowest", "words"),
    [
        ("credit", [2.55, 1.0], 1, 0, False, "Largest credit: +2.55, token ⌂ of answer 4 of 8; `x` next."),
        ("credit", [2.55, 1.0], 1, 1, False, "2nd largest credit: +1.00, token ⌂ of answer 4 of 8; `x` next."),
        ("credit", [-2.1, 1.0], 1, 0, True, "Smallest credit: −2.10, token ⌂ of answer 4 of 8; `X` next."),
        ("credit", [-0.5, -0.2], 1, 1, False, "2nd smallest credit: −0.20, token"),
        ("credit", [2.5] * 13, 1, 12, False, "13th largest credit: +2.50, token"),
        ("entropy", [0.25], 1, 0, False, "Largest entropy: 0.25, token ⌂ of answer 4 of 8."),
        ("advantages", [1.0, 0.5], 9, 0, False, "Largest advantage: +1.00, token ⌂ of answer 4 of 8; 9 tokens of the "),
        ("importance_ratio", [1.4], 1, 0, False, "Largest ratio: 1.40, token"),
        ("clip_state", [-1.0, -1.0], 1, 0, False, "Clipped token 1 of 2 (▼): ⌂ of answer 4 of 8; `x` next."),
        ("clip_state", [1.0], 1, 0, False, "The only clipped token (▲)."),
    ],
)
def test_the_token_that_x_finds_is_described(lens, values, sharing, at, lowest, words):
    ranks = [Ranked(3, 1, value, sharing) for value in values]
    assert describe_ranked(LENSES[lens], ranks, at, ("⌂", "answer 4 of 8"), "token", lowest).startswith(words)


@pytest.mark.parametrize("key", ["x", "X"])
async def test_x_goes_on_to_the_next_answer_and_large_x_begins_at_the_most_blamed(key):
    async with on_screen(1, size=WIDE) as (app, _, pilot):
        await app.play.perform("lens", "advantages")
        ranks = app.panels.tokens.ranking(lowest=key == "X")
        assert max(each.sharing for each in ranks) > 1, "an answer's tokens share its advantage"
        visited = []
        for _ in range(len(ranks) + 1):
            await pilot.press(key)
            visited.append(app.panels.tokens.cursor)
        assert visited == [*(each[:2] for each in ranks), visited[0]], "in order, and round the end"
        values = [each.value for each in ranks]
        assert values == sorted(values, reverse=key == "x")
        await pilot.press("right", key)
        assert app.panels.tokens.cursor == visited[0], "from elsewhere it begins again"
        found, _, _ = app.panels.narrator.render().plain.partition("\n")
        assert found.startswith(f"{'Largest' if key == 'x' else 'Smallest'} advantage: {signed(values[0]).strip()}")
        assert found.endswith(f"{key} next.")
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
        assert "Clipped token 1 of" in app.panels.narrator.render().plain
        assert "(▼)" in app.panels.narrator.render().plain


async def test_before_a_statistic_exists_x_goes_by_the_one_that_steps_in_and_names_it():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.records(synthetic_update(1)[:1])
        await app.play.perform("lens", "credit")
        await settled(pilot)
        await pilot.press("x")
        assert app.panels.narrator.render().plain.startswith("Largest probability: ")


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
        await pressed(pilot, "enter", "y")
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

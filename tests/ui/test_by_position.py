"""A statistic of every token by its position: what is drawn, what the numbers are, and where keys and clicks lead."""

import msgspec
import numpy as np
import pytest
from textual.widgets import Static

from rlplay.trace.lenses import LENSES
from rlplay.trace.update import Update
from rlplay.ui.plot.picture import Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.position.by_position import CURSOR_SIGN, ByPosition, drawn, of_update
from rlplay.ui.position.dots import DOT_PARTS, Plot, drawing
from rlplay.ui.position.places import places, spread
from tests.apart import records_apart, update_apart
from tests.recorded import synthetic_update
from tests.ui.stage import on_screen, pressed, settled

NAME = "sampler_difference"


def position_panel(app):
    return next(panel for panel in app.panels.curves.seen if panel.view == ByPosition())


async def opened(pilot, source, number=6):
    source.records(records_apart(number, length=30))
    source.status(number)
    await settled(pilot)
    await pressed(pilot, "Q")
    return position_panel(pilot.app)


def test_each_sampled_token_is_at_its_position_in_its_answer():
    update = update_apart()
    sampled = update.sampled
    sampled.mask[3] = 0
    found = places(update, NAME)
    wanted = [(at - start, at) for start, end in zip(sampled.offsets, sampled.offsets[1:], strict=False)
              for at in range(start, end) if at != 3]  # fmt: skip
    assert list(zip(found.position, found.index, strict=True)) == wanted
    assert found.value.tolist() == LENSES[NAME].values(update)[found.index].astype(float).tolist()
    assert found.length == np.diff(sampled.offsets).max()
    assert (np.diff(found.beside[found.position == 0]) > 0).all()
    assert places(Update(1), NAME) is None


def test_the_numbers_are_those_of_the_tokens_at_these_positions():
    found = places(update_apart(), NAME)
    values = np.sort(found.value[(found.position >= 2) & (found.position <= 5)])
    of = spread(found, 2, 5)
    assert of.tokens == len(values)
    assert of.median in values
    assert abs((values <= of.low).mean() - 0.1) <= 1 / len(values)
    assert abs((values < of.median).mean() - 0.5) <= 1 / len(values)
    assert of.farthest in (values[0], values[-1])
    assert spread(found, 2, 5, True).low >= 0
    assert spread(found, found.length, found.length) is None
    farthest = found.value[found.farthest(2, 5)]
    assert (np.diff(np.abs(farthest - np.median(values))) <= 0).all()


@pytest.mark.parametrize(("width", "height"), [(110, 30), (60, 9), (16, 5)])
def test_every_token_has_a_dot_and_no_place_without_tokens_has_one(width, height):
    found = places(update_apart(length=40), NAME)
    plot = Plot(found, 0, found.length - 1, Size(width, height), False)
    rows = drawing(plot, 0.0, False, "").plain.split("\n")
    assert len(rows) == height
    assert all(len(row) == width for row in rows[:-1])
    taken = {plot.cell(token) for token in range(len(found.index))}
    dots = {(x, y) for y, row in enumerate(rows) for x, sign in enumerate(row) if "\u2801" <= sign <= "\u28ff"}
    blocks = {(x, y) for y, row in enumerate(rows) for x, sign in enumerate(row) if sign in "▁▂▃▄▅▆▇█▔▀"}
    assert dots <= taken <= dots | blocks
    assert DOT_PARTS == (2, 4)
    for position in range(found.length):
        low, high = plot.positions(position)
        assert low <= position <= high
        mine = np.flatnonzero(found.position == position)
        assert {plot.cell(token)[0] for token in mine} <= set(plot.columns(position))


def test_the_nearest_token_to_a_cell_is_the_one_drawn_there():
    found = places(update_apart(length=40), NAME)
    plot = Plot(found, 3, 12, Size(100, 25), False)
    token = int(plot.inside[np.abs(found.value[plot.inside]).argmax()])
    assert plot.nearest(*plot.cell(token)) == token


def test_automatic_is_the_difference_to_the_sampler_if_there_is_one():
    source = PlotData(history=None, shown=update_apart())
    assert drawn(source)[0].name == NAME
    alone = Update(1)
    for record in synthetic_update(1):
        alone.add(record)
    assert drawn(PlotData(history=None, shown=alone))[0].name == "entropy"
    chosen, found = drawn(PlotData(history=None, shown=alone, lens=NAME))
    assert (chosen.name, found) == (NAME, None)


@pytest.mark.parametrize("size", [(160, 45), (120, 35), (80, 24)])
async def test_keys_lead_to_the_tokens_that_are_farthest_off(size):
    async with on_screen(size=size) as (app, source, pilot):
        panel = await opened(pilot, source)
        assert panel.has_focus
        update = app.play.session.shown
        found = places(update, NAME)
        tokens = app.panels.tokens

        def value():
            return LENSES[NAME].values(update)[update.sampled.offsets[tokens.cursor[0]] + tokens.cursor[1]]

        await pressed(pilot, "enter")
        order = found.value[found.farthest(0, found.length - 1)]
        assert value() == pytest.approx(order[0])
        await pressed(pilot, "enter")
        assert value() == pytest.approx(order[1])
        await pressed(pilot, "right", "right", "right", "enter")
        assert tokens.cursor[1] == 2
        assert CURSOR_SIGN in panel.render().plain
        assert "position 3" in str(panel.border_subtitle)
        await pressed(pilot, "plus")
        first, last = panel.view.window(found)
        assert last - first + 1 == found.length // 2
        assert "of" in str(panel.border_title)
        await pressed(pilot, "minus")
        assert panel.view.window(found) == (0, found.length - 1)
        await pressed(pilot, "plus", "end", "right")
        assert panel.view.at == last + 1
        await pressed(pilot, "escape", "escape")
        assert panel.view.at is None
        assert panel.view.window(found) == (0, found.length - 1)


async def test_a_click_goes_to_the_token_under_the_mouse():
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        panel = await opened(pilot, source)
        found = places(app.play.session.shown, NAME)
        size = Size(*panel.content_size)
        plot = Plot(found, 0, found.length - 1, size, False)
        token = int(np.abs(found.value).argmax())
        inner = panel.content_region.offset - panel.region.offset
        cell = plot.cell(token)
        await pilot.click(panel, offset=(cell[0] + inner.x, cell[1] + inner.y))
        await settled(pilot)
        sampled = app.play.session.shown.sampled
        assert sampled.offsets[app.panels.tokens.cursor[0]] + app.panels.tokens.cursor[1] == found.index[token]


async def test_it_shows_the_statistic_that_colours_the_tokens():
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        panel = await opened(pilot, source)
        assert "ℓ − ℓˢ by position" in str(panel.border_title)
        app.play.lens_choice = "entropy"
        app.play.session.touch("look")
        await settled(pilot)
        assert "H by position" in str(panel.border_title)


async def test_before_there_is_an_answer_it_says_what_will_be_there():
    async with on_screen(size=(120, 35)) as (app, _source, pilot):
        await settled(pilot)
        await pressed(pilot, "Q")
        assert "A dot for each token" in position_panel(app).render().plain


def test_while_answers_are_sampled_the_update_before_remains():
    before, now = update_apart(5), Update(6)
    now.add(msgspec.structs.replace(update_apart(6).sampled, done=False, sampling_logprobs=None))
    source = PlotData(history=None, shown=now, live=before, columns=100, lines=30)
    assert of_update(source) is before
    assert drawn(source)[0].name == NAME
    assert "update 5" in ByPosition().titles(source, None, False)[0].plain
    assert CURSOR_SIGN not in ByPosition().draw(source, Size(100, 30), False).content.plain
    assert of_update(PlotData(history=None, shown=update_apart(6), live=before)).number == 6


def test_a_cursor_costs_no_new_drawing(monkeypatch):
    source = PlotData(history=None, shown=update_apart(length=40), columns=100, lines=30)
    view, size = ByPosition(), Size(100, 30)
    view.draw(source, size, False)
    monkeypatch.setattr("rlplay.ui.position.dots.Canvas", None)
    for at in range(5):
        ByPosition(at=at).draw(source, size, False)


async def test_its_help_comes_before_that_of_the_curves():
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        await opened(pilot, source)
        await pressed(pilot, "question_mark")
        words = str(app.screen.query_one(Static).render())
        place = words.index("has a dot for each token")
        assert place < words.index("One number per update")
        assert words.count("has a dot for each token") == 1
        assert "the curve; ● is the newest update" not in words

"""The belief river: bands as high as the probabilities, gaps where nothing was recorded, at every size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from textual.content import Content

from rlplay.trace.beliefs import LONG, NEIGHBOURS, Belief, Beliefs, Context, shares_over, window_of
from rlplay.trace.history import History
from rlplay.trace.records import Changed, Sampled
from rlplay.trace.update import Update
from rlplay.ui.app import RlplayApp
from rlplay.ui.format.bars import BARS
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.river.belief_river import INKS, NO_CANDIDATES, NO_TOKEN, NOTHING_YET, OTHERS, TEXTURES, River, named
from rlplay.ui.session.sources import ReplaySource
from tests.recorded import synthetic_run, synthetic_update
from tests.ui.curve_panels import subtitle, title
from tests.ui.stage import on_screen, pressed, settled, shown

SHARES = {1: (0.7, 0.2), 2: (0.5, 0.4), 4: (0.1, 0.85)}
"""Of tokens 0 and 1 at the first token, by update; update 3 recorded nothing."""


def answers(number: int, shares: tuple[float, ...]) -> Sampled:
    record = synthetic_update(number)[0]
    assert isinstance(record, Sampled)
    ids = np.tile(np.arange(len(shares), dtype=np.int32), (len(record.token_ids), 1))
    logprobs = np.tile(np.log(np.array(shares, dtype=np.float32)), (len(record.token_ids), 1))
    return msgspec.structs.replace(record, top_ids=ids, top_logprobs=logprobs, pieces={0: "The", 1: "3"})


def run() -> PlotData:
    history, beliefs, update = History(), Beliefs(), Update(4)
    for number in (1, 2, 3, 4):
        history.add(synthetic_update(number)[-1])
        if number in SHARES:
            beliefs.add(answers(number, SHARES[number]))
    update.add(answers(4, SHARES[4]))
    return PlotData(history, shown=update, beliefs=beliefs)


def drawn(source: PlotData, width: int = 60, height: int = 21) -> Picture:
    picture = River().draw(source, Size(width, height), False)
    assert isinstance(picture, Picture), picture
    return picture


def column(picture: Picture, at: int, width: int) -> list[tuple[str, str]]:
    """The cells of a column, bottom to top, without the axis."""
    cells = []
    for row in range(picture.content.plain.count("\n")):
        place = row * (width + 1) + at
        styles = [str(span.style) for span in picture.content.spans if span.start <= place < span.end]
        cells.append((picture.content.plain[place], styles[-1] if styles else ""))
    return cells[::-1]


def heights(cells: list[tuple[str, str]]) -> dict[str, float]:
    """How many cells each colour takes in a column without a written name."""
    total: dict[str, float] = {}
    for character, style in cells:
        ink, _, behind = style.partition(" on ")
        part = BARS.index(character) / 8
        total[ink] = total.get(ink, 0.0) + part
        if behind:
            total[behind] = total.get(behind, 0.0) + 1 - part
    return total


@pytest.mark.parametrize("number", SHARES)
def test_a_band_is_as_high_as_its_probability(number: int) -> None:
    picture = drawn(run())
    middle = picture.frame.column(number)
    near = [column(picture, at, 60) for at in range(max(middle - 6, picture.frame.left), middle + 7) if at < 60
            and round(picture.frame.x(at)) == number]  # fmt: skip
    cells = next(cells for cells in near if all(character in BARS for character, _ in cells))  # no name over it
    found = heights(cells)
    first, second = SHARES[number]
    # "3" is the likeliest in the last update, so it is the band at the bottom.
    for ink, share in ((INKS[0], second), (INKS[1], first), (OTHERS, 1 - first - second)):
        assert found[ink] / len(cells) == pytest.approx(share, abs=1 / 16 / len(cells) + 1e-9)


def test_an_update_without_records_is_a_gap() -> None:
    picture = drawn(run())
    assert {character for character, _ in column(picture, picture.frame.column(3), 60)} == {" "}


def test_a_sign_takes_the_place_of_the_name_of_the_axis() -> None:
    source = run()
    *_, axis = drawn(source, width=18).content.plain.split("\n")
    assert "update" in axis
    source.history.add(Changed(update=2, phase="sample", name="beta", value=0.1, previous=0.0))
    *_, axis = drawn(source, width=18).content.plain.split("\n")
    assert "◆" in axis
    assert "upd" not in axis


def test_it_ends_where_the_other_panels_end() -> None:
    source = run()
    assert source.beliefs is not None
    source.beliefs.add(answers(5, (0.5, 0.5)))  # sampled, but not finished
    assert drawn(source).frame.last == 4
    assert River().titles(source, None, False)[1].plain.startswith('■ "3" .20→.85')
    assert drawn(replace(source, history=History())).frame.last == 5  # nothing is finished


def test_names_are_in_their_bands_and_values_below() -> None:
    source = run()
    text = drawn(source).content.plain
    assert '"3"' in text
    assert '"The"' in text
    above, below = River().titles(source, None, False)
    assert above.plain == "Belief · first token · mean of 4 prompts an update"
    assert below.plain == '■ "3" .20→.85 · ■ "The" .70→.10 · ■ others .10→.05'
    above, below = River().titles(source, 2, False)
    assert above.plain.startswith("Belief at 2")
    assert '"3" .40' in below.plain
    assert "–" in River().titles(source, 3, False)[1].plain


@pytest.mark.parametrize(
    ("columns", "ends"),
    [(60, "mean of 4 prompts an update"), (42, "mean of 4 prompts"), (34, "4 prompts")],
)
def test_the_title_says_whose_answers_they_are_in_any_room(columns: int, ends: str) -> None:
    above, _ = River().titles(replace(run(), columns=columns, lines=9), None, False)
    assert above.plain == f"Belief · first token · {ends}"
    assert above.cell_length <= columns - 2


def test_the_title_of_a_river_of_one_prompt_names_it() -> None:
    source = run()
    assert source.beliefs is not None
    assert source.shown is not None
    assert source.shown.sampled is not None
    one = msgspec.structs.replace(
        source.shown.sampled, prompts=["How many books?"] * 4,
        prompt_ids=np.zeros(4, dtype=np.int32), prompt_offsets=np.arange(5),
    )  # fmt: skip
    source.shown.add(one)
    for number in SHARES:
        source.beliefs.add(msgspec.structs.replace(one, update=number))
    for columns, words in ((60, "“How many books?”"), (40, "“How many boo…”")):
        above, _ = River().titles(replace(source, columns=columns, lines=9), None, False)
        assert above.plain == f"Belief · first token · {words}"


def test_what_changed_most_is_named_first_and_the_axis_counts_updates() -> None:
    source = run()
    assert source.beliefs is not None
    for number, kept in source.beliefs._kept.items():
        kept.top_logprobs[:] = np.log({1: (0.5, 0.45), 2: (0.3, 0.5), 4: (0.05, 0.6)}[number])
    below = River().titles(source, None, False)[1].plain
    assert below.index('"The" .50→.05') < below.index('"3" .45→.60'), "though 3 is the lowest band"
    *_, axis = drawn(source).content.plain.split("\n")
    assert axis.split() == ["1", "update", "4"]
    *rows, axis = drawn(source, width=11).content.plain.split("\n")
    assert axis.split() == ["1", "4"], "no room"
    assert any('"3"' in row for row in rows), "a name without room around it"


@pytest.mark.parametrize("size", [Size(36, 9), Size(36, 5), Size(50, 14), Size(100, 30)])
def test_every_band_is_named_in_the_plot_or_below_it(size: Size) -> None:
    source = run()
    record = answers(4, (0.45, 0.2, 0.12, 0.11, 0.06))
    pieces = {0: "The", 1: "4", 2: "It", 3: "5", 4: "2"}
    beliefs = Beliefs()
    beliefs.add(msgspec.structs.replace(record, pieces=pieces))
    source = replace(source, beliefs=beliefs, columns=size.width, lines=size.height)
    plot = drawn(source, size.width, size.height).content.plain
    below = River().titles(source, None, False)[1]
    assert below.cell_length <= size.width - 2
    assert all(f'"{name}"' in plot + below.plain for name in pieces.values())
    assert "others" in plot + below.plain, "6 % in all"
    assert below.plain.startswith('■ "The" .45') == (size.width >= 50), "then values, as they fit"


def test_without_colours_the_legend_has_the_textures() -> None:
    below = River().titles(replace(run(), plain=True), None, False)[1].plain
    assert below.startswith(f'{TEXTURES[0]} "3"')


def test_without_colours_the_bands_have_textures() -> None:
    picture = drawn(replace(run(), plain=True))
    characters = {character for character, _ in column(picture, picture.frame.column(2), 60)}
    assert {TEXTURES[0], TEXTURES[1], " "} <= characters


def test_a_token_that_was_likely_once_keeps_its_band() -> None:
    source = run()
    assert source.beliefs is not None
    assert named(source.beliefs.at(Context())) == [1, 0]


@pytest.mark.parametrize("size", [(14, 3), (36, 5), (56, 9), (110, 30), (230, 60)])
def test_every_line_is_as_wide_as_the_panel(size: tuple[int, int]) -> None:
    lines = drawn(run(), *size).content.plain.split("\n")
    assert {Content(line).cell_length for line in lines} == {size[0]}
    assert len(lines) == size[1]


def test_empty_states_say_what_to_do() -> None:
    source = run()
    assert River().draw(PlotData(History()), Size(40, 8), False) == NOTHING_YET
    assert River().draw(PlotData(History(), beliefs=source.beliefs), Size(40, 8), False) == NO_TOKEN
    bare, update = Beliefs(), Update(1)
    record = synthetic_update(1)[0]
    assert isinstance(record, Sampled)
    none = np.zeros((len(record.token_ids), 0))
    update.add(msgspec.structs.replace(record, top_ids=none.astype(np.int32), top_logprobs=none))
    bare.add(update.sampled)
    assert River().draw(PlotData(History(), shown=update, beliefs=bare), Size(40, 8), False) == NO_CANDIDATES


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (160, 45), (240, 67)])
async def test_its_key_puts_it_up_live(size: tuple[int, int]) -> None:
    async with on_screen(size=size) as (app, source, pilot):
        for number in (1, 2):
            source.update(number)
        await settled(pilot)
        await pressed(pilot, "B")
        panel = next(panel for panel in app.panels.curves.panels if isinstance(panel.view, River))
        assert panel.has_focus
        assert title(panel).startswith("Belief")
        assert "1.0" in shown(panel)
        app.play.point(1, 2)
        await settled(pilot)
        beliefs = app.play.session.run.beliefs
        place = beliefs.place(app.play.session.shown, (1, 2))
        assert place is not None
        assert len(place.before) == 2
        assert panel.source is not None
        assert panel.source.cursor == (1, 2)


async def test_a_recording_is_read_once_the_river_is_in_sight(tmp_path: Path) -> None:
    path = tmp_path / "run.rlplay"
    synthetic_run(path, 3)
    app = RlplayApp(ReplaySource(path))
    async with app.run_test(size=(160, 45)) as pilot:
        await settled(pilot)
        assert app.play.session.run.beliefs.known == 0
        await pressed(pilot, "B")
        assert app.play.session.run.beliefs.known == 3
        panel = next(panel for panel in app.panels.curves.panels if isinstance(panel.view, River))
        assert "→" in subtitle(panel)


def test_a_mean_is_over_the_updates_on_record_around_each() -> None:
    found = {number: Belief({7: share}, 1) for number, share in ((1, 0.0), (2, 1.0), (3, 0.5), (6, 0.2))}
    assert shares_over(found, [7, 9], 3) == pytest.approx(np.array([[0.5, 0], [0.5, 0], [0.75, 0], [0.2, 0]]))
    assert shares_over(found, [7], 1)[:, 0] == pytest.approx([0.0, 1.0, 0.5, 0.2])


@pytest.mark.parametrize(
    ("updates", "columns", "place", "window"),
    [
        (LONG - 1, 60, Context(), 1), (LONG, 60, Context(), NEIGHBOURS), (LONG, 60, Context(prompt=b"p"), 1),
        (LONG, 60, Context(state="a"), 1), (300, 100, Context(prompt=b"p"), 3), (301, 100, Context(), 5),
    ],
)  # fmt: skip
def test_means_are_taken_in_long_runs_and_of_other_prompts_only(
    updates: int, columns: int, place: Context, window: int
) -> None:
    assert window_of(updates, columns, place) == window


def test_the_title_says_over_how_many_updates_a_mean_is() -> None:
    history, beliefs, update = History(), Beliefs(), Update(LONG)
    for number in range(1, LONG + 1):
        history.add(synthetic_update(number)[-1])
        share = 0.8 if number % 2 else 0.2
        each = answers(number, (share, 0.1))
        beliefs.add(msgspec.structs.replace(each, prompt_ids=each.prompt_ids + number))
    update.add(answers(LONG, (0.2, 0.1)))
    source = PlotData(history, shown=update, beliefs=beliefs, columns=100, lines=21)
    assert f"Belief · mean of {NEIGHBOURS} updates" in River().titles(source, None, False)[0].plain
    lows = [len([cell for cell, ink in column(drawn(source, 100), at, 100) if ink == INKS[0]]) for at in (40, 60, 80)]
    assert max(lows) - min(lows) <= 3, "no comb of single updates"

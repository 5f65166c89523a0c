"""The learning map in a curve's place: bands of prompts, counted and shaded, live and in a recording."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from rlplay.trace.evaluations import Evaluations
from rlplay.trace.history import History
from rlplay.trace.records import Evaluated
from rlplay.trace.runfile import RunWriter
from rlplay.ui.app import RlplayApp
from rlplay.ui.held_out.answers_over_time import LearningScreen, PromptCourses
from rlplay.ui.held_out.learning_map import INKS, NO_EVALUATIONS, TEXTURES, WRONG, LearningMap
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.session.reading import next_evaluation
from rlplay.ui.session.sources import ReplaySource
from tests.recorded import synthetic_started, synthetic_update
from tests.trace.test_learning import RIGHT, run
from tests.ui.curve_panels import subtitle, title
from tests.ui.stage import playground, pressed, settled


def measured() -> list[Evaluated]:
    """The evaluations after updates 0, 5, 10 and 15, with their metric."""
    return [msgspec.structs.replace(each, metrics={"eval_reward": float(each.rewards.mean())}) for each in run()]


def source(evaluations: list[Evaluated]) -> PlotData:
    history, kept = History(), Evaluations()
    for each in evaluations:
        history.add(each)
        kept.add(each)
    return PlotData(history, evaluations=kept)


def lines(given: PlotData, width: int = 60, height: int = 13) -> list[str]:
    picture = LearningMap().draw(given, Size(width, height), False)
    assert isinstance(picture, Picture), picture
    assert {len(line) for line in picture.content.plain.split("\n")} == {width}
    return picture.content.plain.split("\n")


def coloured(given: PlotData, width: int = 61, height: int = 13) -> tuple[Picture, list[list[str]]]:
    """The picture, and the colour in the background of each of its cells."""
    picture = LearningMap().draw(given, Size(width, height), False)
    assert isinstance(picture, Picture), picture
    cells = [[""] * width for _ in range(height)]
    for span in picture.content.spans:
        for at in range(span.start, span.end):
            if at % (width + 1) < width:
                cells[at // (width + 1)][at % (width + 1)] = str(span.style).rpartition("on ")[2]
    return picture, cells


def test_every_band_is_as_high_as_its_prompts_and_bright_where_they_are_right() -> None:
    height = 12  # two lines for each of the six prompts
    picture, cells = coloured(source(measured()), height=height + 1)
    axis = picture.content.plain.split("\n")[-1]
    columns = [axis.index(f" {update}") + 2 for update in (0, 5, 10)] + [axis.index("15")]
    places = {"always": 0, "never": 1, "learned late": 2, "learned": 3, "forgotten": 4, "wavers": 5}
    bands = {"always": ["always"], "learned": ["learned", "learned late", "wavers"], "forgotten": ["forgotten"],
             "never": ["never"]}  # fmt: skip
    for at, column in enumerate(columns):
        found = [cells[row][column] for row in reversed(range(height))]
        expected = []
        for kind, names in bands.items():
            right = sum(bool(RIGHT[at][places[name]]) for name in names)
            expected += [INKS[kind]] * 2 * right + [f"{INKS[kind]}-shade"] * 2 * (len(names) - right)
        assert found == expected, at


def test_a_band_names_itself_where_it_has_room() -> None:
    text = "\n".join(lines(source(measured()), width=80, height=19))
    assert "learned 3" in text
    assert all(name not in "\n".join(lines(source(measured()), width=24, height=4)) for name in ("learned", "always"))


def test_without_colours_each_band_has_a_texture_for_what_is_right() -> None:
    rows = lines(replace(source(measured()), plain=True), height=7)[:-1]
    assert {cell for row in rows for cell in row[4:]} == {
        " ",
        TEXTURES["always"],
        TEXTURES["learned"],
        TEXTURES["forgotten"],
        WRONG,
    }


def test_a_blank_cell_parts_evaluations_where_they_are_few() -> None:
    picture, cells = coloured(source(measured()), width=60, height=7)
    assert picture.content.plain.split("\n")[-1].split() == ["0", "5", "10", "15"]
    rows, left = cells[:-1], picture.frame.left
    blank = [at for at in range(left, 60) if not any(row[at] for row in rows)]
    assert len(blank) == 3, "between four evaluations"
    _, narrow = coloured(source(measured()), width=16, height=7)
    assert all(any(row[at] for row in narrow[:-1]) for at in range(left, 16))


def test_the_title_counts_and_the_line_below_names_the_ends() -> None:
    above, below = LearningMap().titles(source(measured()), None, False)
    assert above.plain == "Learning map · 2→4 of 6 right"
    assert below.plain == "■ always 1 · ■ forgotten 1 · ■ never 1 · ■ learned 3 · bright: right"
    assert LearningMap().titles(source(measured()), 6, False)[0].plain.startswith("Learning map · 4 of 6 right at 5")
    above, below = LearningMap().titles(source(measured()[:1]), None, False)
    assert above.plain.startswith("Learning map · 2 of 6")
    assert "not yet 4" in below.plain, "after one evaluation nobody knows of never"


def test_without_rewards_a_column_is_empty_and_without_evaluations_it_says_so() -> None:
    each = measured()[0]
    unknown = msgspec.structs.replace(each, rewards=np.full(len(each.rewards), np.nan))
    assert {cell for row in lines(source([unknown]))[:-1] for cell in row[2:]} == {" "}
    history = History()
    assert "Press `u`" in LearningMap().draw(PlotData(history, evaluations=Evaluations()), Size(40, 8), False)
    history.add(synthetic_update(1)[-1])
    assert LearningMap().draw(PlotData(history, evaluations=Evaluations()), Size(40, 8), False) == NO_EVALUATIONS


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (160, 45)])
async def test_the_key_puts_it_up_live_and_enter_opens_the_answers_there(size: tuple[int, int]) -> None:
    app, fed = playground()
    async with app.run_test(size=size) as pilot:
        fed.update(1)
        fed.records(measured()[:3])
        await settled(pilot)
        await pressed(pilot, "E")
        panel = next(panel for panel in app.panels.curves.seen if isinstance(panel.view, LearningMap))
        assert panel.has_focus
        assert title(panel).startswith("Learning map · 2→2 of 6 right")
        assert subtitle(panel).startswith("■ ")
        fed.records(measured()[3:])
        await settled(pilot)
        assert "2→4 of 6" in title(panel)
        assert "forgotten 1" in subtitle(panel)
        await pressed(pilot, "left", "left", "left", "enter")
        assert isinstance(app.screen, LearningScreen)
        assert app.screen.query_one(PromptCourses).at == 1, "the evaluation after update 5"


async def test_a_recording_reads_its_evaluations_one_by_one(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run.rlplay", synthetic_started())
    first, *others = measured()
    for record in (first, *synthetic_update(1), *others):
        writer.append(record)
    writer.close()
    app = RlplayApp(ReplaySource(tmp_path / "run.rlplay"))
    async with app.run_test(size=(160, 45)) as pilot:
        await settled(pilot)
        await settled(pilot)
        assert app.play.session.run.evaluations.stale, "nobody looks at them yet"
        for missing in (4, 3, 2):
            assert next_evaluation(app.play.session)
            assert len(app.play.session.run.evaluations.missing) == missing
        await pressed(pilot, "E")
        panel = next(panel for panel in app.panels.curves.seen if isinstance(panel.view, LearningMap))
        assert "2→4 of 6" in title(panel)

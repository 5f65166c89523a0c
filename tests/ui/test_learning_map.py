"""The learning map in a curve's place: bands of prompts, counted and shaded, live and in a recording."""

from __future__ import annotations

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
from rlplay.ui.held_out.learning_map import NO_EVALUATIONS, SHADES, TOP_DOWN, LearningMap
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.session.reading import next_evaluation
from rlplay.ui.session.sources import ReplaySource
from tests.recorded import synthetic_started, synthetic_update
from tests.trace.test_learning import RIGHT, run
from tests.ui.curve_panels import subtitle, title
from tests.ui.stage import playground, pressed, settled, shown


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


def test_a_line_for_each_prompt_shows_its_rewards_where_the_evaluations_are() -> None:
    *rows, axis = lines(source(measured()), height=7)
    columns = [axis.index(f" {update}") + 1 for update in (0, 5, 10)] + [axis.index("15") + 1]
    found = ["".join(row[column] for column in columns) for row in rows]
    # From the top: never, forgotten, and the three learned ones from the last to flip to the first; then always.
    expected = ["never", "forgotten", "wavers", "learned late", "learned", "always"]
    places = {"always": 0, "never": 1, "learned late": 2, "learned": 3, "forgotten": 4, "wavers": 5}
    assert found == ["".join(SHADES[-1] if right[places[name]] else SHADES[0] for right in RIGHT) for name in expected]
    assert [row.split()[:2] for row in rows if row[:10].strip()] == [
        ["never", "1"], ["forgotten", "1"], ["learned", "3"], ["always", "1"]
    ]  # fmt: skip


def test_a_blank_cell_parts_evaluations_where_they_are_few() -> None:
    *rows, axis = lines(source(measured()), width=60, height=7)
    assert axis.split()[0] == "update"
    blank = [at for at in range(12, 60) if {row[at] for row in rows} == {" "}]
    assert len(blank) == 3, "between four evaluations"
    narrow = lines(source(measured()), width=26, height=7)[:-1]
    assert not [at for at in range(12, 25) if {row[at] for row in narrow} == {" "}]


@pytest.mark.parametrize("height", range(1, 30))
def test_bands_fill_every_height_and_a_line_is_the_mean_of_its_prompts(height: int) -> None:
    rows = lines(source(measured()), height=height + 1)[:-1]
    assert len(rows) == height
    named = [row[:12].split()[0] for row in rows if row[:12].split()]
    assert named == [kind for kind in TOP_DOWN if kind in named]
    if height == 1:
        assert named == ["learned"], "the largest band stays"
        assert rows[0].endswith("█"), "1, 1 and 1"
        assert "▒" in rows[0], "one of three is right"


def test_the_title_counts_and_the_line_below_names_the_ends() -> None:
    above, below = LearningMap().titles(source(measured()), None, False)
    assert above.plain == "Learning map · 2→4 of 6 right"
    assert below.plain == "mean reward ░ 0 ▒ ▓ █ 1 · held-out prompts"
    assert LearningMap().titles(source(measured()), 6, False)[0].plain.startswith("Learning map · 4 of 6 right at 5")
    assert LearningMap().titles(source(measured()[:1]), None, False)[0].plain.startswith("Learning map · 2 of 6")


def test_without_rewards_a_cell_is_a_dot_and_without_evaluations_it_says_so() -> None:
    each = measured()[0]
    unknown = msgspec.structs.replace(each, rewards=np.full(len(each.rewards), np.nan))
    assert {cell for row in lines(source([unknown]))[:-1] for cell in row[12:]} == {"·"}
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
        assert subtitle(panel).startswith("mean reward")
        fed.records(measured()[3:])
        await settled(pilot)
        assert "2→4 of 6" in title(panel)
        assert "learned 3" in shown(panel)
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

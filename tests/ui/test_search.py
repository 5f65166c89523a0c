"""TRPO's search on the screen: the panel, the words, the phase bar, and the colours while nothing is pulled yet."""

import json

import msgspec
import pytest

from rlplay.algorithms.apply import resolve
from rlplay.export.npz import arrays
from rlplay.trace.history import History
from rlplay.trace.update import Update
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.trpo_search import NOT_YET, Search
from rlplay.ui.words.narration import narrate
from rlplay.ui.words.step_search import NOTHING, detail
from tests.recorded import synthetic_search, synthetic_update
from tests.ui.stage import playground, settled

TRPO = resolve({"algorithm": "trpo"})
SIZE = Size(36, 8)


def searching(records: int, *, finished: bool = False, accepted: bool = True) -> Update:
    """An update of which so many records of the search are there; with `finished` its optimizer step too."""
    update = Update(1)
    whole = synthetic_update(1, steps=1)
    for record in (*whole[:3], *synthetic_search(1, accepted)[:records], *(whole[3:4] if finished else ())):
        update.add(record)
    return update


def drawn(update: Update) -> list[str]:
    picture = Search().draw(PlotData(History(), update, TRPO), SIZE, log=False)
    assert isinstance(picture, Picture)
    lines = picture.content.plain.split("\n")
    assert len(lines) <= SIZE.height
    assert all(len(line) <= SIZE.width for line in lines)
    return lines


def test_before_the_search_the_panel_says_what_fills_it():
    assert Search().draw(PlotData(History(), None, TRPO), SIZE, log=False) == NOT_YET
    assert Search().draw(PlotData(History(), searching(0), TRPO), SIZE, log=False) == NOT_YET
    assert Search().draw(PlotData(History(), searching(0, finished=True), TRPO), SIZE, log=False) == NOTHING


def test_while_it_looks_for_the_direction_each_iteration_is_a_bar_and_a_line():
    first, heading, *lines = drawn(searching(3))
    assert first == "CG ▇▇▆ 3 of 4 · residual 0.14"
    assert heading.split() == ["CG", "residual", "gain", "at", "limit"]
    assert [line.split() for line in lines] == [["1", "0.62", "0.021"], ["2", "0.31", "0.022"], ["3", "0.14", "0.023"]]


def test_each_step_tried_is_a_line_with_its_verdict():
    _, _, *lines = drawn(searching(7))
    assert [line.split(maxsplit=3) for line in lines] == [
        ["1.00", "0.0131", "0.03", "✗ too far"],
        ["0.80", "0.0102", "0.029", "✗ too far"],
        ["0.64", "0.0064", "0.028", "✓ taken"],
    ]
    above, below = Search().titles(PlotData(History(), searching(7), TRPO), None, False)
    assert above.plain == "Trust region · KL 0.0064 of 0.01"
    assert below.plain == "step 0.64 · gain 0.028"


def test_a_search_without_success_says_so():
    refused = searching(7, finished=True, accepted=False)
    assert drawn(refused)[-1].endswith("✗ no gain")
    _, below = Search().titles(PlotData(History(), refused, TRPO), None, False)
    assert below.plain == "3 steps tried, none taken"
    assert (
        "None of 3 steps kept the KL limit of 0.01 and gained: the policy did not move."
        in narration_of(refused).happened
    )


def test_many_tries_show_the_last_ones():
    update = searching(4)
    trial = synthetic_search(1, accepted=False)[4]
    for iteration in range(1, 21):
        update.add(msgspec.structs.replace(trial, iteration=iteration, step=0.8 ** (iteration - 1)))
    assert len(update.searched) == 24
    assert drawn(update)[-1].split()[0] == f"{0.8**19:.2f}"


def narration_of(update: Update):
    return narrate(update, History(), TRPO)


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (2, "2 of at most 4 iterations of conjugate gradient leave a residual of 31.0 %"),
        (2, "would gain about 0.022"),
        (5, "A step of 1.00 of the way to the limit has a KL of 0.0131 (limit 0.01) and gains 0.03: too far."),
        (7, "has a KL of 0.0064 (limit 0.01) and gains 0.028: accepted."),
    ],
)
def test_the_search_is_narrated_as_it_proceeds(records: int, words: str):
    narration_now = narration_of(searching(records))
    assert words in narration_now.happened
    assert "`.`" in narration_now.next


def test_the_search_ends_with_its_step():
    narration = narration_of(searching(7, finished=True))
    assert (
        "0.64 of the way to the limit: KL 0.0064 of at most 0.01, and the surrogate gained 0.028" in narration.happened
    )
    assert "nothing is clipped" not in narration.happened


def test_where_the_search_stands_is_in_the_phase_bar():
    assert detail(searching(3)) == "CG 3/4"
    assert detail(searching(6)) == "step tried 2/10"


def test_the_search_is_exported():
    exported = arrays(searching(7, finished=True), TRPO)
    assert [entry["kind"] for entry in json.loads(str(exported["search"]))] == ["cg"] * 4 + ["line"] * 3
    assert "search" not in arrays(searching(0, finished=True), TRPO)


async def test_the_screen_follows_the_search():
    app, source = playground(settings=msgspec.to_builtins(TRPO))
    async with app.run_test(size=(160, 45)) as pilot:
        whole = synthetic_update(1, steps=1)
        source.status(phase="update", **msgspec.to_builtins(TRPO))
        source.records([*whole[:3], *synthetic_search(1)[:2]])
        await settled(pilot)
        panel = app.panels.curves.panels[2]
        assert "CG ▇▇ 2 of 4" in panel.render().plain
        assert "CG 2/4" in app.panels.phases.render().plain
        assert app.play.lens.name == "advantages"
        source.records([*synthetic_search(1)[2:], *whole[3:]])
        source.status(1, **msgspec.to_builtins(TRPO))
        await settled(pilot)
        assert "✓ taken" in panel.render().plain
        assert panel._border_title.plain == "Trust region · KL 0.0064 of 0.01"
        assert app.play.lens.name == "prob_delta"

"""Over the run: how likely candidates were after each update, as lines and in the probe."""

from __future__ import annotations

from typing import Any

import pytest

from rlplay.link.messages import EndProbe
from rlplay.trace.questions import Prefix, Recall, Recalled
from rlplay.ui.plot.probability_lines import probability_lines
from rlplay.ui.probe.probe_panels import ProbeCourse, ProbeTails
from rlplay.ui.session.probing import Probing
from rlplay.ui.theme.inks import Palette, palette
from rlplay.ui.theme.themes import THEMES
from tests.ui.probed import SIZES, answer, begun, opened, peeked
from tests.ui.stage import all_text, on_screen

HERE = Prefix("How many?")


@pytest.fixture
def colours() -> Palette:
    theme = THEMES[0]
    return palette(theme.to_color_system().generate() | theme.variables)


def drawn(recalled: Recalled, width: int, colours: Palette) -> list[str]:
    pieces = {7: " seven", 8: "[bold]\x1b"}
    return ["".join(s.text for s in line) for line in probability_lines(recalled, pieces, 7, width, colours)]


def test_a_cell_is_as_full_as_the_token_was_likely(colours: Palette) -> None:
    rows = [[0.0, 1.0], [0.25, 0.5], [0.5, 0.001], [1.0, 0.06]]
    axis, seven, bold = drawn(Recalled(HERE, [7, 8], updates=[0, 1, 2, 3], probabilities=rows), 80, colours)
    assert axis.split() == ["over", "training", "update", "0", "3"]
    assert seven.split() == ["▸", '"', 'seven"', ".00", "▂▂▂▂▄▄▄▄████", "1.00"]
    assert "[bold]␛" in bold, "model text is shown and not obeyed"
    assert "████▄▄▄▄" in bold
    assert bold.endswith("████▄▄▄▄    ▁▁▁▁   .06"), "a thousandth is nothing to be seen"
    assert axis.index("update") == seven.index("▂") - 4, "above the first cell"
    assert len(axis) == seven.rindex("█") + 1


@pytest.mark.parametrize("width", [38, 60, 150])
def test_it_keeps_to_its_width_and_ends_with_the_newest(colours: Palette, width: int) -> None:
    updates = [0, 1, 2, 10, *range(20, 200)]
    rows = [[u / 199] for u in updates]
    lines = drawn(Recalled(HERE, [7], updates=updates, probabilities=rows), width, colours)
    assert max(map(len, lines)) <= width
    cells = lines[1][22:].removesuffix("  1.00")
    assert cells[0] in " ▁"
    assert cells[-1] == "█"
    assert list(cells) == sorted(cells), "what rose by steps is drawn so"


def test_a_change_of_a_hundredth_is_coloured(colours: Palette) -> None:
    recalled = Recalled(HERE, [7], updates=[0, 1, 2, 3], probabilities=[[0.5], [0.505], [0.75], [0.25]])
    _, line = probability_lines(recalled, {}, None, 80, colours)
    styles = [segment.style for segment in line if segment.text in "▂▄▆"]
    assert styles[::4] == [colours.text, colours.text, colours.up_text, colours.down_text]


def test_the_first_update_alone_is_a_course_too(colours: Palette) -> None:
    axis, line = drawn(Recalled(HERE, [7], updates=[0], probabilities=[[0.5]]), 80, colours)
    assert axis.split()[2:] == ["update", "0"]
    assert line.endswith(" .50  ▄▄▄▄   .50")


def test_what_the_run_adds_is_asked_for_and_put_behind() -> None:
    probing = begun()
    question = probing.recall()
    assert question == Recall(HERE, [7, 8, 9])
    probing.take(Recalled(HERE, [7, 8, 9], updates=[0], probabilities=[[0.1, 0.2, 0.3]]))
    assert probing.asked == question, "more is on its way"
    assert probing.recall_on(1) is None
    probing.take(Recalled(HERE, [7, 8, 9], updates=[0, 1], probabilities=[[0.1, 0.2, 0.3]] * 2, done=True))
    assert probing.asked is None
    assert probing.recall_on(1) is None
    assert probing.recall_on(3) == Recall(HERE, [7, 8, 9], since=2)
    probing.take(Recalled(HERE, [7, 8, 9], updates=[2, 3], probabilities=[[0.4, 0.2, 0.3]] * 2, done=True))
    assert probing.courses[()].updates == [0, 1, 2, 3]
    assert [row[0] for row in probing.courses[()].probabilities] == [0.1, 0.1, 0.4, 0.4]


def test_what_a_run_that_went_back_has_undone_is_not_shown() -> None:
    probing = begun()
    probing.recall()
    probing.take(Recalled(HERE, [7], updates=[0, 1, 2], probabilities=[[0.1]] * 3, done=True))
    assert probing.recall_on(1) is None
    assert probing.courses == {}


def test_a_refusal_is_shown_and_ends_the_request() -> None:
    probing = begun()
    probing.recall()
    probing.take(Recalled(HERE, refused="snapshot 3 cannot be read"))
    assert (probing.refused, probing.asked, probing.courses) == ("snapshot 3 cannot be read", None, {})


def test_without_candidates_there_is_nothing_to_ask() -> None:
    assert Probing().recall() is None


@pytest.mark.parametrize("size", SIZES)
async def test_the_probe_shows_it_and_follows_the_run(size: tuple[int, int]) -> None:
    async with on_screen(size=size) as (_, source, pilot):
        screen, asked = await opened(pilot, source)
        prefix: Any = asked[0].prefix
        await answer(pilot, source, peeked(prefix))
        wide = size[0] >= 150
        panel, full = (screen.query_one(ProbeCourse), 16) if wide else (screen.query_one(ProbeTails), 4)
        assert "`H`" in panel.words
        await pilot.press("H")
        assert asked[-1] == Recall(prefix, [7, 8, 9])
        rows = [[0.1, 0.5, 0.3], [0.9, 0.05, 0.01]]
        await answer(pilot, source, Recalled(prefix, [7, 8, 9], updates=[0, 1], probabilities=rows, done=True))
        lines = all_text(panel).split("\n")
        at = next(at for at, line in enumerate(lines) if "seven" in line)
        assert [len(part) for part in lines[at].split()[-3:]] == [3, 2 * full, 3]
        if wide:
            bars = [line[22 : 22 + 2 * full].rstrip() for line in lines[at - 3 : at + 1]]
            assert bars == [f"{' ' * full}{'▅' * full}", *[f"{' ' * full}{'█' * full}"] * 2, "▃" * full + "█" * full]
        else:
            assert lines[at].split()[-3:] == [".10", "▁▁▁▁▇▇▇▇", ".90"]
        source.status(2)
        await answer(pilot, source)
        assert Recall(prefix, [7, 8, 9], since=2) in asked
        await pilot.press("right")
        await answer(pilot, source)
        assert ".90" not in all_text(panel), "that was another place"
        await pilot.press("left", "escape")
        assert EndProbe() not in asked, "nothing was under way"

"""Two metrics in one plot: solid lines in two colours, scales that are named, and nothing shared in silence."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from rlplay.scenario.loader import load
from rlplay.scenario.script import parse_step
from rlplay.trace.history import History
from rlplay.trace.metrics import pair_of
from rlplay.trace.records import Evaluated, Finished, Rewound
from rlplay.ui.curves.first_views import overview, view_of
from rlplay.ui.plot.catalogue import REWARD
from rlplay.ui.plot.curve import FIRST, GHOST, SECOND
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.two_lines import TwoLines
from tests.recorded import SETTINGS, synthetic_update
from tests.ui.curve_panels import subtitle, title
from tests.ui.stage import playground, settled, shown

OVER, AND = "reward over gold/true/mean", "reward and gold/true/mean"
REWARDS, GOLD = [2.0, 8.0, 20.0], [0.4, 0.3, 0.1]


def source(plain: bool = False) -> PlotData:
    history = History()
    for number, (reward, gold) in enumerate(zip(REWARDS, GOLD, strict=True), start=1):
        finished = next(record for record in synthetic_update(number) if isinstance(record, Finished))
        history.add(msgspec.structs.replace(finished, metrics={"reward": reward, "gold/true/mean": gold}))
    held = {"eval_reward": 19.0, "eval_gold/true/mean": 0.05}
    history.add(Evaluated(update=3, metrics=held, prompts=[], completions=[], rewards=np.zeros(1), seconds=1.0))
    return PlotData(history, plain=plain)


def view(name: str) -> TwoLines:
    found = view_of(name)
    assert isinstance(found, TwoLines)
    return found


@pytest.mark.parametrize(
    ("name", "found"),
    [(OVER, ("reward", False, "gold/true/mean")), (AND, ("reward", True, "gold/true/mean")), ("reward", None),
     ("reward over nothing", None), ("over", None), ("kl over entropy", ("kl", False, "entropy"))],
)  # fmt: skip
def test_a_name_says_which_metrics_and_whether_they_share_a_scale(name: str, found: object) -> None:
    assert pair_of(name) == found


def test_each_line_has_its_own_scale_and_the_borders_say_which() -> None:
    series = view(OVER).series(source())
    assert [(curve.style, curve.kind, curve.side, list(curve.values)) for curve in series] == [
        (FIRST, "line", "left", REWARDS), (FIRST, "points", "left", [19.0]),
        (SECOND, "dashed", "right", GOLD), (SECOND, "points", "right", [0.05]),
    ]  # fmt: skip
    picture = view(OVER).draw(source(), Size(60, 12), False)
    assert isinstance(picture, Picture)
    top = picture.content.plain.split("\n")[0].split()
    assert (top[0], top[-1]) == ("20", ".4")
    above, below = view(OVER).titles(source(), None, False)
    assert above.plain == "Reward ━ 20 · left · ○ held out 19"
    assert below.plain == "┅ gold true 0.1 · right · ○ held out 0.05"
    above, below = view(OVER).titles(source(), 2, False)
    assert above.plain == "Reward ━ 8 at 2 · left · ○ held out –"
    assert below.plain == "┅ gold true 0.3 · right · ○ held out –"


def test_one_scale_is_said_to_be_one() -> None:
    assert {curve.side for curve in view(AND).series(source())} == {"left"}
    above, below = view(AND).titles(source(), None, False)
    assert above.plain.startswith("Reward ━ 20 · same scale")
    assert "right" not in below.plain
    picture = view(AND).draw(source(), Size(60, 12), False)
    assert isinstance(picture, Picture)
    assert picture.frame.right == 59, "no scale on the right"


def test_on_one_scale_the_gap_is_shaded() -> None:
    assert {curve.area for curve in view(AND).series(source()) if curve.kind != "points"} == {"between"}
    assert not any(curve.area for curve in view(OVER).series(source())), "heights on two scales do not compare"


def test_what_a_rewind_discarded_stays_in_grey_on_the_scale_of_its_line() -> None:
    given = source()
    given.history.add(Rewound(update=1, abandoned=3))
    grey = [(curve.side, list(curve.values)) for curve in view(OVER).series(given) if curve.style == GHOST]
    assert grey == [("left", REWARDS[1:]), ("right", GOLD[1:])]


def test_scenarios_and_scripts_may_ask_for_it() -> None:
    panels = load("flattery").panels
    assert panels[0] == "reward over gold/helpful/mean"
    views = overview(SETTINGS, panels=panels)
    assert views[0] == view_of(panels[0])
    assert REWARD not in views, "its line is in the first panel"
    assert parse_step({"curve": OVER}).argument == OVER
    with pytest.raises(ValueError, match="unknown metric 'reward over nothing'"):
        parse_step({"curve": "reward over nothing"})


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (160, 45)])
async def test_it_is_on_the_screen_at_every_size(size: tuple[int, int]) -> None:
    app, fed = playground()
    async with app.run_test(size=size) as pilot:
        fed.update(1)
        fed.update(2)
        await settled(pilot)
        app.panels.curves.take(replace(app.panels.curves.details, wanted=[OVER, "completions/mean_length"]))
        app.panels.curves.show(app.play.session.run.history, app.play.session.shown, app.play.session.settings)
        await settled(pilot)
        panel = app.panels.curves.panels[0]
        assert isinstance(panel.view, TwoLines)
        assert panel in app.panels.curves.seen
        assert panel.region.area
        assert "· left" in title(panel)
        assert "· right" in subtitle(panel)
        assert len(shown(panel).split("\n")) > 3
        app.panels.curves.take(replace(app.panels.curves.details, wanted=["reward", "completions/mean_length"]))
        app.panels.curves.show(app.play.session.run.history, app.play.session.shown, app.play.session.settings)
        await settled(pilot)
        assert (panel in app.panels.curves.seen) == (size[0] > 80), "the header has the reward alone"
        await app.play.perform("curve", OVER)
        await settled(pilot)
        assert any(isinstance(each.view, TwoLines) and each.has_focus for each in app.panels.curves.seen)

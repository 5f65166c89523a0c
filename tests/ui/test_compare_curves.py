"""The curves of several runs in one panel, and two token maps whose lines correspond."""

import msgspec
import pytest

from rlplay.trace.history import History
from rlplay.trace.records import Finished, Rewound
from rlplay.ui.compare.compared import ComparedPanels
from rlplay.ui.compare.side_by_side import align_rows, counterpart, first_difference
from rlplay.ui.plot.curve import FIRST, SECOND
from rlplay.ui.plot.picture import Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.several_runs import RUN_STYLES, Overlay
from rlplay.ui.tokens.token_layout import TokenLayout
from tests.recorded import synthetic_evaluated, synthetic_update
from tests.ui.comparison import SIZE, compared, opened


def test_two_layouts_stand_at_the_same_height_whatever_their_lines():
    ours, theirs = synthetic_update(3)[0], synthetic_update(3, seed=4, generations=3)[0]
    for width in (20, 34, 71):
        one, other = TokenLayout(), TokenLayout()
        one.arrange(ours, None, list(range(len(ours.group))), width, False)
        other.arrange(theirs, None, list(range(len(theirs.group))), width + 5, True)
        align_rows(one, other)
        for completion in range(len(ours.group)):
            place = counterpart(completion, ours, theirs)
            if place is None:
                assert completion % 4 == 3, "only three answers each there"
            else:
                assert one.rows_of(completion) == other.rows_of(place)
                assert one.begins(one.rows_of(completion).start)


def test_where_two_answers_part():
    one = synthetic_update(2)[0]
    assert first_difference((one, 1), (one, 1)) is None
    assert first_difference((one, 1), (one, 2)) == 0 or one.texts[one.offsets[1]] == one.texts[one.offsets[2]]
    assert first_difference((one, 1), (one, 5)) == -1, "of another prompt"
    changed = one.token_ids.copy()
    changed[one.offsets[1] + 2] += 1
    assert first_difference((one, 1), (msgspec.structs.replace(one, token_ids=changed), 1)) == 2


def test_two_curves_differ_in_colour_and_in_mark(tmp_path):
    histories = History(), History()
    for seed, history in enumerate(histories):
        for number in range(1, 6):
            history.add(synthetic_update(number, seed)[-1])
    view = Overlay(("none", "reward"), lambda: list(zip(RUN_STYLES, histories, strict=False)))
    picture = view.draw(PlotData(histories[0]), Size(60, 10), False)
    assert {FIRST, SECOND} <= {str(span.style) for span in picture.content.spans}
    above, below = view.titles(PlotData(histories[0]), 5, False)
    last = [history.series("reward")[1][-1] for history in histories]
    assert "Reward at 5" in above.plain
    assert below.plain.startswith(f"━ A {last[0]:.3g}")
    assert f"┅ B {last[1]:.3g}" in below.plain
    before = view.state(PlotData(histories[0]))
    histories[1].add(synthetic_update(6, 1)[-1])
    assert view.state(PlotData(histories[0])) != before, "a new point of B is drawn too"


def test_many_curves_differ_by_letters_and_all_values_are_named():
    runs = []
    for seed, look in enumerate(RUN_STYLES):
        runs.append((look, History()))
        for number in range(1, 9 + seed):
            runs[-1][1].add(synthetic_update(number, seed)[-1])
    view = Overlay(("reward",), lambda: runs)
    for smoothing in (0.0, 0.6):
        *lines, _axis = view.draw(PlotData(runs[0][1]), Size(60, 12), False, smoothing).content.plain.split("\n")
        assert "".join(sorted(filter(str.isalpha, "".join(lines)))) == "ABCDEFGH"
    _, below = view.titles(PlotData(runs[0][1]), 3, False)
    values = [f"{run.series('reward')[1][2]:.3g}" for _, run in runs]
    assert [part.split()[-1] for part in below.plain.split(" · ")] == values


async def test_copying_takes_the_values_of_all_runs(tmp_path):
    app = compared(tmp_path, updates=(2, 1, 3), seeds=(0, 1, 2))
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        lines = screen.curves.panels[0].clipping()[1].split("\n")
        assert lines[0] == "update,reward A,reward B,reward C"
        assert [line.split(",")[0] for line in lines[1:]] == ["1", "2", "3"]
        assert lines[3].startswith("3,,,")


@pytest.mark.parametrize(
    "recorded",
    [
        {"reward", "eval_reward", "kl", "completions/mean_length", "entropy", "loss"},
        {"rewards/accuracies", "eval_reward", "rewards/margins", "entropy", "loss", "logps/chosen"},
        {"accuracy", "eval_reward", "margin", "loss"},
        {"mean_token_accuracy", "eval_reward", "logps/chosen", "entropy", "loss"},
    ],
)
def test_whatever_runs_learn_from_every_panel_begins_with_something_recorded(recorded):
    history = History()
    finished = next(record for record in synthetic_update(1) if isinstance(record, Finished))
    history.add(msgspec.structs.replace(finished, metrics=dict.fromkeys(recorded, 0.5)))
    panels = ComparedPanels(lambda: [(RUN_STYLES[0], history), (RUN_STYLES[1], history)]).row
    shown = [panel.view.metric for panel in panels]
    assert len(set(shown)) == 4
    assert set(shown) <= recorded


def test_what_stands_one_above_the_other_is_the_same_update():
    histories = History(), History()
    for history, updates in zip(histories, (9, 8), strict=True):
        for number in range(1, updates + 1):
            history.add(synthetic_update(number)[-1])
        history.add(synthetic_evaluated(5))
    runs = list(zip(RUN_STYLES, histories, strict=False))
    views = (Overlay((name,), lambda: runs) for name in ("reward", "eval_reward", "kl"))
    frames = [view.draw(PlotData(histories[0]), Size(60, 10), False).frame for view in views]
    assert {(frame.first, frame.last) for frame in frames} == {(1, 9)}


async def test_the_cursor_on_a_mark_says_what_it_is_and_of_which_run(tmp_path):
    app = compared(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        screen.runs.both[1].run.add(Rewound(update=2, abandoned=3))
        screen.follow()
        panel = screen.curves.panels[0]
        panel.focus()
        await pilot.press("left", "left", "left")
        assert panel.cursor == 2
        assert panel.render().plain.endswith("\nB rewound from 3")

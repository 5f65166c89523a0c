"""Two runs side by side: the same update, the same prompts, one cursor, both curves; and the way to a second run."""

import subprocess
import sys
import threading

import msgspec
import pytest
from textual.widgets import Static

from rlplay.link.messages import Advance, Pause, Prefer, Recorded, Set, Status
from rlplay.trace.branch import Stopped, branch
from rlplay.trace.history import History
from rlplay.trace.records import Changed, Finished, Rewound
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.trace.settings import Timeline
from rlplay.trace.update import Update
from rlplay.ui import other_runs
from rlplay.ui.app import RlplayApp
from rlplay.ui.layout.side_by_side import align_rows, counterpart, first_difference
from rlplay.ui.layout.token_layout import Layout
from rlplay.ui.messages import UpdatePicked
from rlplay.ui.plot.picture import Size
from rlplay.ui.plot.several_runs import RUN_STYLES, Overlay
from rlplay.ui.plot.views import FIRST, SECOND, Source
from rlplay.ui.screens.branch import BranchScreen
from rlplay.ui.screens.compare import CompareScreen, _difference
from rlplay.ui.screens.copying import CopyingScreen
from rlplay.ui.screens.labels import LabelScreen
from rlplay.ui.session.session import Restored, Session
from rlplay.ui.session.sources import ReplaySource
from rlplay.ui.session.two_runs import RunPair
from rlplay.ui.widgets.compared import ComparedPanels
from rlplay.ui.widgets.steady_static import SteadyStatic
from tests.recorded import synthetic_evaluated, synthetic_run, synthetic_started, synthetic_update
from tests.ui.stage import CHOSEN as SETTINGS
from tests.ui.stage import Fed, all_text, playground, settled, until

SIZE = (160, 45)


def compared(tmp_path, updates=(4, 3), seeds=(0, 0)):
    runs = [
        ReplaySource(synthetic_run(tmp_path / f"{name}.rlplay", *shape))
        for name, *shape in zip("abcdefgh", updates, seeds, strict=False)
    ]
    return RlplayApp(runs[0], others=runs[1:])


async def opened(pilot):
    await settled(pilot)
    await settled(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, CompareScreen)
    screen.follow()
    await settled(pilot)
    return screen


def head(screen):
    return str(screen.query_one("#runs", Static).render())


async def test_x_says_why_none_is_clipped_in_the_run_with_the_cursor(tmp_path):
    app = compared(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await app.perform("lens", "clip_state")
        for ratio, update in zip((1.1, 0.9), screen.runs.updates(), strict=True):
            update.steps = [
                msgspec.structs.replace(
                    step, clip_state=0 * step.clip_state, importance_ratio=0 * step.importance_ratio + ratio
                )
                for step in update.steps
            ]
        screen._drawn = None
        screen.follow()
        for tokens, ratio in zip(screen.tokens, ("1.10", "0.90"), strict=True):
            tokens.focus()
            await pilot.press("x")
            said = [note.message for note in app._notifications][-1]
            assert f"No token is clipped: the ratios, {ratio} … {ratio}, are all inside the band 0.8 … 1.2." in said


async def test_it_opens_on_the_newest_update_that_both_have(tmp_path):
    app = compared(tmp_path, seeds=(0, 1))
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert screen.runs.number == 3
        assert "A  a  update 4" in head(screen)
        assert "B  b  update 3" in head(screen)
        assert "B differs in: seed 0 → 1" in head(screen)
        for tokens, seed in zip(screen.tokens, (0, 1), strict=True):
            assert synthetic_update(3, seed)[0].prompts[0].split()[0] in all_text(tokens)
        await pilot.press("escape")
        assert app.screen is app.main
        await pilot.press("b")
        await settled(pilot)
        assert isinstance(app.screen, CompareScreen)


@pytest.mark.parametrize(("keys", "shown"), [(["w"], "┅ B Tokens"), (["escape", "g", "w"], "■ replay at")])
async def test_the_comparison_and_the_timeline_are_saved_as_views(tmp_path, keys, shown):
    app = compared(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot)
        for key in keys:
            await pilot.press(key)
            await settled(pilot)
        assert shown in (tmp_path / "a.view-1.txt").read_text(encoding="utf-8")


async def test_one_cursor_moves_in_both_and_the_frame_says_what_can_be_compared(tmp_path):
    app = compared(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await pilot.press("down", "right", "right")
        await settled(pilot)
        assert screen.tokens[0].cursor == screen.tokens[1].cursor != (0, 0)
        assert screen.inspectors[0].clipping() == screen.inspectors[1].clipping(), "the same run twice"
        assert "same prefix, so comparable" in str(screen.inspectors[1].border_subtitle)
    app = compared(tmp_path / "other", seeds=(0, 1))
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert "not the same prompt" in str(screen.inspectors[0].border_subtitle)


async def test_what_is_compared_stays_while_the_runs_go_on(tmp_path):
    app = compared(tmp_path, updates=(4, 4))
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await pilot.press("left_square_bracket", "left_square_bracket", "down", "right")
        await settled(pilot)
        assert screen.runs.number == 2
        before = all_text(screen.tokens[0]), screen.tokens[0].cursor
        for session in screen.runs.both:
            for number in range(5, 20):
                for record in synthetic_update(number):
                    session.history.add(record)
        screen.follow()
        assert (all_text(screen.tokens[0]), screen.tokens[0].cursor) == before
        await pilot.press("v")
        assert screen.runs.number == 19


@pytest.mark.parametrize("size", [(160, 45), (120, 35), (80, 24)])
async def test_it_fits_and_the_panel_key_goes_around(tmp_path, size):
    app = compared(tmp_path)
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot)
        keys = screen.query_one("#keys", Static)
        assert len(str(keys.render())) <= keys.content_size.width
        for _ in range(3):
            seen = [
                w for w in (*screen.tokens, *screen.inspectors, *screen.curves.panels) if w.size.height and w.display
            ]
            assert any(w.has_focus for w in seen)
            await pilot.press("p")
            await settled(pilot)


def test_two_layouts_stand_at_the_same_height_whatever_their_lines():
    ours, theirs = synthetic_update(3)[0], synthetic_update(3, seed=4, generations=3)[0]
    for width in (20, 34, 71):
        one, other = Layout(), Layout()
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


def test_two_curves_are_told_apart_by_colour_and_by_mark(tmp_path):
    histories = History(), History()
    for seed, history in enumerate(histories):
        for number in range(1, 6):
            history.add(synthetic_update(number, seed)[-1])
    view = Overlay(("none", "reward"), lambda: list(zip(RUN_STYLES, histories, strict=False)))
    picture = view.draw(Source(histories[0]), Size(60, 10), False)
    assert {FIRST, SECOND} <= {str(span.style) for span in picture.content.spans}
    above, below = view.titles(Source(histories[0]), 5, False)
    last = [history.series("reward")[1][-1] for history in histories]
    assert "Reward at 5" in above.plain
    assert below.plain.startswith(f"━ A {last[0]:.3g}")
    assert f"┅ B {last[1]:.3g}" in below.plain
    before = view.state(Source(histories[0]))
    histories[1].add(synthetic_update(6, 1)[-1])
    assert view.state(Source(histories[0])) != before, "a new point of B is drawn too"


@pytest.mark.parametrize("size", [(160, 45), (80, 24)])
async def test_of_many_runs_two_at_a_time_stand_side_by_side(tmp_path, size):
    app = compared(tmp_path, updates=(4, 3, 4), seeds=(0, 1, 2))
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot)

        def seen():
            number = screen.runs.number
            asked = ["".join(synthetic_update(number, seed)[0].prompts[0].split()) for seed in range(3)]
            texts = ["".join(all_text(tokens).split()) for tokens in screen.tokens]
            letters = "".join(tokens.run_style.letter for tokens in screen.tokens)
            return letters, [[seed for seed in range(3) if asked[seed] in text] for text in texts]

        assert seen() == ("AB", [[0], [1]])
        assert "only in the curves:  ━ C seed 2" in head(screen)
        await pilot.press("left_square_bracket", "o")
        await settled(pilot)
        assert seen() == ("AC", [[0], [2]])
        assert screen.runs.number == 2, "the update that was picked"
        assert "C differs in: seed 0 → 2" in head(screen)
        assert "only in the curves:  ┅ B seed 1" in head(screen)
        assert "Token · C" in str(screen.inspectors[1].border_title)
        screen.tokens[1].focus()
        await pilot.press("v", "o")
        await settled(pilot)
        assert seen() == ("BC", [[1], [2]]), "the run with the cursor stays"
        assert screen.runs.number == 3, "B has no fourth"
        await pilot.press("O", "question_mark")
        await settled(pilot)
        assert seen()[0] == "AC"
        assert "replace the run without the cursor" in all_words(app.screen)


def all_words(screen):
    return " ".join(str(each.render()) for each in screen.query(Static))


async def test_of_two_runs_there_is_no_other(tmp_path):
    app = compared(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await pilot.press("o")
        assert screen.sides == [0, 1]
        assert any("only two runs here" in notice.message for notice in app._notifications)


def test_many_curves_are_told_apart_by_letters_and_all_values_are_named():
    runs = []
    for seed, look in enumerate(RUN_STYLES):
        runs.append((look, History()))
        for number in range(1, 9 + seed):
            runs[-1][1].add(synthetic_update(number, seed)[-1])
    view = Overlay(("reward",), lambda: runs)
    for smoothing in (0.0, 0.6):
        *lines, _axis = view.draw(Source(runs[0][1]), Size(60, 12), False, smoothing).content.plain.split("\n")
        assert "".join(sorted(filter(str.isalpha, "".join(lines)))) == "ABCDEFGH"
    _, below = view.titles(Source(runs[0][1]), 3, False)
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
    panels = ComparedPanels(lambda: [(RUN_STYLES[0], history), (RUN_STYLES[1], history)]).panels
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
    frames = [view.draw(Source(histories[0]), Size(60, 10), False).frame for view in views]
    assert {(frame.first, frame.last) for frame in frames} == {(1, 9)}


async def test_going_on_shows_the_newest_update_that_both_have(tmp_path):
    app = compared(tmp_path, updates=(4, 4))
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await pilot.press("left_square_bracket")
        assert screen.runs.number == 3
        await pilot.press("u")
        assert screen.runs.number == 4


def a_session(updates, live=True, running=False):
    source = Fed()
    source.live = live
    session = Session(source)
    for number in range(1, updates + 1):
        (finished,) = (r for r in synthetic_update(number) if isinstance(r, Finished))
        session.history.add(finished)
    source.status(updates, running=running)
    session.apply(source._queue.get_nowait())
    return session


def told(pair, count=None):
    return [("AB"[pair.both.index(session)], command) for session, command in pair.advance_commands(count)]


def test_the_run_behind_catches_up_and_level_ones_go_together():
    assert told(RunPair(a_session(7), a_session(4))) == [("B", Advance("update", 3))]
    assert told(RunPair(a_session(4), a_session(5)), 1) == [("A", Advance("update", 1))]
    assert told(RunPair(a_session(4), a_session(4))) == []
    assert told(RunPair(a_session(4), a_session(4)), 1) == [("A", Advance("update", 1)), ("B", Advance("update", 1))]
    assert told(RunPair(a_session(7), a_session(4, running=True))) == [("B", Pause())]
    assert told(RunPair(a_session(2, live=False), a_session(4)), 1) == [("B", Advance("update", 1))]
    assert told(RunPair(a_session(2, live=False), a_session(4, live=False)), 1) == [], "recordings are what they are"


def test_differences_are_those_of_the_update_compared():
    one, other = a_session(4), a_session(4)
    for session in (one, other):
        session.apply(Recorded(synthetic_started()))
    other.timeline.changes.append(Changed(update=3, phase="sample", name="beta", value=0.1, previous=0.05))
    pair = RunPair(one, other)
    assert pair.differences() == ["beta 0.05 → 0.1"]
    pair.picked = 2
    assert pair.differences() == []


async def test_a_run_that_has_not_come_so_far_is_named(tmp_path):
    app = compared(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        screen.post_message(UpdatePicked(4))
        await settled(pilot)
        assert "B has reached only update 3, not 4" in head(screen)


async def test_the_cursor_on_a_mark_says_what_it_is_and_of_which_run(tmp_path):
    app = compared(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        screen.runs.both[1].history.add(Rewound(update=2, abandoned=3))
        screen.follow()
        panel = screen.curves.panels[0]
        panel.focus()
        await pilot.press("left", "left", "left")
        assert panel.cursor == 2
        assert panel.render().plain.endswith("\nB rewound from 3")


@pytest.mark.parametrize("size", [SIZE, (120, 35), (250, 80)])
async def test_the_panel_key_lets_each_be_large_in_turn(tmp_path, size):
    app = compared(tmp_path)
    heights = []
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot)
        for _ in range(3):
            parts = screen.tokens[0], screen.inspectors[0], screen.curves
            heights.append([part.size.height for part in parts])
            await pilot.press("p")
            await settled(pilot)
    for part, large in zip(zip(*heights, strict=True), range(3), strict=True):
        assert max(part) == part[large]
    assert min(row[0] for row in heights) >= 5, "answers stay in sight"


async def test_what_is_different_is_not_said_before_it_is_known():
    source, second = Fed(), Fed()
    app = RlplayApp(source, others=[second])
    source.records([synthetic_started()])
    source.update(1)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        app.screen.follow()
        assert "B is starting…" in head(app.screen)
        assert "nothing" not in head(app.screen)
        second.records([synthetic_started()])
        second.update(1)
        await settled(pilot)
        app.screen.follow()
        assert "at update 1 both have equal settings, answers and numbers" in head(app.screen)
        second.records([Changed(update=2, phase="sample", name="beta", value=0.1, previous=0.05)])
        second.status(1, beta=0.1)
        await settled(pilot)
        app.screen.follow()
        assert "settings, answers and numbers; B changes later: beta 0.05 → 0.1" in head(app.screen)


async def test_a_branch_that_is_still_starting_shows_all_of_the_updates_it_shares():
    source, second = Fed(), Fed()
    app = RlplayApp(source, others=[second])
    history = History()
    source.records([synthetic_started()])
    for number in (1, 2):
        source.update(number)
        second.kept[number] = Update(number)
        for record in synthetic_update(number):
            second.kept[number].add(record)
            history.add(record)
    second.put(Restored(history, Timeline(synthetic_started().settings)))
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert "B is starting…" in head(screen)
        assert screen.runs.number == 2
        formulas = [inspector.clipping()[1] for inspector in screen.inspectors]
        assert "its loss before step" in formulas[1]
        assert formulas[0] == formulas[1]


@pytest.mark.parametrize("size", [SIZE, (80, 24)])
async def test_a_branch_that_waits_for_labels_says_so_and_gets_them(size):
    source, second = Fed(), Fed()
    app = RlplayApp(source, others=[second])
    for each in (source, second):
        each.records([synthetic_started()])
        each.status()
    second.records(synthetic_update(1, prompts=3, generations=2)[:1])
    second.waiting(0, 1, 2)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        app.screen.follow()
        assert "update 0 · waiting for your labels: press a" in head(app.screen)
        await pilot.press("a")
        await settled(pilot)
        assert isinstance(app.screen, LabelScreen)
        assert "Which is better? · run B, nowhere" in app.screen.query_one("Vertical").border_title
        await pilot.press("b", "enter", "escape")
        await settled(pilot)
        assert isinstance(app.screen, CompareScreen)
    assert Prefer(0, "b") in second.commands
    assert source.commands == []


async def test_a_branch_is_a_copy_with_an_engine_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    second = Fed()
    jobs = []
    monkeypatch.setattr(other_runs, "LiveSource", lambda job: jobs.append(job) or second)
    app, source = playground()
    async with app.run_test(size=SIZE) as pilot:
        source.path = synthetic_run(tmp_path / "a.rlplay", 4)
        for number in range(1, 5):
            source.update(number)
            source.kept[number] = RunReader(source.path).load(number)
        await settled(pilot)
        await pilot.press("g", "up", "up", "b")
        await settled(pilot)
        assert isinstance(app.screen, BranchScreen)
        assert "Branch from update 3" in app.screen.query_one("Vertical").border_title
        app.screen.draft.put("beta", 0.2)
        await pilot.press("a")
        second.records([synthetic_started()])
        second.status(3)
        await until(pilot, lambda: second.commands and isinstance(app.screen, CompareScreen))
        (job,) = jobs
        with RunReader(job.run) as reader:
            assert reader.updates() == [1, 2, 3]
        assert (job.resume, job.device, job.threads) == (True, "cpu", 1)
        assert second.commands == [Set({"beta": 0.2}), Advance("update")]
        assert source.commands == [], "the run on the screen stays as it is"
        assert isinstance(app.screen, CompareScreen)
        second.status(4)
        await settled(pilot)
        assert len(second.commands) == 2
    assert second.closed == 1


async def test_keys_wait_while_a_run_is_copied_and_escape_gives_it_up(monkeypatch):
    def copied(_parent, _number, _path, going):
        halfway.set()
        while going(0.5):
            given_up.wait(0.01)  # leaves the processor to the screen
        raise Stopped

    halfway, given_up = threading.Event(), threading.Event()
    monkeypatch.setattr(other_runs, "branch", copied)
    app, source = playground()
    async with app.run_test(size=(80, 24)) as pilot:
        source.update(1)
        await settled(pilot)
        await pilot.press("b")
        await settled(pilot)
        await pilot.press("a", "u", "z", "space", "k", "q")
        await until(pilot, halfway.is_set)
        screen = app.screen
        assert isinstance(screen, CopyingScreen)
        screen.add_class("-long")
        await until(pilot, lambda: " 50%" in str(screen.query_one(SteadyStatic).render()))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)
        assert source.commands == []
        assert app.other_runs.sessions == []


def test_of_a_copy_that_is_given_up_nothing_is_left(tmp_path):
    shares = []
    path = synthetic_run(tmp_path / "a.rlplay", 4)
    with pytest.raises(Stopped):
        branch(path, 3, tmp_path / "b.rlplay", lambda share: shares.append(share) or share < 0.5)
    assert shares == sorted(shares)
    assert 0 == shares[0] < shares[-1] < 1
    assert not list(tmp_path.glob("b*"))


async def test_a_branch_begins_after_the_update_that_is_looked_at():
    app, source = playground()
    async with app.run_test(size=SIZE) as pilot:
        for number in range(1, 5):
            source.update(number)
        await settled(pilot)
        for keys, begin in ((("b",), 4), (("[", "[", "b"), 2), (("g", "end", "b"), 4)):
            await pilot.press(*keys)
            await settled(pilot)
            assert f"Branch from update {begin}: what" in app.screen.query_one("Vertical").border_title
            await pilot.press("escape")
        source.records(synthetic_update(5)[:1])
        await settled(pilot)
        app.session.look_at(5)
        await pilot.press("b")
        await settled(pilot)
        assert "Branch from update 4, because 5 is not finished yet" in app.screen.query_one("Vertical").border_title


async def test_what_cannot_be_branched_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path))
    app, source = playground()
    async with app.run_test(size=SIZE) as pilot:
        source.path = tmp_path / "gone.rlplay"
        source.update(1)
        await settled(pilot)
        await pilot.press("b")
        await settled(pilot)
        await pilot.press("a")
        await until(pilot, lambda: app._notifications)
        assert app.other_runs.sessions == []
        assert any("no run file at" in notice.message for notice in app._notifications)


def test_the_comparison_needs_no_torch():
    code = (
        "import sys, rlplay.ui.other_runs, rlplay.ui.screens.compare, rlplay.ui.screens.branch;"
        "print(*(m for m in ('torch', 'rlplay.engine') if m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""


def test_a_branch_of_thinned_updates_keeps_their_numbers(tmp_path):
    path = synthetic_run(tmp_path / "a.rlplay", 3)
    writer = RunWriter.reopen(path)
    writer._db.execute("DELETE FROM records WHERE number = 2 AND kind = 'sampled'")
    writer.close()
    branch(path, 2, tmp_path / "b.rlplay")
    with RunReader(tmp_path / "b.rlplay") as reader:
        assert reader.updates() == [1, 2]
        assert reader.detailed() == [1]
        assert reader.history().series("reward")[0] == [1, 2]
        assert reader.started.run_id != "synthetic-1"


def scenario(**fields):
    """The recorded text of a scenario with these fields."""
    every = {"name": "synthetic", "title": "Word problems", "question": "Does it learn?", **fields}
    return msgspec.yaml.encode(every).decode()


TWO = [{"name": "imitate", "updates": 2}, {"name": "compare", "updates": 3}]


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({"reward": ["a.py:short"]}, {"reward": ["a.py:long"]}, "reward a.py:short → a.py:long"),
        ({"reward": ["a.py:f"]}, {"reward": ["a.py:f", "b.py:g"]}, "reward a.py:f → a.py:f + b.py:g"),
        ({"dataset": "a.jsonl"}, {"dataset": "b.jsonl"}, "dataset a.jsonl → b.jsonl"),
        ({"task": "arithmetic"}, {"dataset": "b.jsonl"}, "task arithmetic → none · dataset none → b.jsonl"),
        ({"task": "arithmetic"}, {"task": "questions"}, "task arithmetic → questions"),
        ({"dataset": "a", "dataset_config": "x"}, {"dataset": "a", "dataset_config": "y"}, "dataset_config x → y"),
        ({"dataset_train_split": "a"}, {"dataset_train_split": "b"}, "dataset_train_split a → b"),
        ({"prompts": ["1"]}, {"prompts": ["2"]}, "prompts differ"),
        ({}, {"prompts": ["2"]}, "prompts none → 1 given"),
        ({"stages": TWO}, {"stages": TWO[1:]}, "stages imitate 2 + compare 3 → compare 3"),
        ({"stages": TWO}, {"stages": [{**TWO[0], "settings": {"beta": 1}}, TWO[1]]}, "stages differ"),
        ({"eval_generations": 1}, {"eval_generations": 8}, "eval_generations 1 → 8"),
    ],
)
def test_where_data_rewards_and_stages_come_from_is_compared(one, other, said):
    pair = RunPair(*(begun(scenario(**fields)) for fields in (one, other)))
    assert " · ".join(pair.differences()) == said
    assert RunPair(*(begun(scenario(**one)) for _ in range(2))).differences() == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "other"}, "model pocket → other"),
        ({"seed": 7}, "seed 0 → 7"),
        ({"threads": 8}, "threads 1 → 8"),
        ({"versions": {"rlplay": "0.2.0", "torch": "2.6.0"}}, "rlplay 0.1.0 → 0.2.0"),
        ({"settings": {**SETTINGS, "beta": 1.5}, "threads": 8}, "beta 0.05 → 1.5 · threads 1 → 8"),
    ],
)
def test_all_that_answers_depend_on_is_compared(changes, said):
    assert " · ".join(RunPair(begun(), begun(**changes)).differences()) == said


def test_a_run_of_another_program_is_compared_as_far_as_it_is_known():
    assert RunPair(begun("not: [a scenario"), begun("not: [a scenario")).differences() == []
    assert RunPair(begun("- 1"), begun(seed=3)).differences() == ["seed 0 → 3"]


def begun(text=None, **changes):
    session = Session(Fed())
    text = {} if text is None else {"scenario_text": text}
    session.apply(Recorded(synthetic_started(**text, **changes)))
    return session


def differing(changes=(), text=None):
    pair = RunPair(begun(text), begun(text))
    for session in pair.both:
        for number in range(1, 5):
            for change in changes if session is pair.both[1] else ():
                if change.update == number:
                    session.apply(Recorded(change))
            for record in synthetic_update(number, seed=int(session is pair.both[1])):
                session.apply(Recorded(record))
        session.apply(Status(False, 4, "sample", SETTINGS, [0]))
    return _difference(pair)


def test_settings_that_differed_before_are_not_passed_over():
    changes = [
        Changed(update=2, phase="sample", name="beta", value=0.3, previous=0.05),
        Changed(update=4, phase="sample", name="beta", value=0.05, previous=0.3),
    ]
    assert differing() == "at update 4 the settings are the same"
    assert differing(changes[:1]) == "at update 4, B differs in: beta 0.05 → 0.3"
    assert differing(changes) == "at update 4 the settings are the same; beta differed before"


def test_what_files_hold_is_not_said_to_be_the_same():
    own = scenario(dataset="a.jsonl", reward=["a.py:f"])
    assert differing(text=own).endswith("; contents of data and reward files are not compared")


async def test_each_side_has_the_statistic_as_its_own_kind_of_update_calls_it(tmp_path):
    app = compared(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        app.lens_choice = "advantages"
        screen.runs.both[1].timeline.begun = {**SETTINGS, "loss_type": "sigmoid"}
        screen._drawn = None
        screen.follow()
        titles = [tokens._border_title.plain for tokens in screen.tokens]
        assert "colour: advantage" in titles[0]
        assert "colour: pull" in titles[1]
        assert "Advantage" in all_text(screen.inspectors[0])
        assert "Pull" in all_text(screen.inspectors[1])


async def test_both_panels_scroll_together_as_far_as_each_goes(tmp_path):
    runs = [synthetic_run(tmp_path / f"{name}.rlplay", 2, seed) for name, seed in (("a", 0), ("b", 1))]
    app = RlplayApp(ReplaySource(runs[0]), others=[ReplaySource(runs[1])])
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        one, other = screen.tokens
        for mine, its in ((one, other), (other, one)):
            mine.scroll_to(y=3, animate=False, immediate=True)
            await pilot.pause()
            assert mine.scroll_y == its.scroll_y == 3
            mine.scroll_end(animate=False, immediate=True)
            await pilot.pause()
            assert mine.scroll_y == mine.max_scroll_y > 3
            assert its.scroll_y == min(mine.scroll_y, its.max_scroll_y)
            its.scroll_home(animate=False, immediate=True)
            await pilot.pause()
            assert mine.scroll_y == 0

"""The timeline: every update with its numbers, to look at or go back to while the engine goes on."""

import msgspec
import pytest
from textual.widgets import Static

from rlplay.link.messages import Rewind
from rlplay.scenario.schema import Scenario
from rlplay.trace.records import Changed, Rewound
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.ui.app import RlplayApp
from rlplay.ui.help.help_screen import HelpScreen
from rlplay.ui.session.sources import ReplaySource
from rlplay.ui.timeline.timeline_screen import TimelineScreen
from rlplay.ui.timeline.update_table import SCORES
from rlplay.ui.timeline.updates import Updates
from tests.recorded import synthetic_run, synthetic_update
from tests.ui.stage import all_text, on_screen, playground, pressed, settled

SIZE = (120, 35)


def kept(source, tmp_path, updates):
    """Let `updates` happen, and be on disk."""
    reader = RunReader(synthetic_run(tmp_path / "kept.rlplay", updates))
    for number in range(1, updates + 1):
        source.update(number)
        source.kept[number] = reader.load(number)


def detail_text(app):
    return str(app.screen.query_one("#detail", Static).render())


async def opened(pilot):
    await settled(pilot)
    await pressed(pilot, "g")
    assert isinstance(pilot.app.screen, TimelineScreen)
    return pilot.app.screen.query_one(Updates)


async def test_every_update_is_listed_with_its_numbers_and_changed_settings(tmp_path):
    async with on_screen(size=SIZE) as (app, source, pilot):
        kept(source, tmp_path, 3)
        source.records([Changed(update=4, phase="sample", name="epsilon", value=0.1, previous=0.2)])
        updates = await opened(pilot)
        lines = all_text(updates).split("\n")
        rewards = dict(zip(*app.play.session.run.history.series("reward"), strict=True))
        assert [line.split()[:1] for line in lines[:4]] == [["start"], ["1"], ["2"], ["3"]]
        assert f"{rewards[2]:.3f}" in lines[2]
        assert "●" in lines[3], "its snapshot is there"
        assert "●" not in lines[1]
        assert "● now" in lines[-1]
        assert "epsilon 0.2 → 0.1" in lines[-1]


async def test_a_change_stands_at_the_first_update_that_it_makes_different(tmp_path):
    async with on_screen(size=SIZE) as (app, source, pilot):
        kept(source, tmp_path, 2)
        source.records([Changed(update=2, phase="after", name="num_iterations", value=4, previous=1)])
        updates = await opened(pilot)
        assert "num_iterations 1 → 4" in all_text(updates).split("\n")[-1]
        source.update(3)
        await settled(pilot)
        app.screen.follow()
        assert "num_iterations 1 → 4" in all_text(updates).split("\n")[3]


async def test_an_update_is_looked_at_and_stands_still_while_the_engine_goes_on(tmp_path):
    async with on_screen(size=SIZE) as (app, source, pilot):
        kept(source, tmp_path, 4)
        await opened(pilot)
        await pressed(pilot, "up", "up", "up", "enter")
        assert app.play.session.looking == 2
        assert "looking at update 2  v back to live" in str(app.panels.header.render())
        app.play.point(1, 3)
        before, scroll = all_text(app.panels.tokens), app.panels.tokens.scroll_y
        for number in range(5, 20):  # more than are held in memory
            source.update(number)
        await settled(pilot)
        assert app.play.session.run.newest.number == 19
        assert (all_text(app.panels.tokens), app.panels.tokens.scroll_y, app.panels.tokens.cursor) == (
            before,
            scroll,
            (1, 3),
        )
        assert "reward" in app.panels.inspector.clipping()[1]
        await pressed(pilot, "escape")
        assert app.play.session.looking is None
        assert app.play.session.shown.number == 19


async def test_the_cursor_stays_on_its_update_while_more_come(tmp_path):
    async with on_screen(size=(80, 24)) as (app, source, pilot):
        kept(source, tmp_path, 30)
        updates = await opened(pilot)
        await pilot.press("pageup", "up")
        at, top = updates.cursor, updates.scroll_offset.y
        for number in range(31, 36):
            source.update(number)
        await settled(pilot)
        app.screen.follow()
        assert updates.count() == 37
        assert (updates.cursor, updates.scroll_offset.y) == (at, top)


async def test_going_back_asks_once(tmp_path):
    async with on_screen(size=SIZE) as (app, source, pilot):
        kept(source, tmp_path, 4)
        await opened(pilot)
        await pilot.press("up", "up", "z")
        assert source.commands == []
        assert "Go back to update 3? Update 4 is discarded" in detail_text(app)
        await pilot.press("down", "z")
        assert "Go back to update 4? No finished update is discarded." in detail_text(app)
        await pilot.press("up", "up", "z")
        assert "Updates 3–4 are discarded" in detail_text(app)
        assert source.commands == [], "a move takes the question back"
        await pressed(pilot, "z")
        assert source.commands == [Rewind(2)]
        assert app.screen is app.panels.main


async def test_what_was_given_up_is_named_where_the_run_went_back(tmp_path):
    async with on_screen(size=SIZE) as (_, source, pilot):
        kept(source, tmp_path, 4)
        source.records([Rewound(update=2, abandoned=4)])
        source.records([Changed(update=2, phase="update", name="beta", value=0.1, previous=0.05)])
        source.status(2)
        updates = await opened(pilot)
        assert updates.count() == 4
        lines = all_text(updates).split("\n")
        assert lines[2].endswith("  ↶ rewound from 4  ◆ beta 0.05 → 0.1"), "another mark than a change's"


async def test_an_update_without_its_answers_is_listed_and_marked(tmp_path):
    async with on_screen(size=SIZE) as (app, source, pilot):
        kept(source, tmp_path, 4)
        del source.kept[2]
        await opened(pilot)
        await pilot.press("home", "down", "down")
        assert "not its answers" in detail_text(app)
        await pilot.press("enter")
        assert isinstance(app.screen, TimelineScreen)
        assert app.play.session.looking is None


async def test_of_a_recording_too(tmp_path):
    app = RlplayApp(ReplaySource(synthetic_run(tmp_path / "a.rlplay", updates=4)))
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await opened(pilot)
        await pressed(pilot, "home", "down", "z")
        assert app.play.session.shown.number == 1, "nothing is lost, so nothing is asked"


async def test_a_snapshot_that_is_gone_is_not_promised(tmp_path):
    path = synthetic_run(tmp_path / "a.rlplay", updates=2)
    writer = RunWriter.reopen(path)
    folder = tmp_path / "a.snapshots"
    folder.mkdir()
    (folder / "here.safetensors").write_bytes(b"")
    writer.add_snapshot(1, folder / "here.safetensors", 1)
    writer.add_snapshot(2, folder / "gone.safetensors", 1)
    writer.close()
    source = ReplaySource(path)
    assert source.snapshots() == [1]
    await source.close()


async def test_the_columns_fit_and_nothing_is_cut_at_80_columns(tmp_path):
    async with on_screen(size=(80, 24)) as (_, source, pilot):
        for number in (1, 2):
            source.records(synthetic_update(number))
        source.status(2)
        updates = await opened(pilot)
        width = updates.scrollable_content_region.width
        assert all(len(line.rstrip()) <= width for line in all_text(updates).split("\n"))
        assert len(updates.head) <= width


@pytest.mark.parametrize(("metric", "words"), SCORES.items())
async def test_the_column_of_the_score_is_named_in_full(tmp_path, metric, words):
    async with on_screen(size=(80, 24)) as (_, source, pilot):
        *begun, finished = synthetic_update(1)
        others = {name: value for name, value in finished.metrics.items() if name not in SCORES}
        source.records([*begun, msgspec.structs.replace(finished, metrics={**others, metric: 0.5})])
        source.status(1)
        updates = await opened(pilot)
        end = updates.head.index(words) + len(words)
        assert updates.head[:end].split() == ["update", *words.split()]
        assert all_text(updates).split("\n")[1][:end].endswith(" 0.500"), "the number stands below its name"


async def test_the_columns_are_the_numbers_of_the_curves_as_many_as_fit(tmp_path):
    scenario = Scenario("x", "x", "x", task="arithmetic", panels=["gold/true/mean", "entropy"])
    app, source = playground(scenario_text=msgspec.yaml.encode(scenario).decode())
    async with app.run_test(size=(160, 45)) as pilot:
        source.update(1)
        updates = await opened(pilot)
        head = updates.head.removesuffix("changed there").split("  ")
        titles = [title.strip() for title in head if title.strip()]
        assert titles[:4] == ["update", "reward", "gold score", "entropy"], "as the scenario wants; never evaluated"
        assert titles[4:6] == ["KL to ref", "clipped"], "then what GRPO begins with"
        finished = app.play.session.run.newest.finished.metrics
        shown = all_text(updates).split("\n")[1].split()
        assert f"{finished['gold/true/mean']:.3f}" in shown
        assert f"{finished['kl']:.4f}" in shown
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        assert "gold score" in updates.head, "the first of them fits on a small screen"
        assert "clipped" not in updates.head


async def test_words_that_stay_do_not_lay_the_screen_out_again(monkeypatch):
    updated = []
    async with on_screen(1, size=(120, 35)) as (app, source, pilot):
        await pressed(pilot, "g")
        monkeypatch.setattr(Static, "update", lambda self, *_args, **_more: updated.append(self.id))
        app.screen.follow()
        assert updated == []
        source.status(1, running=True)
        await settled(pilot)
        app.screen.follow()
        assert updated == ["state"]


@pytest.mark.parametrize("size", [SIZE, (80, 24)])
async def test_where_a_replay_stands_is_lit_and_help_says_what_the_marks_mean(tmp_path, size):
    app = RlplayApp(ReplaySource(synthetic_run(tmp_path / "a.rlplay", 4)))
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("z", "z")
        updates = await opened(pilot)
        lines = all_text(updates).split("\n")
        assert [line.split()[:3] for line in lines if "◉" in line] == [["▸", "2", "◉"]]
        assert lines[-1].strip() == str(app.screen.query_one("#state", Static).render()).strip()
        assert lines[-1].strip() == "■ replay at update 2"
        for mark in "●·◉◆↶↷":
            assert mark in detail_text(app)
        head = app.screen.query_one("#columns", Static)
        assert str(head.render()).index("reward") + len("reward") == lines[2].index(".") + 4
        assert head.content_region.x == updates.content_region.x, "numbers stand below their heads"
        await pressed(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("escape")
        assert isinstance(app.screen, TimelineScreen)


async def test_the_question_names_the_settings_that_would_go_back(tmp_path):
    async with on_screen(size=SIZE) as (app, source, pilot):
        kept(source, tmp_path, 3)
        source.records([Changed(update=3, phase="update", name="epsilon", value=0.1, previous=0.2)])
        await opened(pilot)
        await pressed(pilot, "up", "up", "z")
        assert "Settings also change back: Clip ε 0.1 → 0.2." in detail_text(app)
        await pressed(pilot, "down", "z")
        assert "Go back to update 3?" in detail_text(app)
        assert "Settings" not in detail_text(app)


async def test_a_column_of_zeros_comes_last_and_a_large_screen_has_longer_bars(tmp_path):
    async with on_screen(size=(240, 67)) as (_, source, pilot):
        for number in (1, 2):
            source.update(number)
        updates = await opened(pilot)
        timeline = updates.timeline
        zero = [name for name in timeline.columns if not any(timeline.history.series(name)[1])]
        assert timeline.columns[len(timeline.columns) - len(zero) :] == zero
        assert "outside the band" in updates.head, "what the curves do not show has room here"
        wide = all_text(updates).count("━")
        await pilot.resize_terminal(160, 45)
        await settled(pilot)
        assert 0 < all_text(updates).count("━") < wide / 2

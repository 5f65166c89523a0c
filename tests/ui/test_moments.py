"""Before and after: two updates marked in the timeline, their answers sorted by what became of the reward."""

from __future__ import annotations

from typing import Any

import msgspec
from textual.containers import Vertical

from rlplay.trace.records import Changed, Rewound
from rlplay.trace.update import Update
from rlplay.ui.app import RlplayApp
from rlplay.ui.compare.compare_moments import CompareMomentsScreen
from rlplay.ui.moments.moments_screen import MomentsScreen
from rlplay.ui.moments.two_moments import AskedList, BothAnswers
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.session.sources import ReplaySource
from rlplay.ui.timeline.timeline_screen import TimelineScreen
from rlplay.ui.timeline.updates import Updates
from rlplay.verbs import VERBS, VIEWS
from tests.recorded import synthetic_run, synthetic_update
from tests.trace.test_learning import run
from tests.ui.curve_panels import title
from tests.ui.stage import Fed, all_text, on_screen, pressed, settled, shown

SIZE = (120, 35)


def parts(app: Any) -> tuple[str, str, str]:
    """The title, the list and both answers."""
    screen = app.screen
    assert isinstance(screen, MomentsScreen)
    title = str(screen.query_one(Vertical).border_title)
    return title, all_text(screen.query_one(AskedList)), all_text(screen.query_one(BothAnswers))


def trained(source: Fed, last: int) -> None:
    """Let updates happen, with the evaluations of `run` after every fifth."""
    for number in range(1, last + 1):
        source.update(number)
    source.evaluated = run()
    source.records(msgspec.structs.replace(each, metrics={"eval_reward": 0.5}) for each in source.evaluated)


async def test_two_updates_are_marked_in_the_timeline_and_their_held_out_answers_compared() -> None:
    async with on_screen(size=SIZE) as (app, source, pilot):
        trained(source, 12)
        source.records([Changed(update=7, phase="sample", name="epsilon", value=0.1, previous=0.2)])
        await settled(pilot)
        await pilot.press("g", "up", "O")  # update 12
        await settled(pilot)
        assert "◧" in all_text(app.screen.query_one(Updates)).split("\n")[12]
        assert "Marked: update 12" in shown(app.screen.query_one("#detail"))
        await pressed(pilot, "home", *["down"] * 5, "O")
        title, lines, below = parts(app)
        assert "update 5 → update 12" in title, "the earlier one first"
        assert "Clip ε 0.2 → 0.1" in shown(app.screen.query_one(SteadyStatic))
        first, *prompts = lines.split("\n")
        assert "▼ worse 2  ▲ better 0  = same 4 · evaluated after update 5 and after update 10" in first
        assert [line.split()[:1] for line in prompts[:3]] == [["▸"], ["▼"], ["="]]
        assert "forgotten 5" in below
        assert "forgotten 10" in below
        await pressed(pilot, "o")
        ordered = [line.split()[0].strip("▸") or line.split()[1] for line in parts(app)[1].split("\n")[1:7]]
        assert ordered == ["▼", "▼", "=", "=", "=", "="], "what is the same remains last"
        await pilot.press("escape")
        assert isinstance(app.screen, TimelineScreen), "back to where the two were chosen"


async def test_from_the_main_screen_it_compares_the_start_with_what_is_shown_and_moves() -> None:
    async with on_screen(size=SIZE) as (app, source, pilot):
        trained(source, 15)
        await settled(pilot)
        await pressed(pilot, "O")
        title, lines, _ = parts(app)
        assert "start → update 15" in title
        assert "▼ worse 1  ▲ better 3  = same 2" in lines
        assert "The start of the run has no training answers." in lines
        await pressed(pilot, "left_square_bracket")
        assert "start → update 10" in parts(app)[0]
        source.records([Rewound(update=6, abandoned=15)])
        source.evaluated = source.evaluated[:2]
        await settled(pilot)
        assert "start → update 6" in parts(app)[0], "what was discarded is not compared"
        assert "evaluated before training and after update 5" in parts(app)[1]


async def test_without_evaluations_or_common_prompts_it_says_so(tmp_path: Any) -> None:
    app = RlplayApp(ReplaySource(synthetic_run(tmp_path / "a.rlplay", updates=3)))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pressed(pilot, "O")
        title, lines, below = parts(app)
        assert "update 1 → update 3" in title, "the first kept answers"
        assert "No held-out answers are on record up to update 1." in lines
        assert "The two updates have no prompt in common." in lines
        assert not below
        await pressed(pilot, "enter", "down", "b", "o")
        assert isinstance(app.screen, MomentsScreen)


async def test_in_little_room_a_line_has_the_answers_and_the_note_a_line_of_its_own() -> None:
    async with on_screen(size=(80, 24)) as (app, source, pilot):
        trained(source, 12)
        await settled(pilot)
        await pressed(pilot, "O")
        _, lines, below = parts(app)
        head, note, first, *_ = lines.split("\n")
        assert "evaluated" not in head
        assert note.strip() == "evaluated before training and after update 10"
        asked = app.screen.query_one(AskedList).asked
        assert asked is not None
        assert first.rstrip().endswith("0 → 10"), "what differs of the answers"
        assert below.split("\n")[0].strip() == asked.prompt


async def test_with_nothing_to_compare_it_is_a_small_box_without_keys_for_prompts() -> None:
    async with on_screen(size=SIZE) as (app, source, pilot):
        for number in (1, 2, 3):
            source.update(number)
        source.evaluated = run()[:1]
        await settled(pilot)
        await pressed(pilot, "O")
        panel = app.screen.query_one(Vertical)
        assert "No evaluation since the one before training" in parts(app)[1]
        assert panel.outer_size.height < 12
        assert "sort" not in str(panel.border_subtitle)


async def test_tokens_of_a_prompt_that_both_updates_trained_on_are_compared() -> None:
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        (first, *_), (sampled, *rest) = synthetic_update(1), synthetic_update(2)
        ids = {name: getattr(first, name) for name in ("prompt_ids", "prompt_offsets", "prompt_texts")}
        swapped = {name: getattr(first, name)[::-1] for name in ("prompts", "columns")}
        source.kept = {1: Update(1), 2: Update(2)}  # which are in memory, too
        source.update(1)
        source.records([msgspec.structs.replace(sampled, **ids, **swapped), *rest])
        source.status(2)
        await settled(pilot)
        await pressed(pilot, "O")
        _, lines, _ = parts(app)
        assert "with different random numbers" in lines
        await pressed(pilot, "b")
        screen = app.screen
        assert isinstance(screen, CompareMomentsScreen)
        one, other = (tokens.cursor[0] for tokens in screen.tokens)
        groups = [update.sampled.group[row] for update, row in zip(screen.runs.updates(), (one, other), strict=True)]
        assert groups[1] == 3 - groups[0], "the same prompt has another place in the later update"
        heads = [[row for row in tokens.rows if row.completion < 0 and row.cells] for tokens in screen.tokens]
        texts = [["".join(cell.text for cell in row.cells) for row in rows] for rows in heads]
        assert texts[0] == texts[1], "each prompt is on the same line in both"
        assert [screen.tokens[0].rows.index(row) for row in heads[0]] == [
            screen.tokens[1].rows.index(row) for row in heads[1]
        ]
        assert isinstance(screen.runs.updates()[1], Update)
        for name in VIEWS:
            await pressed(pilot, VERBS[name].keys[0])
            panels = screen.views.panels
            assert [title(panel).split(" · ")[0] for panel in panels] == ["━ A update 1", "┅ B update 2"]
            assert [panel.marked_update for panel in panels] == [1, 2]
            assert all(panel.region.area for panel in panels)
        await pressed(pilot, VERBS[VIEWS[-1]].keys[0])
        assert screen.curves.region.area, "the same key brings the curves back"
        await pilot.press("escape")
        assert isinstance(app.screen, MomentsScreen)


async def test_a_number_is_the_earlier_update() -> None:
    async with on_screen(size=SIZE) as (app, source, pilot):
        trained(source, 15)
        await settled(pilot)
        await pressed(pilot, "O", "3")
        assert "update 3 → update 15" in parts(app)[0]
        await pressed(pilot, "1")
        assert "update 1 → update 15" in parts(app)[0], "31 is no update"
        await pressed(pilot, "2")
        assert "update 12 → update 15" in parts(app)[0]
        await pressed(pilot, "0")
        assert "start → update 15" in parts(app)[0]


async def test_a_number_goes_to_that_update_in_the_timeline() -> None:
    async with on_screen(size=SIZE) as (app, source, pilot):
        trained(source, 12)
        await settled(pilot)
        await pressed(pilot, "g", "3", "O", "1", "1")
        assert app.screen.query_one(Updates).cursor == 11
        await pressed(pilot, "O")
        assert "update 3 → update 11" in parts(app)[0]
        await pressed(pilot, "escape", "down", "1")
        assert app.screen.query_one(Updates).cursor == 1, "after a move another number begins"

"""Two runs side by side: the same update, the same prompts, one cursor and both curves."""

import subprocess
import sys

import msgspec
import pytest
from textual.widgets import Static

from rlplay.ui.app import RlplayApp
from rlplay.ui.compare.compare_screen import CompareScreen
from rlplay.ui.parts.panel_messages import UpdatePicked
from rlplay.ui.session.sources import ReplaySource
from tests.recorded import synthetic_run, synthetic_update
from tests.ui.comparison import SIZE, compared, head, opened
from tests.ui.stage import CHOSEN as SETTINGS
from tests.ui.stage import all_text, pressed, settled


async def test_x_says_why_none_is_clipped_in_the_run_with_the_cursor(tmp_path):
    app = compared(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await app.play.perform("lens", "clip_state")
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
            text = [note.message for note in app._notifications][-1]
            assert f"No token is clipped: the ratios, {ratio} … {ratio}, are all inside the band 0.8 … 1.2." in text


async def test_it_opens_on_the_newest_update_that_both_have(tmp_path):
    app = compared(tmp_path, seeds=(0, 1))
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert screen.runs.number == 3
        assert "A  seed 0  update 4" in head(screen), "what differs is the title"
        assert "B  seed 1  update 3" in head(screen)
        assert "B differs in: seed 0 → 1" in head(screen)
        for tokens, seed in zip(screen.tokens, (0, 1), strict=True):
            assert synthetic_update(3, seed)[0].prompts[0].split()[0] in all_text(tokens)
        await pilot.press("escape")
        assert app.screen is app.panels.main
        await pressed(pilot, "b")
        assert isinstance(app.screen, CompareScreen)


@pytest.mark.parametrize(("keys", "shown"), [(["w"], "┅ B Tokens"), (["escape", "g", "w"], "■ replay at")])
async def test_the_comparison_and_the_timeline_are_saved_as_views(tmp_path, keys, shown):
    app = compared(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot)
        for key in keys:
            await pressed(pilot, key)
        assert shown in (tmp_path / "a.view-1.txt").read_text(encoding="utf-8")


async def test_one_cursor_moves_in_both_and_the_frame_says_what_can_be_compared(tmp_path):
    app = compared(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await pressed(pilot, "down", "right", "right")
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
        await pressed(pilot, "left_square_bracket", "left_square_bracket", "down", "right")
        assert screen.runs.number == 2
        before = all_text(screen.tokens[0]), screen.tokens[0].cursor
        for session in screen.runs.both:
            for number in range(5, 20):
                for record in synthetic_update(number):
                    session.run.history.add(record)
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
            await pressed(pilot, "p")


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
        assert "only in the curves:  ─ C seed 2" in head(screen)
        await pressed(pilot, "left_square_bracket", "greater_than_sign")
        assert seen() == ("AC", [[0], [2]])
        assert screen.runs.number == 2, "the update that was picked"
        assert "C differs in: seed 0 → 2" in head(screen)
        assert "only in the curves:  ┅ B seed 1" in head(screen)
        assert "Token · C" in str(screen.inspectors[1].border_title)
        screen.tokens[1].focus()
        await pressed(pilot, "v", "greater_than_sign")
        assert seen() == ("BC", [[1], [2]]), "the run with the cursor stays"
        assert screen.runs.number == 3, "B has no fourth"
        await pressed(pilot, "less_than_sign", "question_mark")
        assert seen()[0] == "AC"
        assert "replace the run without the cursor" in all_words(app.screen)


def all_words(screen):
    return " ".join(str(each.render()) for each in screen.query(Static))


async def test_of_two_runs_there_is_no_other(tmp_path):
    app = compared(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await pilot.press("greater_than_sign")
        assert screen.sides == [0, 1]
        assert any("only two runs here" in notice.message for notice in app._notifications)


async def test_going_on_shows_the_newest_update_that_both_have(tmp_path):
    app = compared(tmp_path, updates=(4, 4))
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await pilot.press("left_square_bracket")
        assert screen.runs.number == 3
        await pilot.press("u")
        assert screen.runs.number == 4


async def test_a_run_that_has_not_come_so_far_is_named(tmp_path):
    app = compared(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        screen.post_message(UpdatePicked(4))
        await settled(pilot)
        assert "B has reached only update 3, not 4" in head(screen)


@pytest.mark.parametrize("size", [SIZE, (120, 35), (250, 80)])
async def test_the_panel_key_lets_each_be_large_in_turn(tmp_path, size):
    app = compared(tmp_path)
    heights = []
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot)
        for _ in range(3):
            parts = screen.tokens[0], screen.inspectors[0], screen.curves
            heights.append([part.size.height for part in parts])
            await pressed(pilot, "p")
    for part, large in zip(zip(*heights, strict=True), range(3), strict=True):
        assert max(part) == part[large]
    assert min(row[0] for row in heights) >= 5, "answers stay in sight"


def test_the_comparison_needs_no_torch():
    code = (
        "import sys, rlplay.ui.main.other_runs, rlplay.ui.compare.compare_screen, rlplay.ui.compare.branch_screen;"
        "print(*(m for m in ('torch', 'rlplay.engine') if m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""


async def test_each_side_has_the_statistic_as_its_own_kind_of_update_calls_it(tmp_path):
    app = compared(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        app.play.lens_choice, app.play.maths = "advantages", True
        screen.runs.both[1].run.timeline.begun = {**SETTINGS, "loss_type": "sigmoid"}
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

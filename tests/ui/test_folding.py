"""Long answers take one line each, identical ones one line together; `enter` unfolds."""

import msgspec
import numpy as np
import pytest

from rlplay.trace.records import AnyRecord
from rlplay.ui.app import RlplayApp
from rlplay.ui.session.sources import ReplaySource
from rlplay.ui.tokens.token_layout import LONG
from tests.benchmarks.bench_long import update_records, write_run
from tests.recorded import synthetic_sampling, synthetic_update
from tests.ui.comparison import opened
from tests.ui.stage import all_text, on_screen, pressed, settled, text_of

WIDE = (160, 45)


def long_update(answers: int = 64, length: int = 1024) -> list[AnyRecord]:
    return update_records(np.random.default_rng(0), 1, answers, length, 3)


def repeated_update(number: int = 1) -> list[AnyRecord]:
    """An update of one prompt whose last five answers are the same; one of them earned less."""
    sampled, scored, *_ = synthetic_update(number, prompts=1, generations=8, steps=1)
    texts, ids = list(sampled.texts), sampled.token_ids.copy()
    length = int(sampled.offsets[2] - sampled.offsets[1])
    index = np.concatenate([np.arange(sampled.offsets[3]), *([np.arange(sampled.offsets[1], sampled.offsets[2])] * 5)])
    flat = ("mask", "old_logprobs", "entropy", "top_ids", "top_logprobs")
    offsets = np.concatenate([sampled.offsets[:4], sampled.offsets[3] + length * np.arange(1, 6)])
    sampled = msgspec.structs.replace(
        sampled, offsets=offsets, token_ids=ids[index], texts=[texts[at] for at in index],
        truncated=np.zeros(8, dtype=np.uint8), **{name: getattr(sampled, name)[index] for name in flat},
    )  # fmt: skip
    rewards = np.array([0.0, 1.0, 0.5, 1.0, 1.0, 0.2, 1.0, 1.0])
    return [sampled, msgspec.structs.replace(scored, rewards=rewards)]


async def test_long_answers_are_a_list_and_enter_unfolds_one():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.records(long_update())
        await settled(pilot)
        assert app.panels.tokens.count() == 64 + 8 * 2 - 1, "an answer is a line, a prompt is a line and a blank"
        lines = text_of(app.panels.tokens).split("\n")
        assert lines[1].rstrip().endswith(" …")
        await pressed(pilot, "enter")
        assert len(app.panels.tokens._layout.rows_of(0)) > 10
        assert app.panels.tokens.count() == app.panels.rollouts.count()
        whole = "".join(
            line[2:]
            for line in all_text(app.panels.tokens).split("\n")[1 : 1 + len(app.panels.tokens._layout.rows_of(0))]
        )
        sampled = app.play.session.shown.sampled
        assert whole.startswith("".join(sampled.texts[:5]).split("\n")[0])
        await pressed(pilot, "enter")
        assert len(app.panels.tokens._layout.rows_of(0)) == 1


async def test_a_folded_line_shows_the_part_around_the_cursor():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.records(long_update())
        await settled(pilot)
        await pressed(pilot, "end")
        row = text_of(app.panels.tokens).split("\n")[1]
        assert row.startswith("▸…")
        assert "∎" in row
        assert not row.rstrip().endswith(" …"), "nothing follows"
        await pressed(pilot, "left", "down", "up")
        completion, token = app.panels.tokens.cursor
        assert completion == 0
        row, _ = app.panels.tokens._layout.place(0, token)
        assert token in {cell.token for cell in app.panels.tokens.rows[row].cells}


async def test_a_click_after_the_text_unfolds_it():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.records(long_update())
        await settled(pilot)
        width = sum(cell.width for cell in app.panels.tokens.rows[2].cells)
        await pilot.click("#tokens", offset=(2 + width + 1, 3))
        await settled(pilot)
        assert app.panels.tokens.cursor[0] == 1
        assert len(app.panels.tokens._layout.rows_of(1)) > 10


async def test_found_tokens_are_in_sight_in_folded_answers():
    async with on_screen(size=WIDE) as (app, source, pilot):
        records = long_update()
        late = int(records[0].offsets[4]) + 400
        records[0].texts[late] = " zebra"
        source.records(records)
        await settled(pilot)
        await app.play.perform("find", "zebra")
        await settled(pilot)
        assert "zebra" in all_text(app.panels.tokens)
        await pilot.press("f")
        assert app.panels.tokens.cursor == (4, 400)


async def test_while_answers_grow_their_newest_line_is_shown():
    async with on_screen(size=WIDE) as (app, source, pilot):
        steps = synthetic_sampling(1, generations=2, length=LONG * 2)
        longer = msgspec.structs.replace(long_update(8, 400)[0], done=False)
        source.records([steps[0], longer])
        await settled(pilot)
        last = app.panels.tokens._length(1) - 1
        assert last in {cell.token for cell in app.panels.tokens.rows[app.panels.tokens._layout.rows_of(1).start].cells}


async def test_identical_answers_with_one_reward_are_one_line():
    async with on_screen(size=WIDE) as (app, source, pilot):
        records = repeated_update()
        source.records(records[:1])
        await settled(pilot)
        assert "×" not in all_text(app.panels.tokens), "not before they have rewards"
        source.records(records[1:])
        await settled(pilot)
        assert app.panels.tokens._order == [0, 1, 2, 5]
        line = next(line for line in all_text(app.panels.tokens).split("\n") if "×5" in line)
        assert line[2:].startswith("×5 ")
        assert "same text as answer 2" in all_text(app.panels.tokens), "the one that earned less"
        app.play.point(6, 1)
        assert app.panels.tokens.cursor == (1, 1), "the answer that stands for it"
        await pressed(pilot, "enter")
        assert app.panels.tokens._order == list(range(8))
        app.play.point(3, 0)
        await pressed(pilot, "enter")
        assert app.panels.tokens._order == [0, 1, 2, 5]
        assert app.panels.tokens.cursor[0] == 1


async def test_an_answer_is_numbered_among_all_of_them():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.records(repeated_update())
        await settled(pilot)
        app.play.lens_choice = "entropy"
        await app.play.perform("largest")
        await settled(pilot)
        assert "of 8" in app.panels.narrator.render().plain


async def test_where_nothing_is_folded_enter_shows_the_formulas_and_the_cursor_keeps_them():
    async with on_screen(1, size=WIDE) as (app, _, pilot):
        assert "loss" not in all_text(app.panels.inspector)
        await pressed(pilot, "enter")
        assert "its loss before step" in all_text(app.panels.inspector)
        await pressed(pilot, "right", "down")
        assert "its loss before step" in all_text(app.panels.inspector)
        app.panels.inspector.focus()
        await pressed(pilot, "enter")
        assert "loss" not in all_text(app.panels.inspector)


async def test_in_a_comparison_enter_unfolds_the_answer_in_both_runs(tmp_path):
    one, other = (ReplaySource(write_run(tmp_path / f"{name}.rlplay", 8, 300, 0)) for name in "ab")
    app = RlplayApp(one, others=[other])
    async with app.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        assert [tokens.count() for tokens in screen.tokens] == [9, 9]
        await pressed(pilot, "enter")
        heights = [len(tokens._layout.rows_of(0)) for tokens in screen.tokens]
        assert heights[0] == heights[1] > 3
        assert app.play.folding.unfolded == set(), "the main screen stays as it is"


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (160, 45)])
async def test_folded_lines_fit_their_panel(size):
    async with on_screen(size=size) as (app, source, pilot):
        source.records(long_update())
        await settled(pilot)
        width = app.panels.tokens.scrollable_content_region.width
        for row in range(app.panels.tokens.count()):
            segments = list(app.panels.tokens.line(row))
            assert sum(segment.cell_length for segment in segments) <= width

"""The token map and the list of answers: one cursor, one order, and model text that is never obeyed."""

import msgspec
import numpy as np
import pytest
from textual.color import Color

from rlplay.trace.answers import advantages
from rlplay.trace.lenses import CYCLE, LENSES
from rlplay.trace.records import Sampled
from rlplay.trace.update import Update
from rlplay.ui.theme.inks import STEPS, contrast, levels, palette
from rlplay.ui.theme.themes import THEMES
from tests.recorded import synthetic_sampling, synthetic_update
from tests.ui.stage import all_text, on_screen, playground, pressed, settled, text_of

WIDE = (160, 45)


@pytest.fixture
def update() -> Update:
    update = Update(1)
    for record in synthetic_update(1):
        update.add(record)
    return update


async def opened(pilot, source, **shape):
    source.update(1, **shape)
    await settled(pilot)


async def test_arrows_move_one_cursor_through_all_panels():
    async with on_screen(size=WIDE) as (app, source, pilot):
        await opened(pilot, source)
        await pilot.press("right", "right", "down")
        assert app.panels.tokens.cursor[0] == 1
        assert app.panels.rollouts.cursor == app.panels.tokens.cursor
        assert f"token {app.panels.tokens.cursor[1] + 1} of" in all_text(app.panels.inspector)
        app.panels.rollouts.focus()
        await pilot.press("down", "down")
        assert app.panels.tokens.cursor[0] == 3
        await pilot.press("end")
        assert app.panels.tokens.cursor[0] == app.play.session.shown.completions - 1
        last = text_of(app.panels.tokens).rstrip().split("\n")[-1]
        assert last.startswith("▸"), "scrolled into sight"


async def test_the_cursor_runs_on_into_the_next_answer():
    async with on_screen(size=WIDE) as (app, source, pilot):
        await opened(pilot, source)
        await pilot.press("end", "right")
        assert app.panels.tokens.cursor == (1, 0)
        await pilot.press("left")
        assert app.panels.tokens.cursor[0] == 0
        await pilot.press("home", "left")
        assert app.panels.tokens.cursor == (0, 0), "nothing before the first"


async def test_a_click_puts_the_cursor_on_a_token():
    async with on_screen(size=WIDE) as (app, source, pilot):
        await opened(pilot, source)
        line = (
            text_of(app.panels.tokens)
            .split("\n")
            .index(next(x for x in text_of(app.panels.tokens).split("\n") if "answer" in x))
        )
        await pilot.click("#tokens", offset=(12, line + 1))
        completion, token = app.panels.tokens.cursor
        sampled = app.play.session.shown.sampled
        place = int(sampled.offsets[completion]) + token
        x = 2 + sum(map(len, sampled.texts[int(sampled.offsets[completion]) : place]))
        assert x <= 12
        assert completion == app.panels.rollouts.cursor[0]


async def test_the_colour_key_passes_over_what_is_not_there_yet():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.records(synthetic_update(1)[:1])
        await settled(pilot)
        assert app.play.lens.name == "probability"
        for verb, lens in (("lens", "entropy"), ("lens", "probability"), ("lens_back", "entropy")):
            await app.play.perform(verb)
            assert app.play.lens.name == lens


async def test_the_colour_key_steps_through_the_statistics_and_auto_comes_back():
    async with on_screen(size=WIDE) as (app, source, pilot):
        await opened(pilot, source)
        assert app.play.lens.name == "prob_delta"
        assert "(auto)" in app.panels.tokens.border_title
        seen = []
        for _ in CYCLE:
            await pilot.press("c")
            seen.append(app.play.lens.name)
        assert seen == list(CYCLE), "after what was chosen by itself, from the beginning"
        await app.play.perform("lens_back")
        assert app.play.lens.name == seen[-2]
        assert "(auto)" not in app.panels.tokens.border_title
        await app.play.perform("lens", "auto")
        assert "(auto)" in app.panels.tokens.border_title
        await app.play.perform("lens", "nonsense")
        assert app.play.lens.name == "prob_delta"


async def test_a_statistic_that_is_not_there_yet_says_when_it_comes_and_another_steps_in():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.records(synthetic_update(1)[:1])
        await settled(pilot)
        await app.play.perform("lens", "credit")
        assert app.panels.tokens._border_title.plain.strip() == "Tokens · colour: probability (credit: from ④ on)"
        await pilot.press("c")
        assert "(auto)" in app.panels.tokens.border_title
        await pilot.press("c", "c")
        assert "(auto)" in app.panels.tokens.border_title, "it is one of the colours there are"


async def test_numbers_and_blanks_on_demand():
    async with on_screen(size=WIDE) as (app, source, pilot):
        await opened(pilot, source)
        assert "·is" not in all_text(app.panels.tokens)
        await pilot.press("m")
        text = all_text(app.panels.tokens)
        assert "·is" in text
        assert "⟨end⟩" in text
        assert "+." in text
        assert "−." in text


async def test_with_numbers_the_list_of_answers_keeps_beside_the_tokens():
    async with on_screen(1, size=(160, 30)) as (app, _, pilot):
        app.play.point(15, 0)
        await pressed(pilot, "m")
        assert app.panels.rollouts.count() == app.panels.tokens.count()
        await pressed(pilot, "x")
        row, _ = app.panels.tokens._layout.place(*app.panels.tokens.cursor)
        assert app.panels.rollouts.scroll_y == app.panels.tokens.scroll_y
        assert app.panels.tokens.scroll_y <= row < app.panels.tokens.scroll_y + app.panels.tokens.size.height


@pytest.mark.parametrize("size", [(160, 45), (120, 35), (80, 24)])
async def test_the_cursor_stays_in_sight_when_panels_change(size):
    async with on_screen(1, size=size) as (app, _, pilot):
        app.play.point(9, 2)
        for _ in range(3):
            await pressed(pilot, "p")
            row, _ = app.panels.tokens._layout.place(*app.panels.tokens.cursor)
            if app.panels.tokens.region.area:
                assert (
                    app.panels.tokens.scroll_y
                    <= row
                    < app.panels.tokens.scroll_y + app.panels.tokens.scrollable_content_region.height
                )
            assert "…" not in str(app.panels.tokens.border_title)


async def test_model_text_is_never_obeyed():
    async with on_screen(size=WIDE) as (app, source, pilot):
        await opened(pilot, source)
        text = all_text(app.panels.tokens)
        assert "[bold]" in text
        assert "␛" in text
        assert "\x1b" not in text
        assert "🚀" in text
        assert '"[bold]"' in all_text(app.panels.inspector)


async def test_groups_without_signal_are_marked():
    async with on_screen(size=WIDE) as (app, source, pilot):
        await opened(pilot, source)
        assert (
            all_text(app.panels.rollouts).count("all equal")
            == int((app.play.session.shown.credited.group_std < 1e-6).sum())
            > 0
        )
        assert all_text(app.panels.rollouts).count("tok…") == int(app.play.session.shown.sampled.truncated.sum())


async def test_one_answer_is_no_group():
    """It has no spread, and no others to be equal to."""
    async with on_screen(size=WIDE) as (app, source, pilot):
        sampled, scored, credited, *_ = synthetic_update(1, prompts=3, generations=1)
        silent = msgspec.structs.replace(credited, advantages=np.zeros_like(credited.advantages))
        source.records([sampled, scored, silent])
        await settled(pilot)
        assert "all equal" not in all_text(app.panels.rollouts)
        assert "±" not in all_text(app.panels.rollouts)
        assert all_text(app.panels.rollouts).count("1 answer") == 3


async def test_an_answer_stands_on_the_line_of_its_tokens():
    """Read straight across: the reward on a line is that of the answer on it, also after scrolling."""
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.records(synthetic_update(1, prompts=6, generations=6))
        await settled(pilot)
        begun: set[int] = set()
        for (_, completion), row in zip(app.panels.rollouts._rows, app.panels.tokens.rows, strict=True):
            if completion >= 0:
                assert row.completion == completion
                begun.add(completion)
        assert sum(app.play.folding.copies.get(answer, 1) for answer in begun) == 36
        app.panels.tokens.focus()
        await pressed(pilot, "end", "pagedown", "pagedown")
        assert app.panels.tokens.scroll_y == app.panels.rollouts.scroll_y > 0


async def test_equal_rewards_are_a_signal_where_the_baseline_makes_one():
    """Without a baseline the advantage is the reward: REINFORCE learns from a group that earned 1 throughout."""
    async with on_screen(size=WIDE) as (app, source, pilot):
        sampled, scored, credited, *_ = synthetic_update(1)
        given = np.ones_like(credited.advantages)
        given[: sampled.offsets[4]] = 0
        source.records([sampled, scored, msgspec.structs.replace(credited, advantages=given)])
        await settled(pilot)
        lines = all_text(app.panels.rollouts).split("\n")
        assert [row for row, line in enumerate(lines) if "all equal" in line] == [0], "the first group alone"


def test_environment_tokens_do_not_count_for_the_advantage(update):
    mask = update.sampled.mask.copy()
    mask[int(update.sampled.offsets[1]) - 1] = 0
    given = update.credited.advantages.copy()
    given[int(update.sampled.offsets[1]) - 1] = 99.0
    update.sampled = msgspec.structs.replace(update.sampled, mask=mask)
    update.credited = msgspec.structs.replace(update.credited, advantages=given)
    assert advantages(update)[0] == pytest.approx(given[0], rel=1e-5)


def test_levels_keep_to_the_scale():
    lens = LENSES["credit"]
    assert levels(lens, np.array([-99, -2, -0.6, 0, 0.01, 0.3, 99, np.nan])).tolist() == [-4, -4, -2, 0, 0, 1, 4, 0]
    assert levels(LENSES["importance_ratio"], np.array([0.5, 1.0, 1.5])).tolist() == [-4, 0, 4]
    assert levels(LENSES["probability"], np.array([0.0, 0.4, 0.5, 0.8, 0.93, 0.95, 2.0])).tolist() == [
        0,
        1,
        2,
        3,
        3,
        4,
        4,
    ]
    assert levels(LENSES["entropy"], np.array([0.0, 0.05, 0.1, 0.2, 1.0, 2.0, 9.0])).tolist() == [0, 0, 1, 2, 3, 4, 4]


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
@pytest.mark.parametrize("colours", [16, 256, 1 << 24])
def test_every_shade_is_readable_and_up_and_down_differ_without_colour(theme, colours):
    found = palette({**theme.to_color_system().generate(), **theme.variables}, colours)
    shades = [found.shade(level, True) for level in range(-STEPS, STEPS + 1)] + list(found.amount)
    for shade in shades:
        if shade.bgcolor is not None:
            ink, ground = (Color.from_rich_color(c) for c in (shade.color, shade.bgcolor))
            assert contrast(ink, ground) >= (4.5 if colours > 16 else 3), shade
    assert found.up[STEPS].underline
    assert not found.down[STEPS].underline


async def test_colours_follow_the_theme():
    async with on_screen(size=WIDE) as (app, source, pilot):
        await opened(pilot, source)
        dark = app.panels.tokens.palette.text
        app.theme = "rlplay-light"
        await settled(pilot)
        assert app.panels.tokens.palette.text != dark


async def test_an_answer_without_tokens_yet_has_a_line():
    app, source = playground()
    sampled = synthetic_sampling(1)[0]
    assert isinstance(sampled, Sampled)
    async with app.run_test(size=WIDE) as pilot:
        source.records([sampled])
        await settled(pilot)
        assert all_text(app.panels.tokens).count("▎") + all_text(app.panels.tokens).count("▸") == len(sampled.group)

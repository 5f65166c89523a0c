"""Find on the screen: only what fits is listed, it stands out, keys go through it, escape ends it."""

import numpy as np
import pytest
from textual.content import Content
from textual.widgets import Input, Static

from rlplay.ui.answers.find_line import FindScreen
from rlplay.ui.theme.inks import levels
from tests.recorded import synthetic_update
from tests.ui.stage import on_screen, pressed, settled, text_of

SIZES = pytest.mark.parametrize("size", [(160, 45), (120, 35), (80, 24)])


def titles(app) -> list[str]:
    titles = app.panels.tokens.border_title, app.panels.rollouts.border_title, app.panels.rollouts.border_subtitle
    return [Content.from_markup(each).plain.strip() for each in titles]


def listed(app) -> set[int]:
    lines = {row.completion for row in app.panels.tokens.rows if row.completion >= 0}
    return {
        answer for answer in range(app.play.session.shown.completions) if app.play.folding.shown_for(answer) in lines
    }


@SIZES
async def test_a_condition_on_answers_lists_only_those_until_escape(size):
    async with on_screen(1, prompts=4, size=size) as (app, _, pilot):
        rewards = app.play.session.shown.scored.rewards
        wanted = set(np.flatnonzero(rewards < 0.5).tolist())
        await pressed(pilot, "slash", *"reward<0.5")
        assert listed(app) == wanted, "found while it is typed"
        await pressed(pilot, "enter")
        assert app.screen is app.panels.main
        state = f"{len(wanted)} of {len(rewards)}"
        tokens, rollouts, below = titles(app)
        assert f"{state} · reward<0.5" in tokens
        assert state in rollouts
        assert below == "esc all answers"
        assert app.panels.tokens.cursor[0] in wanted
        await pressed(pilot, "escape")
        assert listed(app) == set(range(len(rewards)))
        assert "of" not in titles(app)[1]


async def test_next_and_back_go_round_the_tokens_found():
    async with on_screen(1, steps=4, size=(160, 45)) as (app, _, pilot):
        ratios = app.play.session.shown.latest_step("importance_ratio")
        many = np.flatnonzero(ratios > 1.2)
        offsets = app.play.session.shown.sampled.offsets
        await app.play.perform("find", "ratio>1.2")
        await settled(pilot)
        assert f"{len(many)} found · ratio>1.2" in titles(app)[0]
        app.play.point(int(np.searchsorted(offsets, many[-1], side="right")) - 1, 0)
        visited = []
        for _ in range(len(many) + 1):
            await pilot.press("f")
            completion, token = app.panels.tokens.cursor
            visited.append(int(offsets[completion] + token))
        assert set(visited) == set(many.tolist())
        assert visited[0] == visited[-1], "round the end"
        await pilot.press("F")
        completion, token = app.panels.tokens.cursor
        assert int(offsets[completion] + token) == visited[-2]


async def test_the_largest_is_the_largest_of_what_was_found():
    async with on_screen(1, size=(120, 35)) as (app, _, pilot):
        await app.play.perform("lens", "entropy")
        await app.play.perform("find", "entropy<1")
        await settled(pilot)
        await pilot.press("x")
        entropy, sampled = app.play.session.shown.sampled.entropy, app.play.session.shown.sampled
        completion, token = app.panels.tokens.cursor
        here = entropy[sampled.offsets[completion] + token]
        assert here == entropy[(entropy < 1) & (sampled.mask == 1)].max() < entropy.max()


async def test_what_was_not_found_loses_its_colour():
    async with on_screen(1, size=(160, 45)) as (app, _, pilot):
        await app.play.perform("lens", "probability")
        await app.play.perform("find", "p<0.5")
        await settled(pilot)
        tokens = app.panels.tokens
        shades = levels(app.play.lens, app.play.lens.values(app.play.session.shown))
        found = app.play.finder.found.tokens
        strong = next(token for token in range(len(found)) if shades[token] > 0 and not found[token])
        assert tokens._ink._style(strong, int(shades[strong]), tokens.palette) == tokens.palette.muted


async def test_what_was_found_stands_out_without_colour(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with on_screen(1, size=(160, 45)) as (app, _, pilot):
        await app.play.perform("find", "p<0.5")
        await settled(pilot)
        drawn = {
            row.completion: [segment.style for segment in app.panels.tokens.render_line(y) if segment.text.strip()][1:]
            for y, row in enumerate(app.panels.tokens.rows[: app.panels.tokens.size.height])
            if row.completion >= 0 and row.completion != app.panels.tokens.cursor[0]
        }
        found, offsets = app.play.finder.found.tokens, app.play.session.shown.sampled.offsets
        for completion, styles in drawn.items():
            fits = found[offsets[completion] : offsets[completion + 1]]
            assert any(style.reverse for style in styles) == fits.any()
            assert any(not style.reverse for style in styles) == (not fits.all())


async def test_the_hint_names_clipped_and_it_finds_both_kinds():
    async with on_screen(1, steps=8, size=(80, 24)) as (app, _, pilot):
        await pressed(pilot, "slash")
        assert str(app.screen.query_one(Static).render()).startswith("clipped (▲ and ▼)")
        await pressed(pilot, *"clipped")
        clips = app.play.session.shown.latest_step("clip_state")
        assert set(clips[app.play.finder.found.tokens]) == {-1, 1}
        assert app.play.finder.found.tokens.sum() == (np.abs(clips) == 1).sum()


async def test_a_bad_expression_says_what_is_wrong_and_changes_nothing():
    async with on_screen(1, size=(80, 24)) as (app, _, pilot):
        await pressed(pilot, "slash", *"beauty>1", "enter")
        assert isinstance(app.screen, FindScreen)
        words = str(app.screen.query_one(Static).render())
        assert "nothing is called 'beauty'; known: reward, advantage, length" in words
        assert app.play.finder.query is None
        app.screen.query_one(Input).value = "reward<"
        await pressed(pilot, "enter")
        assert "'reward<' is not a comparison" in str(app.screen.query_one(Static).render())
        await pilot.press("escape")
        await app.play.perform("find", "beauty>1")
        await settled(pilot)
        assert "nothing is called 'beauty'" in [notice.message for notice in app._notifications][-1]


async def test_the_beginning_of_a_name_is_not_looked_for_before_enter():
    async with on_screen(1, size=(120, 35)) as (app, _, pilot):
        await pressed(pilot, "slash", *"len")
        assert app.play.finder.query is None
        await pressed(pilot, *"gth>0", "space", *"rew")
        assert app.play.finder.query.typed == "length>0"
        app.screen.query_one(Input).value = "len"
        await pressed(pilot, "enter")
        assert app.play.finder.query.text == "len"


async def test_where_nothing_fits_the_panel_says_so_and_no_key_breaks():
    async with on_screen(1, size=(120, 35)) as (app, _, pilot):
        await app.play.perform("find", "reward>100")
        await settled(pilot)
        assert "No answer matches reward>100." in " ".join(text_of(app.panels.tokens).split())
        assert "No answer matches." in " ".join(text_of(app.panels.rollouts).split())
        await pilot.press(
            "right", "left", "up", "down", "home", "end", "pagedown", "f", "F", "x", "y", "o", "escape", "m", "c"
        )
        app.panels.rollouts.focus()
        await pilot.press("up", "down", "home", "end", "y")
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        await pressed(pilot, "escape")
        assert listed(app) == set(range(app.play.session.shown.completions))


async def test_what_is_looked_for_stands_while_updates_come():
    async with on_screen(1, size=(120, 35)) as (app, source, pilot):
        await app.play.perform("find", "correct<0.5")
        await settled(pilot)
        source.records(synthetic_update(2)[:1])
        await settled(pilot)
        assert app.play.finder.count == f"0 of {app.play.session.shown.completions}", "not scored yet"
        source.update(2)
        await settled(pilot)
        parts = app.play.session.shown.scored.parts["correct"]
        assert listed(app) == set(np.flatnonzero(parts < 0.5).tolist())
        assert app.panels.tokens.cursor[0] in listed(app)


async def test_escape_takes_the_filter_away_before_it_leaves_an_older_update():
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        for number in (1, 2, 3):
            source.update(number)
        await settled(pilot)
        await pilot.press("left_square_bracket")
        await app.play.perform("find", "length>0")
        await settled(pilot)
        app.panels.curves.panels[0].focus()
        await pilot.press("escape")
        assert (app.play.finder.query, app.play.session.looking) == (None, 2)
        await pilot.press("escape")
        assert app.play.session.looking is None

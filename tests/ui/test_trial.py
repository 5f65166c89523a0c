"""What somebody new asks first: each answer stands on the screen after three key presses at most."""

import pytest
from msgspec.structs import asdict, replace
from textual.widgets import Static

from rlplay.algorithms.settings import Settings
from rlplay.glossary import TERMS
from rlplay.link.messages import Rewind
from rlplay.ui.format.keyed import keyed
from rlplay.ui.glossary.glossary_screen import GlossaryScreen
from rlplay.ui.words.clipping import explain_none
from tests.recorded import SETTINGS, synthetic_update
from tests.ui.stage import on_screen, pressed, settled, text_of

SIZES = pytest.mark.parametrize("size", [(160, 45), (120, 35), (80, 24)])
AS_IT_COMES = replace(SETTINGS, num_minibatches=Settings().num_minibatches, num_iterations=Settings().num_iterations)
MOST = 3


async def at_rest(pilot, app, source, number=5):
    """The main screen after some updates of one optimizer step each, as settings are at first."""
    for update in range(1, number + 1):
        source.records(synthetic_update(update, steps=1))
    source.status(number, **asdict(AS_IT_COMES))
    await settled(pilot)


async def press(pilot, *keys):
    assert len(keys) <= MOST
    await pressed(pilot, *keys)


def none_clipped(app):
    """Why none is, as the screen says it."""
    return keyed(explain_none(app.play.session.shown, AS_IT_COMES)).plain


@SIZES
async def test_which_token_got_most_credit(size):
    async with on_screen(size=size) as (app, source, pilot):
        await at_rest(pilot, app, source)
        await press(pilot, "c", "x")
        assert app.panels.narrator.render().plain.startswith("Largest credit: +")
        assert app.panels.tokens.cursor == app.panels.tokens.ranking()[0][:2]


@SIZES
async def test_why_no_token_is_clipped(size):
    async with on_screen(size=size) as (app, source, pilot):
        await at_rest(pilot, app, source)
        await app.play.perform("lens", "clip_state")
        await settled(pilot)
        assert app.panels.narrator.render().plain.startswith(none_clipped(app)), "and how to see one"


@SIZES
async def test_why_a_token_is_clipped(size):
    async with on_screen(1, steps=8, size=size) as (app, _, pilot):
        await app.play.perform("lens", "clip_state")
        await press(pilot, "x")
        state = app.play.session.shown.latest_step("clip_state")
        at = int(app.play.session.shown.sampled.offsets[app.panels.tokens.cursor[0]]) + app.panels.tokens.cursor[1]
        reason = "A > 0 and w > 1.2" if state[at] > 0 else "A < 0 and w < 0.8"
        assert f"Here {reason}: its ratio has reached the bound" in app.panels.narrator.render().plain
        if size[0] > 80:  # else the token's panel is another view
            assert f"{'▲' if state[at] > 0 else '▼'} clipped at" in " ".join(text_of(app.panels.inspector).split())


@SIZES
async def test_the_glossary_explains_clipping_and_leads_to_it(size):
    async with on_screen(size=size) as (app, source, pilot):
        await at_rest(pilot, app, source)
        await pressed(pilot, "d", *"clip")
        assert isinstance(app.screen, GlossaryScreen)
        assert app.screen.term is TERMS["Clipping"]
        assert "gradient for this token is 0" in str(app.screen.query_one(Static).render())
        await pressed(pilot, "enter")
        assert app.play.lens.name == "clip_state"
        assert none_clipped(app) in app.panels.narrator.render().plain


@SIZES
async def test_how_to_go_back_three_updates(size):
    async with on_screen(size=size) as (app, source, pilot):
        await at_rest(pilot, app, source)
        assert "z undo" in " ".join(app.panels.keys.render().plain.split()), "in the footer"
        await press(pilot, "z", "z", "z")
        assert source.commands[-1] == Rewind(2)


@SIZES
@pytest.mark.parametrize("keys", ["kb", "kbe"])
async def test_how_to_change_beta(size, keys):
    async with on_screen(size=size) as (app, source, pilot):
        await at_rest(pilot, app, source)
        await press(pilot, *keys)
        assert app.tuning.knobs.name_under_cursor == "beta"
        frame = app.tuning.knobs.query_one("Vertical")
        assert "a apply" in frame._border_title.plain
        await pilot.press("right")
        assert app.tuning.knobs.draft.differing() == {"beta": 0.1}


@SIZES
async def test_what_kl_means(size):
    async with on_screen(size=size) as (app, source, pilot):
        await at_rest(pilot, app, source)
        await press(pilot, "d", "k", "l")
        assert app.screen.term is TERMS["KL divergence"]
        assert TERMS["KL divergence"].text in str(app.screen.query_one(Static).render())

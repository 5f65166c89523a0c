"""The glossary's screen: type, move, go to where the word can be seen."""

import msgspec
import pytest
from textual.widgets import Input, OptionList, Static

from rlplay.algorithms.catalogue import PRESETS
from rlplay.glossary import TERMS
from rlplay.scenario.lesson import step_saying, whole_script
from rlplay.scenario.loader import load
from rlplay.scenario.share import shared_in
from rlplay.trace.lenses import LENSES
from rlplay.trace.metrics import describe
from rlplay.ui.glossary.glossary_screen import GlossaryScreen, entry
from rlplay.ui.knobs.knobs_screen import KnobsScreen
from rlplay.ui.plot.curve_view import single
from rlplay.ui.probe.probe_screen import ProbeScreen
from rlplay.ui.timeline.timeline_screen import TimelineScreen
from tests.ui.stage import on_screen, playground, pressed, settled

SIZES = pytest.mark.parametrize("size", [(160, 45), (80, 24)])


def explained(screen) -> str:
    return str(screen.query_one(Static).render())


@SIZES
async def test_it_opens_on_the_colour_and_typing_narrows_it(size):
    async with on_screen(1, size=size) as (app, _, pilot):
        await app.play.perform("lens", "entropy")
        await pressed(pilot, "d")
        assert isinstance(app.screen, GlossaryScreen)
        assert app.screen.term is TERMS["Entropy"]
        assert LENSES["entropy"].formula.split()[0] in explained(app.screen)
        await pressed(pilot, *"clipping")
        assert app.screen.term is TERMS["Clipping"]
        assert f"of {len(TERMS)}" in str(app.screen.query_one("Vertical").border_title)
        await pilot.press("down", "down", "up")
        assert app.screen.term is not TERMS["Clipping"]
        await pilot.press("escape")
        assert app.screen is app.panels.main


@SIZES
async def test_enter_goes_to_every_kind_of_place(size):
    async with on_screen(1, size=size) as (app, _, pilot):

        async def jump(term):
            await app.play.perform("glossary", term)
            await settled(pilot)
            await pressed(pilot, "enter")

        await jump("credit")
        assert app.play.lens is LENSES["credit"]
        await jump("clip fraction")
        assert app.focused.view == single("clip_ratio/region_mean")
        assert app.focused.region.area
        await jump("old policy")
        assert app.focused is app.panels.inspector
        assert app.panels.inspector.region.area
        await jump("answer")
        assert app.focused is app.panels.rollouts
        assert app.panels.rollouts.region.area
        await jump("beta")
        assert isinstance(app.screen, KnobsScreen)
        assert app.screen.name_under_cursor == "beta"
        await pilot.press("escape")
        for term, screen in (("update", TimelineScreen), ("state", ProbeScreen)):
            await jump(term)
            assert isinstance(app.screen, screen)
            await pilot.press("escape")
        assert app.screen is app.panels.main


async def test_wherever_a_word_can_be_seen_the_way_ends_there():
    app, source = playground()
    panels = {"knobs": KnobsScreen, "probe": ProbeScreen, "timeline": TimelineScreen}
    async with app.run_test(size=(120, 40)) as pilot:
        source.update(1)
        await settled(pilot)
        for verb, argument in sorted({term.see for term in TERMS.values() if term.see is not None}, key=str):
            await app.play.perform(verb, argument)
            await pilot.pause()
            if verb in panels:
                assert isinstance(app.screen, panels[verb]), (verb, argument)
                assert verb != "knobs" or app.screen.name_under_cursor == argument
                await pilot.press("escape")
            elif verb == "lens":
                assert app.play.lens is LENSES[argument]
            elif verb == "curve":
                shown = [describe(metric) for metric in app.focused.view.metrics]
                assert describe(argument) in shown, argument
        assert not app._notifications


def test_every_word_says_all_there_is_and_names_the_way_there():
    for term in TERMS.values():
        words = entry(term).plain
        for message in (term.text, term.formula, *term.aliases):
            assert message in words
        assert ("enter  " in words) == (term.see is not None)
        if term.see is not None and term.see[0] == "lens":
            assert LENSES[term.see[1]].reading in words
        assert ("ctrl+l  lesson: " in words) == (term.moment is not None)


@pytest.mark.parametrize(("term", "key"), [("Reward hacking", "ctrl+l"), ("Agent", "enter")])
async def test_a_key_opens_the_lesson_at_the_moment_that_shows_it(term, key):
    async with on_screen(size=(80, 24)) as (app, source, pilot):
        await settled(pilot)
        await app.play.perform("glossary", term)
        await settled(pilot)
        assert "play the lesson" in app.screen.query_one("Vertical")._border_subtitle.plain
        await pilot.press(key)
    lesson, words = TERMS[term].moment
    assert app.play.next_scenario == lesson
    assert words in " ".join(str(whole_script(load(lesson))[app.play.next_step - 1]["say"]).split())
    assert source.closed


async def test_where_no_lesson_can_be_opened_its_share_code_is_copied():
    app, source = playground()
    source.live = False
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await app.play.perform("glossary", "Reward hacking")
        await settled(pilot)
        await pressed(pilot, "ctrl+l")
        assert app.clipboard.startswith("rlplay rlp1-")
        shared = shared_in(app.clipboard.split()[1])
    lesson, words = TERMS["Reward hacking"].moment
    assert (shared.scenario, shared.step) == (lesson, step_saying(load(lesson), words))


async def test_a_word_that_no_lesson_shows_has_no_such_key(monkeypatch):
    monkeypatch.setitem(TERMS, "LLM judge", msgspec.structs.replace(TERMS["LLM judge"], moment=None))
    async with on_screen(size=(120, 40)) as (app, _, pilot):
        await settled(pilot)
        await app.play.perform("glossary", "LLM judge")
        await settled(pilot)
        screen = app.screen
        assert "lesson" not in screen.query_one("Vertical")._border_subtitle.plain
        await pilot.press("ctrl+l", "enter")
        assert app.screen is screen


async def test_an_algorithm_is_shown_by_its_equations():
    async with on_screen(size=(120, 40)) as (app, _, pilot):
        await settled(pilot)
        await app.play.perform("glossary", "dapo")
        await settled(pilot)
        words = explained(app.screen)
        assert "arXiv:2503.14476 · builds on GRPO" in words
        assert "clip(w, 0.8, 1.28)" in words
        await pilot.press("escape")
        await app.play.perform("glossary", "simpo")
        await settled(pilot)
        assert PRESETS["simpo"].differs in explained(app.screen)


async def test_where_nothing_is_found_it_says_so():
    async with on_screen(size=(120, 40)) as (app, _, pilot):
        await settled(pilot)
        await app.play.perform("glossary")
        await settled(pilot)
        await pressed(pilot, *"xyzzy", "enter", "down")
        assert isinstance(app.screen, GlossaryScreen)
        assert explained(app.screen).startswith("No entry matches.")
        app.screen.query_one(Input).value = ""
        await settled(pilot)
        assert app.screen.query_one(OptionList).option_count == len(TERMS)


async def test_a_click_on_the_place_goes_there():
    async with on_screen(1, size=(120, 40)) as (app, _, pilot):
        await app.play.perform("glossary", "entropy")
        await settled(pilot)
        text = app.screen.query_one(Static)
        lines = [text.render_line(y).text for y in range(text.size.height)]
        y = next(y for y, line in enumerate(lines) if line.startswith("enter"))
        await pilot.click(text, offset=(lines[y].index("Entropy") + 1, y))
        await settled(pilot)
        assert app.screen is app.panels.main
        assert app.play.lens is LENSES["entropy"]

"""Themes and terminals: what is coloured can be read in each, and without any colour attributes say the same."""

import asyncio
import re

import msgspec
import numpy as np
import pytest
from rich.color import Color as RichColor
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from rlplay import user_preferences
from rlplay.cli import doctor
from rlplay.trace.lenses import LENSES
from rlplay.trace.lenses_of_others import OF_OTHERS
from rlplay.trace.records import Credited
from rlplay.trace.update import Update
from rlplay.ui.compat import lines_of
from rlplay.ui.format.legend import legend
from rlplay.ui.lesson.teaching import Plan
from rlplay.ui.plot.several_runs import RUN_STYLES
from rlplay.ui.screenshot.cells import capture
from rlplay.ui.start import run as opened
from rlplay.ui.theme.inks import READABLE, STEPS, contrast, levels, off_scale, palette
from rlplay.ui.theme.no_color import Plain
from rlplay.ui.theme.themes import THEMES, quiet
from tests.recorded import synthetic_run, synthetic_update
from tests.terminal import Terminal, rlplay
from tests.ui.stage import on_screen, playground, pressed, settled

COLOURED = re.compile(rb"\x1b\[(?:\d+;)*(?:3[0-9]|4[0-9]|9[0-7]|10[0-7])(?:[;:]\d+)*m")
"""A sequence that sets a colour: 30 to 49, 90 to 97 or 100 to 107 among its numbers."""


def _recorded() -> Update:
    update = Update(1)
    for record in synthetic_update(1):
        update.add(record)
    return update


UPDATE = _recorded()
AVAILABLE = [name for name, lens in LENSES.items() if lens.values(UPDATE) is not None]


@pytest.fixture
def colourless(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")


def written(app):
    """What the screen sends to the terminal."""
    strips = lines_of(app)
    return "".join(strip.render(app.console) for strip in strips).encode()


def test_the_pattern_finds_colours_and_no_attributes():
    for found in (b"\x1b[31m", b"\x1b[1;38;2;1;2;3m", b"\x1b[48;5;17m", b"\x1b[39;49m", b"\x1b[97m"):
        assert COLOURED.search(found), found
    for other in (b"\x1b[1m", b"\x1b[0m", b"\x1b[4;9m", b"\x1b[7m", b"\x1b[35;10H"):
        assert not COLOURED.search(other), other


@pytest.mark.parametrize("size", [(160, 45), (80, 24)])
async def test_every_lens_has_a_cue_without_colour(colourless, size):
    async with on_screen(1, size=size) as (app, _, pilot):
        for lens in AVAILABLE:
            await app.play.perform("lens", lens)
            await settled(pilot)
            assert app.play.lens is LENSES[lens]
            assert not COLOURED.search(written(app)), lens
            reached = levels(LENSES[lens], LENSES[lens].values(UPDATE))
            looks = [app.panels.tokens.palette.shade(int(level), LENSES[lens].two_sided) for level in reached]
            for low, high in [(2, STEPS)] + [(-STEPS, -2)] * (LENSES[lens].two_sided):
                marked = [look for look, level in zip(looks, reached, strict=True) if low <= level <= high]
                assert all(look.underline if low > 0 else look.strike for look in marked), lens
            if np.abs(reached).max() >= 2:
                y, x = app.panels.tokens.content_region.offset.y, app.panels.tokens.content_region.offset.x
                row = app.panels.tokens.content_region
                cells = [cell for line in capture(app)[y : y + row.height] for cell in line[x : x + row.width]]
                assert any(cell.style.underline or cell.style.strike for cell in cells), lens


def test_most_statistics_are_there_to_be_tested():
    elsewhere = {lens.name for lens in OF_OTHERS}
    assert set(LENSES) - set(AVAILABLE) <= {"values", "implicit_reward", "share"} | elsewhere, (
        "those come with a value head, with pairs, or when asked for; or where a sampler or a teacher is another policy"
    )


def test_without_colour_the_levels_of_a_scale_differ_and_its_sides_too():
    found = palette({**THEMES[0].to_color_system().generate(), **THEMES[0].variables}, 2)
    for scale in (found.up, found.down, found.amount):
        assert len({str(style) for style in scale[1:]}) == STEPS
        assert all(style.color is None and style.bgcolor is None for style in scale)
    assert not {str(style) for style in found.up[2:]} & {str(style) for style in found.down[2:]}


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
async def test_no_screen_writes_a_colour_and_the_chosen_line_is_reversed(colourless, theme):
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        app.theme = theme.name
        source.update(1)
        await settled(pilot)
        for key in ("f12", "g", "question_mark", "k"):
            await pressed(pilot, key)
            sent = written(app)
            assert len(sent) > 1000
            assert not COLOURED.search(sent), key
            if key == "k":
                assert re.search(rb"\x1b\[(?:\d;)*7m[^\x1b]*Algorithm", sent), "the cursor among the knobs"
            await pressed(pilot, "escape")


def test_attributes_take_the_place_of_colours():
    ground = Color.parse("#0e1015")

    def plain(text, **style):
        (segment,) = Plain().apply([Segment(text, Style(**style))], ground)
        assert segment.style.color is segment.style.bgcolor is None
        return segment

    assert plain("a", color="#d5d9e0").style.dim is None
    assert plain("a", color="#868e9b").style.dim
    assert plain("a", color="#0e1015", bgcolor="#b79cf7").style.reverse
    assert not plain("a", color="#d5d9e0", bgcolor="#1b1f27").style.reverse
    assert plain("╱╱", color="#14161b").text == "  ", "a texture hardly there would be as strong as words"
    assert plain("東", color="#14161b").text == "  "
    kept = plain("a", color="#ffffff", bold=True, underline=True, strike=True).style
    assert kept.bold
    assert kept.underline
    assert kept.strike


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
async def test_with_sixteen_colours_the_chosen_line_can_be_seen(monkeypatch, theme):
    monkeypatch.delenv("COLORTERM")
    monkeypatch.setenv("TERM", "xterm")
    app, _ = playground()
    assert app.console.color_system == "standard"
    async with app.run_test(size=(120, 35)) as pilot:
        app.theme = theme.name
        await settled(pilot)
        await pressed(pilot, "k")
        strips = lines_of(app)
        chosen, other = (
            next(segment.style for strip in strips for segment in strip if word in segment.text)
            for word in ("Algorithm", "Generations")
        )

        def seen(style):
            ground = style.color if style.reverse else style.bgcolor
            return ground.downgrade(ColorSystem.STANDARD)

        assert seen(chosen) != seen(other)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_words_can_be_read_in_every_theme(theme):
    ground, panel = Color.parse(theme.background), Color.parse(theme.panel)
    for name in ("foreground", "primary", "secondary", "accent", "success", "warning", "error"):
        for behind in (ground, panel) if name in ("foreground", "accent") else (ground,):
            assert contrast(Color.parse(getattr(theme, name)), behind) >= 4.5, name
    assert contrast(Color.parse(theme.variables["text-muted"]), ground) >= 4.5
    ends = [Color.parse(theme.variables[f"scale-{name}"]) for name in ("up", "down", "amount")]
    for one, other in ((0, 1), (1, 2)):
        assert abs(ends[one].hsl.h - ends[other].hsl.h) > 0.25, "hues that a glance tells apart"


@pytest.mark.parametrize("theme", [theme for theme in THEMES if theme.dark], ids=lambda theme: theme.name)
def test_chrome_stays_grey_with_256_colours(theme):
    for value in (theme.panel, theme.foreground, *(theme.variables[n] for n in ("border", "text-muted", "scrollbar"))):
        near = RichColor.parse(value).downgrade(ColorSystem.EIGHT_BIT).get_truecolor()
        assert max(near) - min(near) <= 8, value


async def test_other_themes_have_quiet_frames():
    async with on_screen() as (app, _, pilot):
        for name in ("nord", "gruvbox", "solarized-light", "dracula", "rlplay-dark"):
            app.theme = name
            await pilot.pause()
            variables = app.theme_variables
            ground = Color.parse(variables["background"])
            assert contrast(Color.parse(variables["border"]), ground) < 2.2, name
            for words in ("primary", "warning", "error", "success", "text-muted"):
                for behind in (ground, Color.parse(variables["panel"])):
                    assert contrast(Color.parse(variables[words]), behind) >= READABLE, (name, words)
        assert quiet({"background": "#000000", "foreground": "#ffffff"})["text-muted"] != "#ffffff"


async def test_the_letters_of_compared_runs_are_readable_and_distinct_in_every_theme():
    async with on_screen() as (app, _, pilot):
        for name in (*(theme.name for theme in THEMES), "nord", "solarized-light", "textual-light"):
            app.theme = name
            await pilot.pause()
            variables = app.theme_variables
            inks = [Color.parse(variables[look.ink.removeprefix("$")]) for look in RUN_STYLES]
            for ink in inks:
                for behind in ("background", "panel"):
                    assert contrast(ink, Color.parse(variables[behind])) >= READABLE, name
            assert len({ink.hex for ink in inks}) == len(RUN_STYLES), name


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_what_the_panels_write_can_be_read(theme):
    inks = palette({**theme.to_color_system().generate(), **theme.variables})
    for ink in (inks.text, inks.muted, inks.mark, inks.warning, inks.error, inks.up_text, inks.down_text):
        assert contrast(Color.from_rich_color(ink.color), Color.parse(theme.background)) >= READABLE


@pytest.mark.parametrize(("name", "dark"), [("ansi-light", False), ("ansi-dark", True)])
async def test_the_terminals_own_colours_get_shades_near_their_ground(name, dark):
    async with on_screen() as (app, _, pilot):
        app.theme = name
        await pilot.pause()
        inks = palette(app.theme_variables)
        weak = Color.from_rich_color(inks.up[1].bgcolor)
        assert (weak.brightness < 0.5) == dark
        assert inks.text.color.is_default


def test_without_colour_the_legend_is_made_of_words():
    bare = palette({**THEMES[0].to_color_system().generate(), **THEMES[0].variables}, 2)
    assert legend(LENSES["credit"], bare, True).plain == "−2 less more +2 advantage units"
    assert legend(LENSES["probability"], bare, True).plain == "0  more 1"


@pytest.mark.parametrize(
    ("kept", "given", "begins"),
    [
        (None, None, "rlplay-dark"),
        ('{"theme": "rlplay-paper"}', None, "rlplay-paper"),
        ('{"theme": "rlplay-paper"}', "nord", "nord"),
        ('{"theme": "gone"}', None, "rlplay-dark"),
        ('{"theme": 3}', None, "rlplay-dark"),
        ("[]", None, "rlplay-dark"),
        ("not json", None, "rlplay-dark"),
    ],
)
def test_the_theme_is_kept_between_starts(monkeypatch, tmp_path, kept, given, begins):
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path))
    if kept is not None:
        (tmp_path / "preferences.json").write_text(kept)
    app, _ = playground(plan=Plan(keeps_theme=True))
    if given is not None:
        monkeypatch.setenv("TEXTUAL_THEME", given)
        app.theme = given
    kept_before = user_preferences.theme()

    async def choose():
        async with app.run_test(size=(80, 24)) as pilot:
            await settled(pilot)
            assert app.theme == begins
            assert user_preferences.theme() == kept_before, "nobody has chosen one yet"
            app.theme = "rlplay-dusk"
            await settled(pilot)
            assert user_preferences.theme() == "rlplay-dusk", "before the app ends: a terminal may close first"

    monkeypatch.setattr(app, "run", lambda: asyncio.run(choose()))
    assert opened(app) == 0


async def test_a_test_or_a_gallery_does_not_choose_for_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    async with on_screen(size=(80, 24)) as (app, _, pilot):
        app.theme = "rlplay-dusk"
        await settled(pilot)
    assert not (tmp_path / "home").exists()


async def test_a_change_of_theme_reaches_the_scale_and_the_details_of_a_token():
    async with on_screen(1, size=(160, 45)) as (app, _, pilot):

        def inks():
            details = {
                str(piece.style)
                for row in range(app.panels.inspector.count())
                for piece in app.panels.inspector.line(row)
            }
            return str(app.panels.tokens.border_subtitle), details

        app.theme = "rlplay-light"
        await settled(pilot)
        changed = inks()
        await chosen_again(pilot)
        assert changed == inks()


async def chosen_again(pilot):
    """Draw everything anew."""
    pilot.app.play.session.touch("update", "status", "history", "look")
    pilot.app.refresher.everything()
    await settled(pilot)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"NO_COLOR": "1"}, "none (NO_COLOR is set)"),
        ({"TERM": "xterm"}, "16;"),
        ({"TERM": "xterm-256color"}, "256;"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "16 million"),
        ({"TERM": "dumb"}, "none:"),
    ],
)
def test_doctor_says_what_the_terminal_can_show(monkeypatch, tmp_path, env, words):
    for name in ("TERM", "COLORTERM"):
        monkeypatch.delenv(name)
    for name, value in {"RLPLAY_HOME": str(tmp_path), **env}.items():
        monkeypatch.setenv(name, value)
    assert doctor._colours().startswith(words)
    user_preferences.keep_theme("rlplay-paper")
    assert any("rlplay-paper (kept in" in line for line in doctor._terminal())


def test_the_real_program_sends_no_colour(tmp_path):
    path = tmp_path / "run.rlplay"
    synthetic_run(path, updates=2)
    terminal = Terminal(rlplay("replay", str(path)), 120, 35, {"NO_COLOR": "1", "RLPLAY_HOME": str(tmp_path)})
    try:
        sent = b""
        while b"end of the" not in sent and len(sent) < 1_000_000:
            sent += terminal.receive(20)
        for key in "ck":
            terminal.press(key)
            sent += terminal.receive(5)
    finally:
        terminal.close()
    assert b"Answers" in sent
    assert not COLOURED.search(sent)


def test_an_end_of_the_scale_says_that_there_is_more_beyond_it():
    found = palette({**THEMES[0].to_color_system().generate(), **THEMES[0].variables})
    for values, ends in (([-2, 0, 2], ("−2", "+2")), ([-9, 0, 2], ("≤−2", "+2")), ([0, np.nan, 2.5], ("−2", "≥+2"))):
        words = legend(
            LENSES["credit"], found, True, beyond=off_scale(LENSES["credit"], np.array(values))
        ).plain.split()
        assert (words[0], words[1]) == ends
    assert off_scale(LENSES["probability"], np.array([0.0, 1 + 1e-6])) == (False, False), "rounding"


def test_the_three_states_of_clipping_are_three_in_the_legend():
    for colours in (1 << 24, 2):
        found = palette({**THEMES[0].to_color_system().generate(), **THEMES[0].variables}, colours)
        shown = legend(LENSES["clip_state"], found, True)
        assert shown.plain == " ▼  low   not clipped    ▲  high"
    assert levels(LENSES["clip_state"], np.array([-1, 0, 1, 2])).tolist() == [-STEPS, 0, STEPS, STEPS]


async def test_the_legend_of_the_tokens_says_what_their_shades_hide():
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        records = synthetic_update(1)
        credited = next(record for record in records if isinstance(record, Credited))
        source.records(
            [msgspec.structs.replace(r, advantages=r.advantages * 9) if r is credited else r for r in records[:3]]
        )
        source.status(0, phase="credit")
        await settled(pilot)
        assert app.panels.tokens._border_subtitle.plain.split()[0] == "≤−2"
        assert app.panels.tokens._border_subtitle.plain.split()[1] == "≥+2"


def test_in_every_theme_the_cursor_and_the_focused_border_have_one_colour():
    app, _ = playground()
    for name in app.available_themes:
        app.theme = name
        variables = app.get_css_variables()
        assert variables["accent"] == variables["primary"], name

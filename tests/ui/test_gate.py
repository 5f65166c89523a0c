"""The last gate: what widgets forgot to make visible is not obeyed either, and no line changes its width."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.control import Control
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.color import Color
from textual.filter import Monochrome
from textual.strip import Strip
from textual.widgets import Input, Static

from rlplay.trace.text import MARKS, NOTHING, harmless, one_by_one, visible, visible_json
from rlplay.ui.compat import lines_of
from rlplay.ui.parts.text_field import TextField
from rlplay.ui.terminal.gate import GatedApp, LastGate, passed
from tests.ui.stage import on_screen, playground

BLACK = Color(0, 0, 0)


def through(*segments: Segment) -> list[Segment]:
    return LastGate(()).apply(list(segments), BLACK)


@given(st.text() | st.text("ab\x1b\x9b\u202e\u200b\u0301👨\u200d\ufe0f❤🏻東\u3164\n\ud800"))
def test_whatever_is_written_is_harmless_and_as_wide_as_it_was_laid_out(text: str) -> None:
    (shown,) = through(Segment(text))
    assert cell_len(shown.text) == cell_len(text)
    assert all(harmless(character) or character.isspace() for character in shown.text)
    assert not set(shown.text) & set("\n\r\t\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), "a blank is not a line break"


@given(st.text() | st.text("ab\x1b\x9b\u202e\u200b\u0301👨\u200d\ufe0f❤🏻東\u3164\n\ud800"))
def test_a_symbol_for_each_character_keeps_positions(text: str) -> None:
    assert len(one_by_one(text)) == len(text)
    assert one_by_one(one_by_one(text)) == one_by_one(text)


def test_plain_lines_are_passed_on_as_they_are() -> None:
    segments = [Segment("│ "), Segment("Grüße, 東京 👍", Style(bold=True)), Segment("e\u0301")]
    assert through(*segments) == segments
    strip = Strip(segments)
    assert passed(strip) is strip


def test_links_and_orders_to_the_terminal_are_taken_out() -> None:
    bold = Style(bold=True)
    link = Segment("here", Style(bold=True, link="https://example.org\x1b\\"))
    order = Control.title("owned").segment
    for shown in (through(link, order), list(passed(Strip([link, order])))):
        assert shown == [Segment("here", bold)]
        assert shown[0].style is not None
        assert shown[0].style.link is None


def test_a_pile_of_marks_is_cut_where_it_would_cover_other_lines() -> None:
    pile = "a" + "\u0301" * 500
    assert visible(pile) == "a" + "\u0301" * MARKS + NOTHING * (500 - MARKS)
    assert through(Segment(pile)) == [Segment("a" + "\u0301" * MARKS)]


def test_what_comes_before_the_gate_still_works() -> None:
    grey = Segment("x\x1by", Style(color="#ff0000"))
    filtered = LastGate((Monochrome(),)).apply([grey], BLACK)
    assert [segment.text for segment in filtered] == ["xy"]
    assert filtered[0].style == Monochrome().apply([grey], BLACK)[0].style


class Careless(GatedApp):
    """Shows text as it is, in every way there is."""

    EVIL = "[b]x[/]\x1b]0;owned\x07\x9b31m\u202e"

    def compose(self) -> ComposeResult:
        evil = Static(self.EVIL, markup=False)
        evil.styles.border = ("round", "red")
        evil.border_title = self.EVIL
        yield evil
        yield Input(self.EVIL, placeholder=self.EVIL)


async def test_a_careless_widget_changes_nothing() -> None:
    app = Careless()
    async with app.run_test(size=(40, 12), notifications=True) as pilot:
        app.notify(app.EVIL, title=app.EVIL)
        await pilot.pause()
        strips = lines_of(app)
        text = "\n".join(strip.text for strip in strips)
        assert all(harmless(line) for line in text.split("\n"))
        assert all(cell_len(strip.text) == 40 for strip in strips)
        assert text.count("[b]x[/]") == 4, "a notice is no markup, nor is its title"
        assert text.count("owned") == 5


async def test_panels_of_lines_pass_their_borders_and_lines_themselves() -> None:
    async with on_screen(1, size=(120, 35)) as (app, _, pilot):
        app.panels.tokens.border_title = Careless.EVIL
        app.panels.tokens._strips[0] = Strip([Segment("\x1b]0;owned\x07".ljust(99))])
        app.panels.tokens.refresh()
        await pilot.pause()
        text = "\n".join(strip.text for strip in lines_of(app))
        assert text.count("owned") == 2
        assert all(harmless(line) for line in text.split("\n"))


async def test_what_is_copied_is_what_is_shown() -> None:
    app, _ = playground()
    async with app.run_test():
        app.copy_to_clipboard("one\n\x1b[201~two\ud800")
        assert app.clipboard == f"one\n␛[201~two{NOTHING}"


class Typing(App[None]):
    """One line to type in."""

    def __init__(self, value: str) -> None:
        super().__init__()
        self.value = value

    def compose(self) -> ComposeResult:
        yield TextField(self.value)


ODD = "a\x1b]0;x\x07\r\n\u202eb\u3164東c\t\x9b"


async def test_an_entry_shows_a_symbol_for_each_odd_character_and_keeps_the_value() -> None:
    app = Typing(ODD)
    async with app.run_test(size=(60, 5)) as pilot:
        entry = app.query_one(TextField)
        shown = entry.render_line(0).text
        assert shown.startswith("a␛]0;x␇␍⏎◦b◦東c␉◦ ")
        for position in range(len(ODD)):
            entry.cursor_position = position
            at = cell_len(shown[:position])
            assert entry.cursor_screen_offset.x == entry.content_region.x + at
            assert entry._cell_offset_to_index(at) == position, "where a click puts the cursor"
        entry.cursor_position = 2
        await pilot.press("delete", "!", "end", "backspace")
        assert entry.value == "a\x1b!0;x\x07\r\n\u202eb\u3164東c\t"
        assert entry._cell_offset_to_index(50) == len(entry.value)


async def test_an_entry_too_long_for_its_line_follows_the_cursor() -> None:
    app = Typing("\x1b" * 500 + "end")
    async with app.run_test(size=(40, 5)) as pilot:
        entry = app.query_one(TextField)
        await pilot.press("end")
        assert "␛end" in entry.render_line(0).text
        assert cell_len(entry.render_line(0).text) <= 40


@pytest.mark.parametrize("character", ["\x7f", "\x9b", "\u202e", "\ufeff", "\u3164", "\U000e0041", "\ud800", "\u00a0"])
def test_json_keeps_what_it_says_and_shows_all_of_it(character: str) -> None:
    line = json.dumps({"text": f"東京 {character} 👍"}, ensure_ascii=False)
    assert harmless(visible_json(line))
    assert json.loads(visible_json(line)) == json.loads(line)
    assert "東京" in visible_json(line)
    plain: dict[str, Any] = {"text": "東京"}
    assert visible_json(json.dumps(plain, ensure_ascii=False)) == '{"text": "東京"}'

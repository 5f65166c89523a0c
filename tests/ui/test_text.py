"""Model text on the screen: everything visible, nothing obeyed."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rlplay.ui.text import END, NOTHING, quoted, token_text, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" plain text", " plain text"),
        ("a\nb\t\r", "a⏎b␉␍"),
        ("\x1b[31mred", "␛[31mred"),
        ("\x7f\x80", f"␡{NOTHING}"),
        ("\u202eevil", f"{NOTHING}evil"),
        ("\u200b", NOTHING),
        ("\u0301", "◌\u0301"),
        ("\U0001f468\u200d\U0001f469", f"\U0001f468{NOTHING}\U0001f469"),
        ("東京", "東京"),
        ("[bold]x[/]", "[bold]x[/]"),
    ],
)
def test_odd_characters_become_symbols(text, shown):
    assert visible(text) == shown


def test_blanks_are_dots_on_demand():
    assert visible(" a b", spaces=True) == "·a·b"


@given(st.text())
def test_nothing_reaches_the_terminal_that_it_would_obey(text):
    shown = visible(text)
    assert not any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in shown)
    assert cell_len(shown) > 0 or not text


def test_tokens_that_are_no_text():
    assert token_text("", "�") == NOTHING, "half a character"
    assert token_text("<|end|>", "<|end|>") == END
    assert token_text("<|end|>", "<|end|>", spaces=True) == "⟨end⟩"
    assert token_text("<b>", "<b>") == "<b>", "not every angle bracket is a marker"


def test_a_token_in_a_table_shows_its_blanks():
    assert quoted(" 11") == '" 11"'
    assert quoted("\n") == '"⏎"'
    assert quoted("<|end|>") == "<|end|>"

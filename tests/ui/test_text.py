"""Model text on the screen: everything visible, nothing obeyed."""

import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rlplay.cli import look as cli_look
from rlplay.cli import main as cli
from rlplay.engine.run_report import JsonLines, TextReport
from rlplay.scenario.expect import ClaimResult
from rlplay.trace.text import NOTHING, visible, visible_lines
from rlplay.ui.format.shown_text import END, column_text, quoted, token_text, within


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (["4*6=24", "3+24=27"], "4*6=24, 3+24=27"),
        ([], ""),
        ({"input": [1, 2], "output": 3}, "input: 1, 2, output: 3"),
        (30, "30"),
        ("30", "30"),
    ],
)
def test_a_column_is_written_in_words_and_numbers(value, shown):
    assert column_text(value) == shown


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
        ("👍🏻", "👍◦"),
        ("\u1161", "◌\u1161"),
        ("\u0903", "◌\u0903"),
        ("\u3164", "◦"),
        ("[bold]x[/]", "[bold]x[/]"),
    ],
)
def test_odd_characters_become_symbols(text, shown):
    assert visible(text) == shown


def test_lines_stay_lines():
    assert visible_lines("one\n\x1b[2Jtwo") == "one\n␛[2Jtwo"


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


EVIL = "x\x1b]0;owned\x07\x9b31m"


def obeyed(text: str) -> list[str]:
    return [character for character in text if unicodedata.category(character) == "Cc" and character != "\n"]


def test_a_run_without_a_screen_prints_nothing_that_is_obeyed():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out, err = io.StringIO(), Terminal()
    report = TextReport(out, err)
    report.say(EVIL)
    report.note(EVIL)
    report.loading(EVIL, 0.5)
    assert out.getvalue().count("owned") == 1
    assert err.getvalue().count("owned") == 2
    assert not obeyed(out.getvalue() + err.getvalue())


def test_lines_for_programs_keep_the_text_and_no_control_character():
    out = io.StringIO()
    JsonLines(out, io.StringIO()).result(True, [ClaimResult(EVIL, True, None, "")], "run", [])
    assert not obeyed(out.getvalue())
    assert json.loads(out.getvalue())["expectations"][0]["text"] == EVIL


def test_the_command_line_prints_nothing_that_is_obeyed(capsys):
    cli_look._echo(EVIL)
    with pytest.raises(SystemExit):
        cli._fail(ValueError(EVIL), EVIL, 2)
    printed = capsys.readouterr()
    assert "owned" in printed.out
    assert "owned" in printed.err
    assert not obeyed(printed.out + printed.err)


@pytest.mark.parametrize(
    ("title", "inside"),
    [("KL to reference", "KL to reference"), ("Change in probability", "change in probability"), ("", "")],
)
def test_a_title_inside_a_line_keeps_its_abbreviations(title, inside):
    assert within(title) == inside

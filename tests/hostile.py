"""Strings that try to command a terminal, and a reader of what a terminal gets."""

from __future__ import annotations

import base64
import re

from rlplay.trace.text import MARKS, harmless

STOLEN = base64.b64encode(b"stolen").decode()
HOSTILE = {
    "title": "\x1b]0;owned\x07",
    "title, C1": "\x9d2;owned\x9c",
    "clipboard": f"\x1b]52;c;{STOLEN}\x07",
    "link": "\x1b]8;;https://evil.example\x1b\\x\x1b]8;;\x1b\\",
    "pointer": "\x1b]22;wait\x07",
    "colour": "\x1b[31;47;5m",
    "colour, C1": "\x9b35m",
    "cursor": "\x1b[99;1H\x1b[5A\x1b[2J\x1b[3J\x1bc",
    "alternate screen": "\x1b[?1049l\x1b[?25h",
    "report": "\x1b[6n\x1b[c\x05",
    "device control": "\x1bP+q544e\x1b\\",
    "application": "\x1b_Ga=T;AAAA\x1b\\",
    "shifts": "\x0e\x0f\x1b(0\x1b#8",
    "C0": "\x00\x07\x08\r\x0b\x0c\x7f",
    "C1": "\x80\x84\x85\x8d\x90\x9b\x9d\x9e\x9f",
    "line breaks": "a\nb\u2028c\u2029d\r\ne",
    "turned": "\u202egnp.exe\u202c\u2066x\u2069\u200f\u200e\u061c",
    "invisible": "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u3164\u115f\u180e\ufff9",
    "tags": "\U000e0001\U000e0041\U000e007f\U000e0101",
    "joined": "👨\u200d👩 ❤\ufe0f 👍🏻",
    "surrogate": "\ud800x\udfff",
    "private": "\ue000\U000f0000\ufffe\U0010ffff",
    "markup": "[red]x[/] [@click=app.quit]x[/] [link=file:///x]x[/] [/nothing]",
    "keys": "`q` `x",
    "storm": "e" + "\u0301\u0489\u0334" * 100,
    "long": "x" * 10_000,
    "wide": "東" * 200,
}
"""What each tries to do."""

SEQUENCES = re.compile(
    r"\x1b\[(?P<style>[\d;]*)m|\x1b\[(?P<line>\d+);(?P<column>\d+)H|\x1b\[\?2026[hl]"
    r"|\x1b\]22;(?:default|pointer|text)\x07|\x1b\]52;c;(?P<copied>[A-Za-z0-9+/=]*)\x07"
)
"""All that Textual writes besides letters while an app runs."""
_PART = r"(?:[1-9]|2[1-9]|53|[34]8;2;\d{1,3};\d{1,3};\d{1,3})"
STYLE = re.compile(rf"0|{_PART}(?:;{_PART})*")
"""In 16 million colours; numbers of fixed colours are a payload's."""


def letters(written: str, size: tuple[int, int] = (999, 999), sequences: re.Pattern[str] = SEQUENCES) -> str:
    """What is left of `written` without the sequences that the program may write. AssertionError if any other is in it.

    Positions are within `size`, styles are those of Textual, and nothing is copied that a terminal would obey.
    """
    text, at = [], 0
    for found in sequences.finditer(written):
        text.append(written[at : found.start()])
        at = found.end()
        parts = found.groupdict()
        if parts["style"]:
            assert STYLE.fullmatch(parts["style"]), f"a style of somebody else's: {parts['style']}"
        if parts["line"]:
            assert int(parts["column"]) <= size[0], f"out of the screen: {parts}"
            assert int(parts["line"]) <= size[1], f"out of the screen: {parts}"
        if parts["copied"] is not None:
            copied = base64.b64decode(parts["copied"]).decode()
            assert copied != "stolen"
            tame(copied)
    text.append(written[at:])
    tame("".join(text))
    return "\0".join(text)


def tame(text: str) -> None:
    """AssertionError if a terminal would obey or hide anything in `text` but its line breaks."""
    for line in text.split("\n"):
        if not harmless(line):
            odd = [hex(ord(c)) for c in line if not harmless(c) and not c.isspace()]
            assert not odd, f"{odd} in {line!r}"
        assert not re.search(f"[\u0300-\u036f\u0483-\u0489]{{{MARKS + 1}}}", line), f"a pile in {line!r}"

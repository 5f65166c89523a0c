"""A text area for Python: its colours, the indentation of a new line, and marked lines."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Number, Operator, String
from rich.style import Style
from rich.text import Text
from textual import events
from textual.widgets import TextArea

from rlplay.trace.text import one_by_one

_INDENT = 4
Runs = tuple[tuple[int, int, str], ...]
"""Parts of a line that have a colour: begin, end, and which."""


def _kind(token: Any) -> str:
    if token in Keyword or token in Operator.Word:
        return "keyword"
    if token in Comment or token in String.Doc:
        return "comment"
    if token in String or token in Number:
        return "literal"
    return ""


@lru_cache(maxsize=8)
def coloured(code: str) -> tuple[Runs, ...]:
    """The coloured parts of every line of Python `code`, which need not be right."""
    lines: list[list[tuple[int, int, str]]] = [[]]
    at = 0
    for token, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens(code):
        for number, part in enumerate(text.split("\n")):
            if number:
                lines.append([])
                at = 0
            if part and (kind := _kind(token)):
                lines[-1].append((at, at + len(part), kind))
            at += len(part)
    return tuple(map(tuple, lines))


class CodeEditor(TextArea):
    """An editor of Python. Keys that type never reach a verb; `enter` keeps the indentation."""

    DEFAULT_CSS = """
    CodeEditor {
        &, &:focus { border: none; padding: 0; background: $background; }
        & .text-area--gutter { color: $text-muted; background: $background; }
        & .text-area--cursor-gutter { color: $foreground; background: $surface; }
        scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1;
    }
    """

    def __init__(self, text: str = "", *, read_only: bool = False) -> None:
        super().__init__(
            text, soft_wrap=False, tab_behavior="indent", show_line_numbers=True, read_only=read_only,
            max_checkpoints=500, highlight_cursor_line=False, classes="" if read_only else "-undoes",
        )  # fmt: skip
        self.indent_width = _INDENT
        self.marked = 0  # a line to mark, from 1; 0: none
        self.wrong = False  # whether it is marked as a mistake

    def mark(self, line: int, wrong: bool = False) -> None:
        """Mark a line, from 1; 0 takes the mark away."""
        if (line, wrong) != (self.marked, self.wrong):
            self.marked, self.wrong = line, wrong
            self.notify_style_update()

    def get_line(self, line_index: int) -> Text:
        """A line in its colours, with symbols for control characters."""
        text = Text(one_by_one(self.document.get_line(line_index)), end="", no_wrap=True)
        inks = self.app.theme_variables
        styles = {
            "keyword": Style(bold=True),
            "comment": Style(color=_ink(inks["text-muted"]), italic=True),
            "literal": Style(color=_ink(inks["secondary"])),
        }
        lines = coloured(self.text)
        for begin, end, kind in lines[line_index] if line_index < len(lines) else ():
            text.stylize(styles[kind], begin, end)
        if line_index + 1 == self.marked:
            text.stylize(Style(bold=True, underline=True, color=_ink(inks["error"]) if self.wrong else None))
        return text

    def on_key(self, event: events.Key) -> None:
        """Begin a new line as deep as the one above, one step deeper after a colon."""
        if self.read_only or event.key not in ("enter", "backspace") or self.selected_text:
            return
        row, column = self.cursor_location
        before = self.document.get_line(row)[:column]
        depth = len(before) - len(before.lstrip(" "))
        if event.key == "enter":
            deeper = _INDENT if before.rstrip().endswith(":") else 0
            self.insert("\n" + " " * (depth + deeper))
        elif before and not before.strip() and column % _INDENT == 0:
            self.delete((row, column - _INDENT), (row, column))
        else:
            return
        event.prevent_default()
        event.stop()


def _ink(colour: str) -> str | None:
    """A colour as Rich has it; None for what the terminal chooses."""
    return None if colour.startswith("ansi_") else colour

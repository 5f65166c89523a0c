"""A file of the engine, to read, with the line marked that does what the learner has just written."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from rlplay.ui.format.keyed import keyed
from rlplay.ui.parts.over_another import Dialogue
from rlplay.ui.writing.code_editor import CodeEditor

_PACKAGE = Path(__file__).parents[2]


def line_of(file: str, begins: str) -> int:
    """The number of the first line of a file of the package that begins so, from 1. Raises ValueError without one."""
    lines = source_of(file).splitlines()
    return next(number for number, line in enumerate(lines, start=1) if line.startswith(begins))


def source_of(file: str) -> str:
    """The text of a file of the package."""
    return (_PACKAGE / file).read_text(encoding="utf-8")


class EngineLinesScreen(Dialogue[None]):
    """The very file that runs, not a copy of it."""

    HELP = """\
# The engine's own lines

The file that the engine runs, with the line marked that does what you wrote. `rlplay/engine/loop.py` is the whole
training loop on one page.
"""
    DEFAULT_CSS = """
    EngineLinesScreen > Vertical { width: 126; height: 90%; padding: 0; }
    """
    CAPTIONED = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "help", "help", id="help"),
        Binding("escape,q", "dismiss(None)", "close", priority=True),
    ]

    def __init__(self, file: str, begins: str) -> None:
        """`file` within the package, and how the line begins that matters."""
        super().__init__()
        self._file, self._line = file, line_of(file, begins)

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = f"rlplay/{self._file} · line {self._line}"
            panel.border_subtitle = keyed("`↑ ↓` read · `esc` back")
            yield CodeEditor(source_of(self._file), read_only=True)

    def on_mount(self) -> None:
        editor = self.query_one(CodeEditor)
        editor.mark(self._line)
        self.call_after_refresh(editor.move_cursor, (self._line - 1, 0), center=True)

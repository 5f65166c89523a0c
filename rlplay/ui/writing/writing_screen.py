"""The editor of a writing exercise, beside the answers that its numbers are about."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.timer import Timer
from textual.widgets.text_area import Selection

from rlplay.trace.kinds import SomeSettings
from rlplay.trace.questions import TryCode
from rlplay.ui.format.keyed import keyed
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.session.session import Session
from rlplay.ui.writing.code_editor import CodeEditor
from rlplay.ui.writing.verdict_lines import numbers_table, task_words, verdict_lines

PAUSE = 0.4
"""Seconds without a key after which the lines run."""
KEYS = "`ctrl+t` hint · `ctrl+r` run · `ctrl+z` undo · `esc` close"
SOLVED_KEYS = "`ctrl+g` the engine's own lines · `esc` close"
TRAINS_KEYS = "`ctrl+n` train with yours · `ctrl+g` the engine's own lines · `esc` close"


class WritingScreen(Following[SomeSettings | None]):
    """Runs the learner's lines after every pause and shows where they first differ; the run does not change."""

    HELP = """\
# Write

A few lines of Python of your own, on the batch that is on the screen. They run whenever you stop typing, and are
compared with what the engine computes from the same arguments, number by number.

**✓** all numbers agree, also on a few made-up cases that this batch may not have. **✗** the first number that differs:
the cursor in the panel of the answers goes to its token, and both numbers are shown. If your numbers are those of a
typical mistake, the line below names it.

`torch`, `np` and `math` are there without an import. `print` shows below the result. An endless loop is stopped after
a few seconds, and nothing that you write here changes the run.

`ctrl+t` shows a hint, then another, then the solution. `ctrl+z` takes back what you typed, or the solution. What you
write is kept. After ✓ `ctrl+g` shows where the engine does the same. `ctrl+n` lets the run go on with your function,
where a setting takes one: PPO's clip is the surrogate.
"""
    DEFAULT_CSS = """
    WritingScreen { align: left top; background: transparent; }
    WritingScreen > Vertical { width: 76; height: 1fr; margin: 2 0 0 0; padding: 0; }
    WritingScreen.-huge > Vertical { width: 90; }
    WritingScreen.-medium > Vertical { width: 62; }
    WritingScreen.-narrow > Vertical { width: 1fr; dock: bottom; height: 16; margin: 0; }
    WritingScreen #task { height: auto; max-height: 30%; padding: 0 1; border-bottom: solid $border; }
    WritingScreen.-narrow #task { max-height: 4; border: none; }
    WritingScreen CodeEditor { height: auto; min-height: 8; max-height: 45%; }
    WritingScreen #result { height: 1fr; padding: 0 1; border-top: solid $border; }
    WritingScreen #numbers { margin: 1 0 0 0; }
    WritingScreen.-narrow CodeEditor { height: 1fr; min-height: 4; max-height: 100%; }
    WritingScreen.-narrow #result { height: auto; max-height: 4; }
    WritingScreen.-narrow #numbers { display: none; }
    WritingScreen Static { height: auto; }
    """
    CAPTIONED = False
    AUTO_FOCUS = "CodeEditor"
    SECONDS = 0.0
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r,ctrl+enter", "run", "run the lines now", priority=True),
        Binding("ctrl+t", "hint", "hint, then the solution", priority=True),
        Binding("ctrl+g", "engine", "the engine's own lines", priority=True),
        Binding("ctrl+n", "train", "train with your lines", priority=True),
        Binding("f1", "help", "help", id="help", priority=True),
        Binding("escape", "close", "close", priority=True),
    ]

    def __init__(self, session: Session, point: Callable[[int, int], None]) -> None:
        """`point` puts the cursor of the panels below on a token."""
        super().__init__()
        self.session, self.writing = session, session.writing
        self._point = point
        self._pause: Timer | None = None
        self._update: int | None = None
        self._pointed: object = None
        self._puts = self.writing.puts

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = f"Write · {self.writing.exercise.title}"
            with VerticalScroll(id="task", can_focus=False):
                yield SteadyStatic(id="words")
            yield CodeEditor(self.writing.text)
            with VerticalScroll(id="result", can_focus=False):
                yield SteadyStatic(id="verdict")
                yield SteadyStatic(id="numbers")

    async def on_mount(self) -> None:
        self.query_one(CodeEditor).selection = _first_gap(self.writing.text)
        self._update = self._newest
        await self._ask()
        self.begin()

    @property
    def _newest(self) -> int | None:
        newest = self.session.run.newest
        return None if newest is None else newest.number

    def version(self) -> object:
        """The text, the answer, and for how long there is none."""
        return self.writing.version, self._newest, self._ended, int(self.writing.waited)

    @property
    def _ended(self) -> str:
        if not self.session.has_engine:
            return "A recording has no engine that could run your lines."
        return "" if self.session.failed is None else "The engine has ended: esc, then r to resume."

    def follow(self) -> None:
        """Show the hints, the lines if the solution has come, and what the engine says."""
        writing, editor = self.writing, self.query_one(CodeEditor)
        if writing.puts != self._puts:  # not whenever they differ: what was typed just now is on its way
            self._puts = writing.puts
            if editor.text != writing.text:
                editor.replace(writing.text, (0, 0), editor.document.end)
                editor.move_cursor((0, 0))
        tried = writing.tried
        editor.mark(tried.line if tried is not None and tried.error else 0, wrong=True)
        hints = [f"\nHint: {hint}" for hint in writing.exercise.hints[: writing.help]]
        self.query_one("#words", SteadyStatic).say(task_words("".join([writing.exercise.task, *hints])))
        if writing.help:
            self.query_one("#task").scroll_end(animate=False)
        self.query_one("#verdict", SteadyStatic).say(verdict_lines(writing, self._ended))
        self.query_one("#numbers", SteadyStatic).say(numbers_table(tried))
        panel = self.query_one(Vertical)
        solved = tried is not None and tried.passed
        panel.border_subtitle = keyed((TRAINS_KEYS if writing.exercise.trains else SOLVED_KEYS) if solved else KEYS)
        panel.set_class(solved, "-solved")
        self._show_place()
        if self._newest != self._update:  # other answers: the same lines once more
            self._update = self._newest
            self.run_worker(self._ask(), group="ask")

    def _show_place(self) -> None:
        """Put the cursor on the token of the first difference, once for each answer of the engine."""
        tried = self.writing.tried
        if tried is None or tried is self._pointed or tried.first is None:
            return
        self._pointed = tried
        newest = self.session.run.newest
        sampled = None if newest is None else newest.sampled
        if tried.first.completion is not None and sampled is not None and tried.first.completion < len(sampled.group):
            self.session.back_to_live()
            self._point(tried.first.completion, tried.first.token)

    @on(CodeEditor.Changed)
    def _typed(self) -> None:
        text = self.query_one(CodeEditor).text
        asked = self.writing.tried is not None or self.writing.waited > 0
        if text == self.writing.text and self._pause is None and asked:
            return
        self.writing.edit(text)
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(PAUSE, self._ask)

    async def _ask(self) -> None:
        if self._pause is not None:
            self._pause.stop()
            self._pause = None
        question = None if self._ended else self.writing.ask()
        if isinstance(question, TryCode):
            await self.session.source.send(question)
        self._keep()

    def _keep(self) -> None:
        with contextlib.suppress(OSError):  # nothing can be kept here
            self.writing.keep()

    async def action_run(self) -> None:
        """Run the lines now."""
        await self._ask()

    async def action_hint(self) -> None:
        """Show the next hint, or the solution, which runs at once."""
        before = self.writing.text
        self.writing.more_help()
        self.look(at_once=True)
        if self.writing.text != before:
            await self._ask()

    def action_engine(self) -> None:
        """Show where the engine does the same, once the exercise is solved."""
        if not self._may_go_on():
            return
        from rlplay.ui.writing.engine_lines_screen import EngineLinesScreen

        self.app.push_screen(EngineLinesScreen(*self.writing.exercise.engine))

    def action_train(self) -> None:
        """Let the next updates train with the learner's function, where a setting takes it."""
        if not self.writing.exercise.trains:
            self.app.notify("No setting takes this function.")
        elif self._may_go_on():
            try:
                name, value = self.writing.own_setting()
            except OSError as error:
                self.app.notify(f"Your lines cannot be written to a file: {error.strerror}", severity="warning")
                return
            self._keep()
            self.dismiss({name: value})

    def _may_go_on(self) -> bool:
        """Whether these lines agree with the engine; says so if they do not."""
        if self.writing.tried is None or not self.writing.tried.passed:
            self.app.notify("First your lines must agree with the engine: ctrl+t gives a hint.")
            return False
        return True

    def action_close(self) -> None:
        """Close; the lines are kept."""
        self._keep()
        self.dismiss(None)


def _first_gap(code: str) -> Selection:
    """Where to begin: the dots of a starter, which the first key replaces, else the end."""
    lines = code.split("\n")
    for row, line in enumerate(lines):
        if line.strip() == "...":
            return Selection((row, len(line) - 3), (row, len(line)))
    return Selection.cursor((len(lines) - 1, len(lines[-1])))

"""The learning map: held-out prompts against evaluations, sorted by when they flip; and one answer through time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar

from rich.cells import set_cell_size
from rich.segment import Segment
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from rlplay.trace.learning import KINDS, Course, courses
from rlplay.trace.records import Evaluated
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.text import visible
from rlplay.ui.format.numbers import plain
from rlplay.ui.session.session import Session
from rlplay.ui.widgets.lines import Lines
from rlplay.ui.widgets.narrator import keyed
from rlplay.ui.widgets.over_another import Dialogue
from rlplay.ui.widgets.steady_static import SteadyStatic

_SHADES = "░▒▓█"
"""From the lowest mean reward of the run to the highest."""
_SECONDS = 0.7
"""Between two evaluations while the answer is played."""
_WORDS = 18
"""Cells for what became of a prompt."""
_NOTHING = "No held-out answers are on record yet."


class LearningMap(Lines):
    """A line for each held-out prompt, a cell for each evaluation."""

    EMPTY = _NOTHING
    HELP = """\
# Learning map

A line for each held-out prompt, a column for each evaluation. Every evaluation asks the same prompts with the same
random numbers, so a change comes from the policy. The fuller a cell, the higher the mean reward of the answers.

A prompt counts as right if its mean reward is at least half-way between the lowest and the highest of the run.
**Learned**: wrong at first and right at last; **forgotten**: right at first and wrong at last. The update beside it is
the one since which that holds. The frame counts all four kinds.

`↑` and `↓` choose a prompt; its first answer and the one at the chosen evaluation are below. `[` and `]` go through the
evaluations, `space` plays them. `esc` closes.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "one up", show=False),
        Binding("down", "move(1)", "one down", show=False),
        Binding("pageup", "move(-10)", "page up", show=False),
        Binding("pagedown", "move(10)", "page down", show=False),
    ]

    class Moved(Message):
        """The cursor moved to another prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.updates: list[int] = []
        self.courses: list[Course] = []
        self.cursor = 0
        self.at = 0  # the chosen evaluation

    def show(self, updates: list[int], found: list[Course]) -> None:
        """Show the courses over the evaluations after these `updates`; the newest is chosen."""
        self.updates, self.courses = updates, found
        self.cursor, self.at = min(self.cursor, max(len(found) - 1, 0)), max(len(updates) - 1, 0)
        self.rebuild()

    def choose(self, at: int) -> None:
        """Choose an evaluation."""
        self.at = at
        self.recolour()

    def count(self) -> int:
        """The number of prompts, with the line of the updates above them."""
        return len(self.courses) + bool(self.courses)

    def line(self, row: int) -> Iterable[Segment]:
        """The updates, or a prompt with its cells."""
        width = self.scrollable_content_region.width
        cell = max((len(str(update)) for update in self.updates), default=1) + 1
        fitting = max((width - _WORDS) // 2 // cell, 2)
        step = -(-len(self.updates) // fitting)  # of many evaluations, every step-th
        chosen = [*range(0, len(self.updates) - 1, step), len(self.updates) - 1]
        room = width - _WORDS - cell * len(chosen) - 3
        if row == 0:
            yield Segment("  " + "held out after update".ljust(room), self.palette.muted)
            for at in chosen:
                style = self.palette.key if at == self.at else self.palette.muted
                yield Segment(str(self.updates[at]).rjust(cell), style)
            return
        course, here = self.courses[row - 1], row - 1 == self.cursor
        yield Segment("▸ " if here else "  ", self.palette.key)
        beside = "".join(f" · {visible(str(value))}" for value in list(course.columns.values())[:1])
        text = set_cell_size(visible(course.prompt), max(room - len(beside) - 1, 8))
        yield Segment(set_cell_size(text + beside, room), self.palette.strong if here else self.palette.text)
        for at in chosen:
            yield Segment(self._shade(course.rewards[at]).rjust(cell), self.palette.accent)
        style = {"learned": self.palette.good, "forgotten": self.palette.warning}.get(course.kind, self.palette.muted)
        yield Segment("  " + course.kind + (f" at {course.flip}" if course.flip is not None else ""), style)

    def _shade(self, reward: float) -> str:
        means = [mean for course in self.courses for mean in course.rewards if math.isfinite(mean)]
        if not math.isfinite(reward):
            return "·"
        low, high = min(means), max(means)
        share = (reward - low) / (high - low) if high > low else 0.0
        return _SHADES[min(int(share * len(_SHADES)), len(_SHADES) - 1)]

    def action_move(self, step: int) -> None:
        """Choose another prompt."""
        if self.courses:
            before, self.cursor = self.cursor, max(0, min(self.cursor + step, len(self.courses) - 1))
            self.redraw(before + 1, self.cursor + 1)
            self.reveal(self.cursor if self.cursor == 0 else self.cursor + 1)
            self.post_message(self.Moved())


class LearningScreen(Dialogue[None]):
    """The map, and below it the answers to the prompt under the cursor: the first, and the chosen one."""

    DEFAULT_CSS = """
    LearningScreen { align: center middle; background: $background 70%; }
    LearningScreen > Vertical {
        width: 130; max-width: 100%; height: 90%; padding: 0 1;
        background: $background; border: round $accent; border-title-color: $accent; border-title-style: bold;
        border-subtitle-color: $text-muted;
    }
    LearningScreen LearningMap { height: 1fr; }
    LearningScreen SteadyStatic { height: auto; max-height: 9; border-top: solid $border; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "step(-1)", "evaluation before"),
        Binding("right_square_bracket", "step(1)", "evaluation after"),
        Binding("space", "play", "play"),
        Binding("escape,q,E", "dismiss", "close"),
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._read_before: list[int] | None = None
        self._playing = False

    def compose(self) -> ComposeResult:
        with Vertical():
            yield LearningMap()
            yield SteadyStatic()

    def on_mount(self) -> None:
        self.query_one(LearningMap).focus()
        self.query_one(Vertical).border_title = "Learning map"
        self.follow()
        self.set_interval(_SECONDS, self._tick)

    def follow(self) -> None:
        """Read the evaluations again if there are others."""
        updates = self._session.history.series("eval_reward")[0]
        if updates == self._read_before:
            return
        self._read_before = list(updates)
        try:
            read = [self._session.source.held_out(update) for update in updates]
        except RunFileError as error:
            self.query_one(SteadyStatic).say(Content.styled(visible(str(error)), "$warning"))
            return
        known: dict[int, Evaluated] = {each.update: each for each in read if each is not None}
        self.query_one(LearningMap).show(*courses(list(known.values()))[::2])
        self._tell()

    def _tick(self) -> None:
        self.follow()
        shown = self.query_one(LearningMap)
        if self._playing and shown.at + 1 < len(shown.updates):
            shown.choose(shown.at + 1)
            self._tell()
        else:
            self._playing = False

    def action_step(self, step: int) -> None:
        """Show the answer at the evaluation before or after."""
        shown = self.query_one(LearningMap)
        if shown.updates:
            shown.choose(max(0, min(shown.at + step, len(shown.updates) - 1)))
            self._tell()

    def action_play(self) -> None:
        """Go through the evaluations from the first, or stop."""
        self._playing = not self._playing
        if self._playing:
            self.query_one(LearningMap).choose(0)
            self._tell()

    @on(LearningMap.Moved)
    def _tell(self) -> None:
        shown, panel = self.query_one(LearningMap), self.query_one(Vertical)
        panel.border_subtitle = keyed("`esc` close")
        if not shown.courses:
            self.query_one(SteadyStatic).say(Content(_NOTHING))
            return
        counts = {kind: sum(course.kind == kind for course in shown.courses) for kind in KINDS}
        panel.border_title = "Learning map · " + " · ".join(f"{kind} {count}" for kind, count in counts.items())
        panel.border_subtitle = keyed("`↑↓` prompt · `[` `]` evaluation · `space` play · `esc` close")
        course = shown.courses[shown.cursor]
        lines = [Content.styled(visible(course.prompt), "$text-muted")]
        lines += [self._answer(course, at) for at in dict.fromkeys((0, shown.at))]
        self.query_one(SteadyStatic).say(Content("\n").join(lines))

    def _answer(self, course: Course, at: int) -> Content:
        update = self.query_one(LearningMap).updates[at]
        when = f"after update {update}" if update else "before training"
        return Content.assemble(
            (f"{when}  ", "$primary"), (f"{plain(course.rewards[at])}  ", "bold"), visible(course.answers[at][0])
        )

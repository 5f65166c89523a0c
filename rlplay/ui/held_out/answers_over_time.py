"""The held-out prompts over the evaluations, sorted by when they flip, and the answers to one of them through time."""

from __future__ import annotations

import math
from collections import Counter
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

from rlplay.trace.evaluations import KINDS, Course, LearningCourses, courses
from rlplay.trace.text import visible
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.number_cells import plain
from rlplay.ui.format.shown_text import column_text
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.line_panel import LinePanel
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.session.reading import next_evaluation
from rlplay.ui.session.session import Session

_TITLE = "Answers over time"
_SECONDS = 0.7
"""Between two evaluations while the answer is played."""
_WORDS = 18
"""Cells for what became of a prompt."""
_SHADES, _UNKNOWN = "░▒▓█", "·"
"""From the lowest mean reward of the run to the highest; no answer has a reward."""
_NOTHING = Content("No held-out answers are on record yet.")


class PromptCourses(LinePanel):
    """A line for each held-out prompt, a cell for each evaluation."""

    EMPTY = str(_NOTHING)
    HELP = """\
# Answers over time

A line for each held-out prompt, a column for each evaluation. Every evaluation asks the same prompts with the same
random numbers, so a change comes from the policy. The fuller a cell, the higher the mean reward of the answers.

A prompt counts as right if its mean reward is at least half-way between the lowest and the highest of the run.
**Learned**: wrong at first and right at last; **forgotten**: right at first and wrong at last. The update beside it is
the one since which that holds. **Wavered**: at last as at first, but not in between. **Never** and **always** mean at
every evaluation. The frame counts the kinds.

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
        self.learned, self._ends = courses([]), (0.0, 0.0)
        self.cursor = 0
        self.at = 0  # the chosen evaluation

    @property
    def updates(self) -> list[int]:
        """The updates of the evaluations."""
        return self.learned.updates

    @property
    def courses(self) -> list[Course]:
        """The prompts with their answers."""
        return self.learned.courses

    def show(self, learned: LearningCourses, update: int | None) -> None:
        """Show what became of the prompts, with the evaluation after `update` chosen, or before; None: the newest."""
        self.learned, self._ends = learned, learned.ends
        self.cursor = min(self.cursor, max(len(learned.courses) - 1, 0))
        before = sum(update is None or each <= update for each in learned.updates)
        self.at = max(before - 1, 0)
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
                style = self.palette.mark if at == self.at else self.palette.muted
                yield Segment(str(self.updates[at]).rjust(cell), style)
            return
        course, here = self.courses[row - 1], row - 1 == self.cursor
        yield Segment("▸ " if here else "  ", self.palette.mark)
        beside = "".join(f" · {visible(column_text(value))}" for value in list(course.columns.values())[:1])
        text = set_cell_size(visible(course.prompt), max(room - len(beside) - 1, 8))
        yield Segment(set_cell_size(text + beside, room), self.palette.strong if here else self.palette.text)
        for at in chosen:
            yield Segment(self._shade(course.rewards[at]).rjust(cell), self.palette.strong)
        style = {"learned": self.palette.good, "forgotten": self.palette.warning}.get(course.kind, self.palette.muted)
        yield Segment("  " + course.kind + (f" at {course.flip}" if course.flip is not None else ""), style)

    def _shade(self, reward: float) -> str:
        low, high = self._ends
        if not math.isfinite(reward):
            return _UNKNOWN
        share = (reward - low) / (high - low) if high > low else 0.0
        return _SHADES[min(int(share * len(_SHADES)), len(_SHADES) - 1)]

    def action_move(self, step: int) -> None:
        """Choose another prompt."""
        if self.courses:
            before, self.cursor = self.cursor, max(0, min(self.cursor + step, len(self.courses) - 1))
            self.redraw(before + 1, self.cursor + 1)
            self.reveal(self.cursor if self.cursor == 0 else self.cursor + 1)
            self.post_message(self.Moved())


class LearningScreen(Following[None]):
    """The map, and below it the answers to the prompt under the cursor: the first, and the chosen one."""

    DEFAULT_CSS = """
    LearningScreen > Vertical { width: 130; height: 90%; }
    LearningScreen PromptCourses { height: 1fr; }
    LearningScreen SteadyStatic { height: auto; max-height: 9; border-top: solid $border; }
    """
    SECONDS = 0.5
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "step(-1)", "evaluation before"),
        Binding("right_square_bracket", "step(1)", "evaluation after"),
        Binding("space", "play", "play"),
        Binding("escape,q", "dismiss", "close"),
    ]

    def __init__(self, session: Session, update: int | None = None) -> None:
        """The evaluation after `update` is chosen at first; None: the newest."""
        super().__init__()
        self._session = session
        self._update = update
        self._playing = False
        self._shown: object = None  # the version of the evaluations on the screen

    def compose(self) -> ComposeResult:
        with Vertical():
            yield PromptCourses()
            yield SteadyStatic()

    def on_mount(self) -> None:
        self.query_one(PromptCourses).focus()
        self.query_one(Vertical).border_title = _TITLE
        self.begin()
        self.set_interval(_SECONDS, self._play_on)

    def version(self) -> object:
        """The evaluations that are read or missing."""
        evaluations = self._session.run.evaluations
        return evaluations.version, evaluations.stale

    def follow(self) -> None:
        """Read the evaluations that are missing, and show all if there are others than before."""
        while next_evaluation(self._session):
            pass
        evaluations = self._session.run.evaluations
        shown = evaluations.version, evaluations.problem
        if shown != self._shown:  # showing them chooses the evaluation anew
            self._shown = shown
            self.query_one(PromptCourses).show(evaluations.learned, self._update)
            self._tell()

    def _play_on(self) -> None:
        shown = self.query_one(PromptCourses)
        if self._playing and shown.at + 1 < len(shown.updates):
            shown.choose(shown.at + 1)
            self._tell()
        else:
            self._playing = False

    def action_step(self, step: int) -> None:
        """Show the answer at the evaluation before or after."""
        shown = self.query_one(PromptCourses)
        if shown.updates:
            shown.choose(max(0, min(shown.at + step, len(shown.updates) - 1)))
            newest = shown.at == len(shown.updates) - 1
            self._update = None if newest else shown.updates[shown.at]
            self._tell()

    def action_play(self) -> None:
        """Go through the evaluations from the first, or stop."""
        self._playing = not self._playing
        if self._playing:
            self.query_one(PromptCourses).choose(0)
            self._tell()

    @on(PromptCourses.Moved)
    def _tell(self) -> None:
        shown, panel = self.query_one(PromptCourses), self.query_one(Vertical)
        panel.border_subtitle = keyed("`esc` close")
        if not shown.courses:
            problem = self._session.run.evaluations.problem
            self.query_one(SteadyStatic).say(Content.styled(visible(problem), "$warning") if problem else _NOTHING)
            return
        counts = Counter(course.kind for course in shown.courses)
        panel.border_title = " · ".join([_TITLE, *(f"{kind} {counts[kind]}" for kind in KINDS if counts[kind])])
        panel.border_subtitle = keyed("`↑↓` prompt · `[` `]` evaluation · `space` play · `esc` close")
        course = shown.courses[shown.cursor]
        lines = [Content.styled(visible(course.prompt), "$text-muted")]
        lines += [self._answer(course, at) for at in dict.fromkeys((0, shown.at))]
        self.query_one(SteadyStatic).say(Content("\n").join(lines))

    def _answer(self, course: Course, at: int) -> Content:
        update = self.query_one(PromptCourses).updates[at]
        when = f"after update {update}" if update else "before training"
        return Content.assemble(
            (f"{when}  ", "bold $foreground"),
            (f"{plain(course.rewards[at])}  ", "bold"),
            visible(course.answers[at][0]),
        )

"""The comparison of one run at two of its updates: the tokens of the prompts that both trained on."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from rlplay.trace.moments import shared_groups
from rlplay.trace.text import visible
from rlplay.ui.compare.compare_screen import VIEW_KEYS, VIEW_NAMES, CompareScreen, DisplayOptions
from rlplay.ui.compare.two_runs import MomentPair
from rlplay.ui.parts.panel_messages import CursorMoved
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.plot.curve import FIRST
from rlplay.ui.plot.several_runs import RUN_STYLES, RunStyle, Shown
from rlplay.ui.session.session import Session

_KEYS = f"`c` colour  `x` largest  `p` view  {VIEW_NAMES}  `?` help  `esc` close"


class CompareMomentsScreen(CompareScreen, inherit_bindings=False):
    """A is the earlier update, B the later one."""

    HELP = """\
# Compare

One run at two of its updates: **A** the earlier, **B** the later. Only prompts that both updates trained on are shown,
each on the same line. Their answers were sampled with different random numbers. The third line shows the settings that
differ.

The cursor is in both. Below are the distributions at the cursor. They are comparable only if the words before the token
are the same; the frame says whether they are.

`B`, `T`, `P` and `E` put belief river, answer tree, pull map and learning map in place of the curves; the same key
brings the curves back. Tree and pull map are of the two updates. River and learning map are of the whole run: both
panels show the same, and the mark is at the update of each.

`p` enlarges the answers, the token or the curves of the run in turn.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "perform('lens')", "colour", id="lens"),
        Binding("C", "perform('colours')", "all colours", id="colours"),
        Binding("m", "perform('signs')", "marks", id="signs"),
        Binding("x", "largest", "largest", id="largest"),
        Binding("y", "perform('copy')", "copy", id="copy"),
        Binding("w", "perform('shot')", "save the view", id="shot"),
        Binding("p", "panels", "view", id="panel"),
        *VIEW_KEYS,
        Binding("question_mark,f1", "help", "help", id="help"),
        Binding("escape,b,q", "dismiss", "close"),
    ]

    def __init__(self, display: DisplayOptions, session: Session, before: int, after: int, group: int) -> None:
        """Compare updates `before` and `after`, beginning at prompt `group` of the later one."""
        super().__init__(display, [session, session], lambda *_: None)
        self.runs = MomentPair(session, before, after)
        self._group = group

    def on_mount(self) -> None:
        one, other = self.runs.updates()
        if one is None or other is None or one.sampled is None:
            return
        groups = shared_groups(one, other)
        self.tokens[0].groups = {mine: its for its, mine in groups.items()}
        self.tokens[1].groups = groups
        first = one.sampled.group.tolist().index(groups[self._group])
        self.call_after_refresh(self._point, first)

    def _point(self, completion: int) -> None:
        """Put both cursors on the first token of an answer of the earlier update, and of its counterpart."""
        self.tokens[0].point(completion, 0)
        self.tokens[0].post_message(CursorMoved(completion, 0))

    def _shown(self) -> Shown:
        """The curves of the one run."""
        return [(RunStyle("", FIRST, "line"), self.sessions[0].run.history)]

    @property
    def keys(self) -> str:
        """The last line."""
        return _KEYS

    def _head(self) -> None:
        lines = [
            Content.assemble((f"{style.mark}  ", f"bold {style.ink}"), (f"update {number}", "bold"))
            for style, number in zip(RUN_STYLES, self.runs.numbers, strict=False)
        ]
        there = " · ".join(self.runs.differences())
        lines.append(Content(visible(f"B differs in: {there}" if there else "The settings are the same.")))
        self.query_one("#runs", SteadyStatic).say(Content("\n").join(lines))

"""Before and after: which answers of a run got better or worse between two of its updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.text import visible
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.shortcuts import LIST_KEYS
from rlplay.ui.format.typed_number import TypedNumber
from rlplay.ui.moments.answer_pairs import changed_between, moments, sections
from rlplay.ui.moments.two_moments import AskedList, BothAnswers
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.session.session import Session

Compare = Callable[[int, int, int], None]
"""Opens the comparison of the tokens of two updates, at a group of the later one."""


class MomentsScreen(Following[None]):
    """Follows the run while it is open: evaluations may come, and updates may be discarded."""

    HELP = """\
# Before and after

The same prompts at two moments of this run, first those whose mean reward changed, the largest fall first;
`o` puts the largest rise first. ▼ worse, ▲ better, = same reward. In a narrow terminal each line has the answer in
place of the prompt, as in "The answer is 4. → 5."

**Held-out prompts** are never trained on, and every evaluation asks them with the same random numbers, so a change
comes from the policy. Each moment has its newest evaluation, which the heading names. The other prompts are those that
both updates trained on. Their answers were sampled with different random numbers, so a change may be chance.

Below are both answers of the selected prompt; the beginning that they share is dim. `enter` gives them more room. `b`
compares the tokens and probabilities of trained prompts. `[` and `]` move the later moment. A number is the earlier
update: `3` compares update 3, `0` the start.
"""

    DEFAULT_CSS = """
    MomentsScreen > Vertical { width: 96%; max-width: 220; height: 94%; }
    MomentsScreen SteadyStatic { height: auto; max-height: 3; color: $text-muted; }
    MomentsScreen AskedList { height: auto; max-height: 60%; }
    MomentsScreen BothAnswers { height: 1fr; }
    MomentsScreen.-tall AskedList { max-height: 75%; }
    MomentsScreen.-reading AskedList { height: 4; }
    MomentsScreen.-none > Vertical { height: auto; }
    MomentsScreen.-none BothAnswers { display: none; }
    """
    SECONDS = 0.5
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "read", "more room for the answers, or less"),
        Binding("pageup", "leaf(-1)", "page up", show=False),
        Binding("pagedown", "leaf(1)", "page down", show=False),
        Binding("o", "sort", "sort", id="sort"),
        Binding("left_square_bracket", "move(-1)", "older update", id="older"),
        Binding("right_square_bracket", "move(1)", "newer update", id="newer"),
        *(Binding(str(digit), f"type({digit})", "the update of this number", show=False) for digit in range(10)),
        Binding("b", "compare", "compare", id="compare"),
        Binding("question_mark,f1", "help", "help", id="help"),
        Binding("escape,q,O", "dismiss", "close"),
        *LIST_KEYS,
    ]

    def __init__(self, session: Session, before: int, after: int, compare: Compare) -> None:
        """Compare the answers at update `before` with those at `after`; `compare` compares their tokens."""
        super().__init__()
        self._session, self._compare = session, compare
        self.before, self.after = before, after
        self._best_first = False
        self._typed = TypedNumber()

    def compose(self) -> ComposeResult:
        with Vertical():
            yield SteadyStatic()
            yield AskedList()
            yield BothAnswers()

    def on_mount(self) -> None:
        self.query_one(AskedList).focus()
        self.begin()

    def version(self) -> object:
        """Both moments, the evaluations up to them, and the order."""
        run = self._session.run
        after = min(self.after, run.finished)
        evaluated = [at for at in run.history.series("eval_reward")[0] if at <= after]
        return min(self.before, after), after, evaluated, run.rewinds, self._best_first

    def follow(self) -> None:
        """Read both moments again."""
        session = self._session
        self.after = min(self.after, session.run.finished)
        self.before = min(self.before, self.after)
        try:
            found = sections(session, self.before, self.after)
        except RunFileError as error:
            self.query_one(SteadyStatic).say(Content.styled(visible(str(error)), "$warning"))
            return
        changed = changed_between(session, self.before, self.after)
        between = f"Changed in between: {changed}." if changed else "The settings are the same at both updates."
        self.query_one(SteadyStatic).say(Content(visible(between)))
        self.set_class(not any(section.asked for section in found), "-none")
        self.query_one(AskedList).show(found, self._best_first)
        self._tell()

    @on(AskedList.Moved)
    def _tell(self) -> None:
        """Show the answers to the prompt under the cursor."""
        panel, asked = self.query_one(Vertical), self.query_one(AskedList).asked
        panel.border_title = f"Before and after · {_called(self.before)} → {_called(self.after)}"
        trained = asked is not None and asked.after.group is not None
        room = "less" if self.has_class("-reading") else "read"
        tokens = " · `b` tokens" if trained else ""
        of_prompts = "" if asked is None else f"`enter` {room}{tokens} · `o` sort · "
        panel.border_subtitle = keyed(f"{of_prompts}`0-9` `[ ]` moments · `?` help · `esc` close")
        self.query_one(BothAnswers).show(asked, (_called(self.before), _called(self.after)))

    def action_read(self) -> None:
        """Give the answers more room than the list, or less."""
        self.toggle_class("-reading")
        listed = self.query_one(AskedList)
        self.call_after_refresh(listed.action_put, listed.cursor)

    def action_leaf(self, step: int) -> None:
        """A page of the answers while they have the room, else of the list."""
        listed, answers = self.query_one(AskedList), self.query_one(BothAnswers)
        if self.has_class("-reading"):
            answers.scroll_relative(y=step * max(answers.size.height - 1, 1), animate=False)
        else:
            listed.action_move(step * max(listed.size.height - 1, 1))

    def action_sort(self) -> None:
        """The largest fall of the reward first, or the largest rise."""
        self._best_first = not self._best_first
        self.look(at_once=True)
        self.query_one(AskedList).action_put(0)

    def action_move(self, step: int) -> None:
        """Take the evaluation or the kept update before or after as the later moment."""
        beyond = [at for at in moments(self._session) if (at - self.after) * step > 0 and at > self.before]
        if beyond:
            self.after = min(beyond) if step > 0 else max(beyond)
            self.look(at_once=True)
        else:
            self.notify("There is no earlier moment." if step < 0 else "There is no later moment.")

    def action_type(self, digit: int) -> None:
        """Take the update whose number is typed as the earlier moment."""
        self.before = self._typed.add(digit, self.before, self.after)
        self.look(at_once=True)

    def action_compare(self) -> None:
        """Compare the tokens of the prompt under the cursor, if both updates trained on it."""
        asked = self.query_one(AskedList).asked
        if asked is None or asked.after.group is None:
            self.notify("Held-out answers are kept as text; b compares the tokens of prompts trained on in both.")
        else:
            self._compare(self.before, self.after, asked.after.group)


def _called(number: int) -> str:
    return f"update {number}" if number else "start"

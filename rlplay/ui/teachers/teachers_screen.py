"""Who taught it that? The tokens of an update coloured by what each did to another token, and a list of the answers."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content

from rlplay.link.messages import EndProbe
from rlplay.trace.chosen_answers import tokens_of
from rlplay.trace.questions import Prefix
from rlplay.trace.teachers import AnyTeaching, Taught, Teach, TeachCourse
from rlplay.trace.text import visible
from rlplay.trace.update import Update
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.step_word import worded
from rlplay.ui.main.playground import Playground
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.panel_messages import CursorMoved, Perform
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.session.subjects import Subject
from rlplay.ui.teachers.captions import ASKING, COURSE, empty, head, key_line, sums, test_lines, why_not
from rlplay.ui.teachers.course_list import CourseList
from rlplay.ui.teachers.row_list import Chosen
from rlplay.ui.teachers.taught_map import TaughtMap
from rlplay.ui.teachers.teacher_list import TeacherList
from rlplay.ui.teachers.teacher_rows import AnswerRow, Row, UpdatesRow, strongest, teacher_rows
from rlplay.ui.teachers.words import named, sentence

_FRAME = 6
"""Cells of a line that are not for words."""
VIEWS = ("list", "map", "course")
_SHOWN = {"list": "TeacherList", "map": "TaughtMap", "course": "CourseList"}


class TeachersScreen(Following[None]):
    """Asks the engine about the subject of `session.teachers`, and follows its answers."""

    HELP = """\
# Who taught it that?

A token's probability moved in an update. All tokens share the weights, so every token of the batch had a part in it.

**Share**: how far the gradient of one token moved the log-probability of the token that you asked about, in nats.
Blue tokens raised it, orange ones lowered it. Shares add up: all of this batch, plus what **earlier** updates still do
through the optimizer's momentum, plus the **rest** (weight decay, entropy bonus, KL), is what the step was
**predicted** to do. Prediction is of first order, so the **measured** move differs, and more so the longer the step.

**Without them**: a share is not what would have happened without an answer. `enter` marks answers, `ctrl+a` those that
the sentence names, and `backspace` takes the update once more with their credit 0, all else as it was. Adam divides
every step by the size of the gradients that are left, so the others usually make up for part of what is missing. `b`
keeps the update without them as a branch, from which training goes on beside this run.

`tab` goes from the answers to the tokens and to the whole run by update. `enter` on an earlier update opens its
answers. `← →` ask about another token in the same place. `x` and `X` go to what raised and what lowered it most.
"""
    DEFAULT_CSS = """
    TeachersScreen > Vertical { width: 100%; height: 100%; }
    TeachersScreen SteadyStatic { height: auto; padding: 0 1; }
    TeachersScreen Horizontal { height: 1fr; }
    TeachersScreen #head { margin-bottom: 1; }
    TeachersScreen #sums { min-height: 2; border-top: solid $border; }
    TeachersScreen TaughtMap { width: 1fr; height: 1fr; }
    TeachersScreen TeacherList { width: 1fr; height: 1fr; }
    TeachersScreen CourseList { width: 1fr; height: 1fr; display: none; }
    TeachersScreen.-course CourseList { display: block; }
    TeachersScreen.-course TeacherList { display: none; }
    TeachersScreen.-narrow {
        TaughtMap { display: none; }
        #head { margin-bottom: 0; }
    }
    TeachersScreen.-narrow.-map {
        TaughtMap { display: block; }
        TeacherList { display: none; }
    }
    """
    SECONDS = 0.0
    AUTO_FOCUS = "TeacherList"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "turn", "next view", priority=True),
        Binding("left", "instead(-1)", "candidate before"),
        Binding("right", "instead(1)", "candidate after"),
        Binding("enter", "choose", "mark the answer, or open the update"),
        Binding("ctrl+a", "mark_named", "mark the answers that the sentence names"),
        Binding("backspace", "take_away", "take the update once more without the marked answers"),
        Binding("x", "strongest(False)", "largest", id="largest"),
        Binding("X", "strongest(True)", "smallest", id="smallest"),
        Binding("b", "branch", "compare: branch from it", id="compare"),
        Binding("c", "colour", "colour", id="lens"),
        Binding("m", "signs", "marks", id="signs"),
        Binding("left_square_bracket", "update(-1)", "older update", id="older"),
        Binding("right_square_bracket", "update(1)", "newer update", id="newer"),
        Binding("question_mark,f1", "help", "help", id="help"),
        Binding("escape", "back", "back"),
        Binding("q,Y", "dismiss", "close"),
    ]

    def __init__(
        self, play: Playground, subject: Subject | Prefix, update: int, without: frozenset[int] = frozenset()
    ) -> None:
        """What moved `subject` in `update`: a whole answer if it is a prefix in words. It is tested `without` these."""
        super().__init__()
        self._play, self.session, self.teachers = play, play.session, play.session.teachers
        self._first: tuple[Subject | Prefix, int] = subject, update
        self._without = without
        self.tokens, self.list, self.course = TaughtMap(), TeacherList(), CourseList()
        self.tokens.step_word = self.session.step_word
        self.view = VIEWS[0]
        self._signs = False
        self._rows: list[Row] = []
        self._made: tuple[Taught | None, Update | None] = None, None
        self._found: tuple[object, Update | None] = None, None
        self._why, self._named = "", frozenset[int]()  # a sentence, and the answers that it names
        self._said = ""  # about the token that `x` has found

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "Who taught it that?"
            yield SteadyStatic(id="head")
            with Horizontal():
                yield self.tokens
                yield self.list
                yield self.course
            yield SteadyStatic(id="sums")

    async def on_mount(self) -> None:
        self.teachers.at(self.session.run.rewinds)
        subject, update = self._first
        if isinstance(subject, Prefix):
            await self.session.source.send(self.teachers.spell(subject, update))
        else:
            await self._ask(self.teachers.about(subject, update))
        if self._without and (found := self.session.run.find(update)) is not None:
            self.teachers.mark(self._without - self.teachers.marked)
            await self._ask(self.teachers.take_away(tokens_of(found, self._without)))
        self.begin()

    def on_unmount(self) -> None:
        """Nobody waits for an answer any more."""
        if (question := self.teachers.cancel()) is not None:
            self.app.call_later(self.session.source.send, question)

    async def _ask(self, question: AnyTeaching | EndProbe | None) -> None:
        self.session.colour_shares()
        if question is not None:
            await self.session.source.send(question)
        self.look(at_once=True)

    # What is shown

    def version(self) -> object:
        """The engine's answers, the run, and what the user looks at."""
        session = self.session
        alive = session.source.live and session.failed is None
        return self.teachers.version, session.run.rewinds, alive, self.view, self._signs, self._said, self.size

    def follow(self) -> None:
        """Show what is known."""
        teachers = self.teachers
        if isinstance(self._first[0], Prefix) and teachers.subject is not None:  # it has been spelled
            self._first = teachers.subject, teachers.update
            self.call_later(self._ask, teachers.about(*self._first))
        update, taught = self._update(), teachers.taught
        if taught is not self._made[0] or update is not self._made[1]:
            self._made = taught, update
            self._arrange(taught, update)
        ended, course = why_not(self.session) if self.session.failed is not None else "", teachers.course
        if not (ended or teachers.stopped or teachers.asked or teachers.subject is None):
            self.call_later(self._ask_on)
        self._keys()
        self._name_lists()
        self.query_one("#head", SteadyStatic).say(head(teachers, self._why, self.size.width - _FRAME))
        self.list.tell(self._rows, update, self._marked, empty(teachers, ASKING, ended))
        moves = [] if course is None else course.moves
        self.course.tell(moves, teachers.update, empty(teachers, COURSE, ended))
        self._tokens(update)
        self.query_one("#sums", SteadyStatic).say(sums(taught, self._said, self._tested()))

    def _tested(self) -> list[Content]:
        """About the marked answers, or how to mark those that did most."""
        taught, update = self._made
        if taught is None or update is None:
            return []
        if not self._marked:
            return [keyed("`ctrl+a` marks the answers that the sentence names, to test it")] * bool(
                self._named and not self._said
            )
        return test_lines(self.teachers, taught, self.teachers.away(tokens_of(update, self._marked)))

    def _update(self) -> Update | None:
        """The update whose tokens are looked at, read once."""
        key = self.teachers.by, self.session.run.rewinds
        if self._found[0] != key:
            self._found = key, self.session.run.find(self.teachers.by) if self.teachers.by else None
        return self._found[1]

    def _name_lists(self) -> None:
        """Say what the lists are of."""
        at, subject = self.teachers, self.teachers.subject
        name = "" if subject is None else subject.name
        self.list.caption(Content(f"Answers of update {at.by} · what they did to {name}"), Content(""))
        self.course.caption(Content(f"The whole run · what each update did to {name}"), Content(""))

    def _arrange(self, taught: Taught | None, update: Update | None) -> None:
        subject, self._rows, self._why, self._named = self.teachers.subject, [], "", frozenset()
        self.tokens.begin()
        self.teachers.colour(update)
        if taught is None or update is None or update.sampled is None or subject is None:
            return
        if len(taught.shares) == update.tokens:
            own = subject.completion if subject.of == update.number else None
            self._rows = teacher_rows(taught, update, own)
            if taught.by == taught.update:
                self._why, self._named = sentence(taught, update, subject), named(taught, update)

    @property
    def _marked(self) -> frozenset[int]:
        return self.teachers.marked if self.teachers.by == self.teachers.update else frozenset()

    def _tokens(self, update: Update | None) -> None:
        kind = self.session.settings_of(update).kind
        self.tokens.tell(update, self._rows, kind, self.teachers.lens, self._signs)
        if update is not None and update.sampled is not None:
            self.tokens.steer(update, self.list.chosen, again=False)

    def _keys(self) -> None:
        run, room = self.view == "course", self.size.width - _FRAME
        line = key_line(self.teachers, run, bool(self._marked), self.session.cannot, room)
        self.query_one(Vertical).border_subtitle = keyed(worded(line, self.session.step_word))

    # Keys

    async def action_turn(self) -> None:
        """Show the answers, the tokens, or the whole run."""
        self.view = VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)]
        self.set_class(self.view == "course", "-course")
        self.set_class(self.view == "map", "-map")
        self.query_one(_SHOWN[self.view]).focus()
        await self._ask(self.teachers.look_over_run(self.session.run.finished) if self.view == "course" else None)

    async def _ask_on(self) -> None:
        """Ask what is still unknown once nothing else is asked: another question ends the one before it."""
        teachers = self.teachers
        if teachers.asked is not None:
            return
        if teachers.taught is None and Teach not in teachers.refused:
            await self._ask(teachers.look_at(teachers.update, teachers.by))
        elif self.view == "course" and teachers.course is None and TeachCourse not in teachers.refused:
            await self._ask(teachers.look_over_run(self.session.run.finished))

    @on(Chosen)
    def _chosen(self) -> None:
        self._said = ""
        self.tokens.begin()
        if self.view != "course":
            self.tokens.steer(self._made[1], self.list.chosen)

    @on(CursorMoved)
    def _cursor_moved(self, event: CursorMoved) -> None:
        """The list follows the map."""
        event.stop()
        for at, row in enumerate(self._rows):
            if isinstance(row, AnswerRow) and event.completion in row.completions:
                self.list.choose(at)

    @on(Perform)
    def _unfold(self, event: Perform) -> None:
        """Unfold the answer under the cursor of the map, or fold it again."""
        event.stop()
        if event.name == "unfold":
            self.tokens.toggle()
            self._tokens(self._made[1])

    async def action_instead(self, step: int) -> None:
        """Ask about another token that could have come in the same place."""
        subject = self.teachers.subject
        if subject is not None and (other := subject.instead(step)) is not subject:
            await self._ask(self.teachers.about(other, self.teachers.update))

    async def action_choose(self) -> None:
        """Mark an answer, open an update, or ask again."""
        teachers = self.teachers
        if self.view == "course":
            move = self.course.chosen
            if move is not None:
                await self.action_turn()
                await self._ask(teachers.look_at(move.update, move.update))
            return
        row = self.list.chosen
        match row:
            case UpdatesRow():
                await self._ask(teachers.look_at(teachers.update, row.update))
            case AnswerRow() if teachers.by == teachers.update:
                teachers.mark(frozenset(row.completions))
                self.look(at_once=True)
            case None if teachers.taught is None and teachers.asked is None:
                await self._ask(teachers.look_at(teachers.update, teachers.by))

    def action_mark_named(self) -> None:
        """Mark the answers that the sentence names, or none of them if all are marked."""
        self.teachers.mark(self._named)
        self.look(at_once=True)

    async def action_take_away(self) -> None:
        """Take the update once more without the credit of the marked answers."""
        update = self._made[1]
        if self._marked and update is not None:
            await self._ask(self.teachers.take_away(tokens_of(update, self._marked)))

    def action_strongest(self, lowest: bool) -> None:
        """Go to what raised the target most, or what lowered it most; in the tokens to the strongest token."""
        if self.view == "map":
            tokens = self.tokens
            found, self._said = tokens.next_ranked(lowest)
            if found is not None:
                tokens.point(found.completion, found.token)
            self.look(at_once=True)
            return
        rows = self.list
        places = list(strongest(self._rows, lowest))
        if places:
            at = places.index(rows.cursor) + 1 if rows.cursor in places else 0
            rows.choose(places[at % len(places)])
            self.tokens.steer(self._made[1], rows.chosen)

    def action_branch(self) -> None:
        """Keep the update without the marked answers as a branch, which goes on beside this run."""
        update, play = self._made[1], self._play
        if reason := self.session.cannot("branch"):
            self.notify(visible(reason), severity="warning", markup=False)
            return
        if not self._marked or update is None:
            self.notify("Mark answers first: enter marks the one under the cursor.")
            return
        off = play.other_runs.branch_off(update.number - 1, {}, tokens_of(update, self._marked))
        self.dismiss()
        play.app.run_worker(off, group="branch", exclusive=True)

    def action_colour(self) -> None:
        """Colour the tokens of the main screen by their shares."""
        self.dismiss()
        self.post_message(Perform("lens", "share"))

    def action_signs(self) -> None:
        """Show each token's share as a number."""
        self._signs = not self._signs
        self.look(at_once=True)

    async def action_update(self, step: int) -> None:
        """Ask what the update before or after did."""
        number = self.teachers.update + step
        if 1 <= number <= self.session.run.finished:
            await self._ask(self.teachers.look_at(number, number))

    async def action_back(self) -> None:
        """Stop the question under way; leave an earlier update; close."""
        teachers = self.teachers
        question = teachers.cancel()
        await self._ask(question)
        if question is not None and teachers.taught is not None:
            return
        if teachers.by != teachers.update:
            await self._ask(teachers.look_at(teachers.update, teachers.update))
        else:
            self.dismiss(None)

"""The timeline: every update of the run, to view, to go back to or to branch from; the engine keeps running."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.text import visible
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.legend import EVENT_MARKS, LOOKED_AT
from rlplay.ui.format.shortcuts import LIST_KEYS
from rlplay.ui.format.shown_text import literal
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.panel_messages import Perform, UpdatePicked
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.session.session import Session
from rlplay.ui.timeline.update_table import USUAL, UpdateTable
from rlplay.ui.timeline.updates import Updates
from rlplay.ui.words.changed_settings import changes_line

_AROUND = 9
"""Lines of the dialogue besides the list: frame, state, columns and the details of an update."""
_DISK = f"● snapshot  · answers kept  {LOOKED_AT} looked at"
_EVENTS = f"{EVENT_MARKS['changed']} changed  {EVENT_MARKS['back']} went back  {EVENT_MARKS['on']} resumed"


class TimelineScreen(Following[None]):
    """Follows the run while it is open; the cursor stays on its update."""

    HELP = f"""\
# Timeline

Every update of the run, newest last: the score of its answers, the score on held-out prompts, the numbers of the curves
and then a few others, as many as fit; a scenario chooses the curves with `panels`. Numbers that were always 0 come
last. The last line is the live run. `↑` `↓` `home` `end`, an update's number or a click move the cursor; `enter` or a
second click looks at that update. Training is not interrupted.

Where another trainer numbers its optimizer steps otherwise, as TRL does with `num_iterations=2`, **step** is its number
of the update's last one. A number that no update has goes to the update with that step; `s` after any number does, too.

● the state after this update is on disk, so going back to it is quick; · its answers were kept and can be viewed;
{LOOKED_AT} the main screen shows it. {EVENT_MARKS["changed"]} a changed setting took effect here, {EVENT_MARKS["back"]}
the run went back to this update, {EVENT_MARKS["on"]} the run was resumed here.

`O` marks the update under the cursor; on another update, `O` again shows which answers got better or worse between the
two. The line of the live run is its newest update.

`z` goes back to an update: later updates are discarded, and their curves stay in grey. `b` starts a second run from
this update, with settings that you change; the first run is not touched.
"""

    DEFAULT_CSS = """
    TimelineScreen > Vertical { width: 100%; max-width: 220; height: auto; max-height: 90%; }
    TimelineScreen Static { height: 1; }
    TimelineScreen #columns { color: $text-muted; text-style: bold; }
    TimelineScreen #detail { height: auto; min-height: 3; max-height: 5; border-top: solid $border; }
    TimelineScreen Updates { height: auto; padding: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("z", "rewind", "undo: go back to it", id="undo"),
        Binding("b", "branch", "compare: branch from it", id="compare"),
        Binding("O", "moments", "before and after", id="moments"),
        Binding("v", "live", "back to live", id="live"),
        Binding("y", "copy", "copy", id="copy"),
        Binding("w", "save", "save the view", id="shot"),
        Binding("question_mark,f1", "help", "help", id="help"),
        Binding("escape,g,q", "dismiss", "close"),
        *LIST_KEYS,
    ]

    def __init__(self, session: Session, views: Sequence[Sequence[str]] = USUAL) -> None:
        """Show the updates of `session`; `views` are the metrics of the curves, which the columns follow."""
        super().__init__()
        self._session, self._views = session, views
        self._marked: int | None = None  # the first of two updates to compare
        self._asked: int | None = None  # the update to go back to on a second press
        self._on_disk: tuple[frozenset[int], frozenset[int]] = frozenset(), frozenset()

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "Timeline"
            back = "live" if self._session.source.live else "back"
            panel.border_subtitle = keyed(
                f"`enter` look · `z` go back · `b` branch · `O` mark · `v` {back} · `?` help · `esc` close"
            )
            yield SteadyStatic(id="state")
            yield SteadyStatic(id="columns")
            yield Updates()
            yield SteadyStatic(id="detail")

    def on_mount(self) -> None:
        updates = self.query_one(Updates)
        updates.focus()
        self.begin()
        self.call_after_refresh(updates.put, self._session.older_update)

    def on_resize(self) -> None:
        """Fit the columns to the new width, and leave room for the lines around the list."""
        self.query_one(Updates).styles.max_height = max(self.size.height * 9 // 10 - _AROUND, 3)
        self.call_after_refresh(self._label)

    @property
    def cursor(self) -> int | None:
        """The update under the cursor; None on the line of the live run."""
        return self.query_one(Updates).cursor

    def version(self) -> object:
        """The finished updates, their events and scores, and what the main screen shows."""
        session, history = self._session, self._session.run.history
        scores = history.latest("eval_reward")
        shown = session.older_update, _now(session), str(state(session))
        return session.run.finished, len(history.marks), scores, shown

    def follow(self) -> None:
        """Take the news from the session."""
        session, updates = self._session, self.query_one(Updates)
        try:
            self._on_disk = frozenset(session.source.recorded()), frozenset(session.source.snapshots())
        except RunFileError as error:
            self.notify(visible(str(error)), severity="error", markup=False)
        timeline = UpdateTable(session.run.history, session.run.finished, *self._on_disk, self._views)
        updates.show(timeline, session.older_update, _now(session))
        self._label()

    def _label(self) -> None:
        self.query_one("#state", SteadyStatic).say(state(self._session))
        self.query_one("#columns", SteadyStatic).say(Content(self.query_one(Updates).head))
        legend = Content.styled(f"{_DISK}  {_EVENTS}", "$text-muted")
        self.query_one("#detail", SteadyStatic).say(Content("\n").join([self._row_detail(), legend]))

    def _row_detail(self) -> Content:
        row = self.query_one(Updates).row
        if self._marked is not None:
            marked = _called(self._marked)
            return keyed(f"Marked: {marked}. `O` on another update compares their answers.")
        if row is None:
            live = "The live run. `↑` looks back; training is not interrupted."
            return keyed(live if self._session.source.live else "The position of the replay. `↑` looks back.")
        if self._asked == row.number:
            lost = " ".join(
                filter(None, (_lost(row.number, self._session.run.finished), _reset(self._session, row.number)))
            )
            question = f"Go back to {_called(row.number)}? {lost}"
            return keyed(f"{question}\nPress `z` again to go back; moving the cursor cancels.")
        tokens = "Only its numbers were kept, not its answers." if row.number and not row.tokens else ""
        repeats = self._session.source.live and not row.snapshot
        state = "No snapshot: going back here replays the updates since the previous ●." if repeats else ""
        events = " · ".join(mark.text for mark in row.events)
        called = _called(row.number)
        steps = self._session.run.steps_of(row.number)
        words = [f"{called[0].upper()}{called[1:]}{f': {steps}' * bool(steps)}.", tokens, state, events]
        return Content(visible(" ".join(filter(None, words))))

    @on(Updates.Moved)
    def _moved(self) -> None:
        self._asked = None
        self._label()

    @on(Updates.Chosen)
    def _chosen(self) -> None:
        row = self.query_one(Updates).row
        if row is None:
            self.action_live()
        elif row.tokens:
            self.post_message(UpdatePicked(row.number))
            self.dismiss()
        else:
            self.notify("The answers of this update were not kept; look at the nearest one that has them.")

    def action_rewind(self) -> None:
        """Go back to the update under the cursor; asks for confirmation in a live run."""
        row = self.query_one(Updates).row
        if row is None:
            self.notify("This is the live run. Move up to an update to go back to it.")
        elif self._session.source.live and self._asked != row.number:
            self._asked = row.number
            self._label()
        else:
            self.post_message(Perform("rewind", row.number))
            self.dismiss()

    def action_moments(self) -> None:
        """Mark the update under the cursor, or compare its answers with those of the marked one."""
        here = self._session.run.finished if self.cursor is None else self.cursor
        if self._marked is None or self._marked == here:
            self._marked = here if self._marked is None else None
            self.query_one(Updates).mark(self._marked)
            self._label()
        else:
            self.post_message(Perform("moments", sorted((self._marked, here))))

    def action_branch(self) -> None:
        """Branch from the update under the cursor."""
        self.post_message(Perform("branch", self._session.run.finished if self.cursor is None else self.cursor))
        self.dismiss()

    def action_live(self) -> None:
        """Return to the live run."""
        self.post_message(Perform("live"))
        self.dismiss()

    def action_save(self) -> None:
        """Save the view as files."""
        self.post_message(Perform("shot"))

    def action_copy(self) -> None:
        """Copy the table."""
        what, text = self.query_one(Updates).clipping()
        self.app.copy_to_clipboard(text)
        self.notify(f"Copied {what}.")


def state(session: Session) -> Content:
    """What the main screen shows: the live run or an older update."""
    if session.looking is not None:
        back = "back to live" if session.source.live else "back"
        looking = f"{LOOKED_AT} looking at update {session.looking}{session.run.history.clock.aside(session.looking)}"
        return Content.assemble((looking, "bold $foreground"), keyed(f" · `v` {back}"))
    if session.source.live and session.failed is not None:
        return Content.styled("● ended", "bold $error")
    if session.source.live:
        running = session.status is not None and session.status.running
        return Content.assemble(("● now", "bold $success"), " · running" if running else " · paused")
    return Content(_now(session))


def _now(session: Session) -> str:
    """The label of the last line: the live run or the replay."""
    newest = 0 if session.run.newest is None else session.run.newest.number
    live = "● now" if session.failed is None else "● ended"
    return live if session.source.live else f"■ replay at {_called(newest)}{session.run.history.clock.aside(newest)}"


def _lost(number: int, finished: int) -> str:
    """The updates that going back to update `number` discards."""
    if number >= finished:
        return "No finished update is discarded."
    lost = f"Update {finished} is" if number + 1 == finished else f"Updates {number + 1}–{finished} are"
    return f"{lost} discarded (their curves stay, in grey)."


def _reset(session: Session, number: int) -> str:
    """The settings that change back when the run goes back to update `number`."""
    back = session.undoing(number)
    return f"Settings also change back: {literal(changes_line(back))}." if back else ""


def _called(number: int) -> str:
    return f"update {number}" if number else "the start of the run"

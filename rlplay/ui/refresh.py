"""Brings the main screen up to date with its session, one part at a time, so that a key waits for one part at most."""

from __future__ import annotations

import contextlib
import itertools
from functools import partial

import msgspec

from rlplay.scenario.reproduction import scenario_of
from rlplay.trace.kinds import kind_of
from rlplay.trace.records import Started
from rlplay.trace.text import visible_lines
from rlplay.trace.update import Phase
from rlplay.ui.format.text import literal
from rlplay.ui.layout.answer_order import order
from rlplay.ui.playground import Playground
from rlplay.ui.plot.belief_river import River
from rlplay.ui.plot.learning_map import LearningMap
from rlplay.ui.session.examination import examine
from rlplay.ui.session.reading import next_belief, next_evaluation
from rlplay.ui.session.session import Part, Session
from rlplay.ui.words import clipping
from rlplay.ui.words.empty_map import COMING, VACANT
from rlplay.ui.words.narration import (
    Narration,
    narrate,
    narrate_asking,
    narrate_problem,
    narrate_run,
    narrate_start,
    narrate_stopped,
    narrate_undone,
)
from rlplay.ui.words.setting_changes import changes_line, changes_notice
from rlplay.ui.words.step_word import worded

PARTS = 3
"""The answers with their tokens; the text about them; one curve panel."""


class Refresher:
    """Tracks the changes that the screen does not show yet."""

    def __init__(self, app: Playground) -> None:
        self._app = app
        self._unshown: set[Part] = set()
        self._wanted: tuple[Started | None, list[str]] = None, []
        self._parts = itertools.cycle((self._answers, self._words, app.curves.draw_next))

    def next_part(self) -> None:
        """Paint the next part in turn."""
        next(self._parts)()

    def panels(self) -> None:
        """Paint everything except the curves: they take longer and may follow a little later."""
        self._answers()
        self._words()

    def _answers(self) -> None:
        app, session = self._app, self._app.session
        changes = session.take_changes()
        self._unshown |= changes
        if changes:
            app.keys.follow(app.main.focused)
            app.header.show(session)
            app.phases.show(session)
        if "status" in changes:
            app.keys.allow(session.abilities)
            app.speak(session.step_word)
            app.banner.show(session)
            # A class of the screen would have the style of every widget computed anew.
            for panel in (app.rollouts, app.tokens, app.inspector, *app.curves.panels):
                panel.set_class(session.looking is not None, "-past")
        if changes & {"update", "look"} or session.shown is None:
            self._list(changes)

    def _list(self, changes: set[Part]) -> None:
        app, session, preview = self._app, self._app.session, self._app.preview
        kind = kind_of(session.settings_of(session.shown))
        matching = app.finder.filter(session.shown, order(session.shown, app.sort))
        listed = app.folding.fold(session.shown, matching, kind)
        app.finder.keep(listed)
        vacant = worded(_vacant(session), session.step_word)
        app.tokens.words = literal(session.problem) or self._nothing_found() or vacant
        app.tokens.show(
            preview.shown or session.shown, listed, app.lens, app.lens_choice is None, app.signs,
            preview.flipped, preview.version, app.finder, app.folding.unfolded, app.folding.copies,
        )  # fmt: skip
        if listed and (answer := app.tokens.cursor[0]) not in listed:
            shown_for = app.folding.shown_for(answer)
            app.tokens.point(*((shown_for, app.tokens.cursor[1]) if shown_for in listed else (listed[0], 0)))
        if "update" in changes:
            app.rollouts.words = "No answer matches." if app.finder.nothing else app.rollouts.EMPTY
            app.rollouts.show(session.shown, listed, app.sort, app.tokens.rows, app.finder.count, kind)
            app.rollouts.point(*app.tokens.cursor)
            # Its lines have changed, so it may have missed a scroll.
            app.rollouts.scroll_to(y=app.tokens.scroll_y, animate=False, immediate=True)

    def _nothing_found(self) -> str:
        """The message for a search without matches; for clipped tokens also why there are none."""
        session, nothing = self._app.session, self._app.finder.nothing
        if not nothing or not self._app.finder.wants_clipped or clipping.count_clipped(session.shown):
            return nothing
        return (
            f"{clipping.explain_none(session.shown, session.settings_of(session.shown), session.source.live)} {nothing}"
        )

    def _panels(self) -> list[str]:
        """The panels that the scenario of the run wants; none if this rlplay cannot read it."""
        started = self._app.session.run.started
        if started is not self._wanted[0]:
            wanted: list[str] = []
            with contextlib.suppress(msgspec.MsgspecError):
                wanted = [] if started is None else scenario_of(started).panels
            self._wanted = started, wanted
        return self._wanted[1]

    def _words(self) -> None:
        app, session = self._app, self._app.session
        changes, self._unshown = self._unshown, set()
        if not changes:
            return
        if changes & {"update", "status", "history"}:
            app.inspect()
            app.narrator.narrate(_narration(session), app.spot())
        app.curves.mark_update(session.older_update)
        app.curves.world, app.curves.wanted = session.world, self._panels()
        app.curves.beliefs, app.curves.evaluations = session.run.beliefs, session.run.evaluations
        app.curves.box = None if app.finder.query is None else app.finder.query.box
        app.curves.steered = session.has_engine
        app.curves.foreign = session.run.started is not None and bool(session.run.started.source)
        app.curves.readers = {River: partial(next_belief, session), LearningMap: partial(next_evaluation, session)}
        settings = session.settings_of(session.shown)
        if not session.source.live and session.status is None:  # the recording is still being read
            self._unshown |= changes & {"update", "history"}
        elif changes & {"update", "history"} and (
            _curves_are_due(session, changes) or app.curves.shows_answers or not app.curves.fit(settings)
        ):
            app.curves.prepare(session.run.history, session.shown, settings)
        for notice in session.notices:
            severity = notice.level if notice.level in ("warning", "error") else "information"
            app.notify(visible_lines(notice.text), severity=severity, markup=False)
        session.notices.clear()
        if session.new_changes:
            app.notify(changes_notice(session.new_changes), markup=False)
            session.new_changes.clear()


def _vacant(session: Session) -> str:
    """Why there are no answers to show."""
    busy = session.status is None or session.status.running or bool(session.asked)
    return COMING if busy and session.place == "live" else VACANT[session.place]


def _narration(session: Session) -> Narration:
    if session.loading is not None and session.status is None:
        return narrate_start(session.source.question, session.source.live)
    if session.problem:
        return narrate_problem(session.problem, session.place)
    if session.place == "live" and (live := _live(session)) is not None:
        return live
    # A limit changed during sampling takes effect in the next update.
    phase: Phase = "sample" if session.shown is not None and session.shown.phase == "sample" else "update"
    settings, finding = session.settings_of(session.shown, phase), next(iter(examine(session)[1]), None)
    undoes = not session.cannot("undo")
    narration = narrate(session.shown, session.run.history, settings, session.place, undoes, finding)
    if session.shown is None:  # later it has the words of the update
        return Narration(narration.happened, worded(narration.next, session.step_word), narration.warning)
    return narration


def _live(session: Session) -> Narration | None:
    """The narration about the engine; it comes before the one about the update."""
    if session.stopped:
        return narrate_stopped(session.stopped)
    if session.asks:
        return narrate_asking(len(session.asks))
    if session.runs_on:
        return narrate_run(session.run.history, session.step_word)
    if session.undone or session.reset:
        return narrate_undone(
            0 if session.shown is None else session.shown.number, session.undone, literal(changes_line(session.reset))
        )
    return None


def _curves_are_due(session: Session, changes: set[Part]) -> bool:
    shown = session.shown
    moved = shown is not None and bool(shown.steps or shown.searched)
    return "history" in changes or session.looking is not None or moved or session.world is not None

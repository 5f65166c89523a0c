"""Brings the main screen up to date with its session, one part at a time, so that a key waits for one part at most."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping
from functools import partial

import msgspec
from textual.notifications import SeverityLevel

from rlplay.plain_yaml import PlainYamlError
from rlplay.scenario.reproduction import scenario_of
from rlplay.trace.records import Started
from rlplay.trace.text import visible_lines
from rlplay.trace.update import Phase
from rlplay.ui.answers.answer_order import order
from rlplay.ui.curves.run_details import RunDetails
from rlplay.ui.format.shown_text import literal
from rlplay.ui.format.step_word import worded
from rlplay.ui.held_out.learning_map import LearningMap
from rlplay.ui.main.playground import Feature, Playground
from rlplay.ui.parts.following import Following
from rlplay.ui.river.belief_river import River
from rlplay.ui.session.examination import examine
from rlplay.ui.session.reading import next_belief, next_evaluation
from rlplay.ui.session.session import Part, Session
from rlplay.ui.tokens.empty_map import COMING, VACANT
from rlplay.ui.words import clipping
from rlplay.ui.words.changed_settings import changes_line, changes_notice
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

PARTS = 4
"""The answers with their tokens; the text about them; one curve panel; the dialogues."""
_SEVERITY: dict[str, SeverityLevel] = {"warning": "warning", "error": "error"}


class Refresher(Feature):
    """Tracks the changes that the screen does not show yet."""

    def __init__(self, playground: Playground) -> None:
        self._playground = playground
        self._panels = playground.panels
        self._unshown: set[Part] = set()
        self._wanted: tuple[Started | None, list[str]] = None, []
        playground.join({}, self)
        self._parts = itertools.cycle((self._answers, self._words, self._panels.curves.draw_next, self._dialogues))

    def next_part(self) -> None:
        """Paint the next part in turn."""
        next(self._parts)()

    def paint(self) -> None:
        """Paint everything except the curves: they take longer and may follow a little later."""
        self._answers()
        self._words()

    def everything(self) -> None:
        """Paint all parts."""
        self.paint()
        self._panels.curves.draw_all()
        self._dialogues(at_once=True)

    def _dialogues(self, at_once: bool = False) -> None:
        if not self._playground.app.is_running:
            return  # while the app shuts down, dialogues lose their widgets
        for screen in self._playground.app.screen_stack:
            if isinstance(screen, Following):
                screen.look(at_once)

    def _answers(self) -> None:
        panels, session = self._panels, self._playground.session
        self._playground.hold()
        changes = session.take_changes()
        self._unshown |= changes
        if changes:
            panels.keys.follow(panels.main.focused)
            panels.header.show(session)
            panels.phases.show(session)
            panels.tabs.show(session)
        if "status" in changes:
            panels.keys.allow(session.abilities)
            panels.keys.await_labels(bool(session.asks))
            panels.keys.go(session.status is not None and session.status.running)
            panels.speak(session.step_word)
            panels.banner.show(session)
            panels.follow_start(session)
            panels.mark_past(session.looking is not None)
        if changes & {"update", "look"} or session.shown is None:
            self._list(changes)

    def _list(self, changes: set[Part]) -> None:
        play, session, preview = self._playground, self._playground.session, self._playground.preview
        tokens, rollouts = self._panels.tokens, self._panels.rollouts
        shown = preview.instead_of(session.shown)
        kind = session.settings_of(shown).kind
        matching = play.finder.filter(shown, order(shown, play.sort))
        listed = play.folding.fold(shown, matching, kind)
        play.finder.keep(listed)
        vacant = worded(_vacant(session), session.step_word)
        tokens.words = literal(session.problem) or self._nothing_found() or vacant
        tokens.show(
            preview.shown or shown, listed, play.colours, play.signs, preview.flipped,
            preview.version, play.finder, play.folding.unfolded, play.folding.copies,
        )  # fmt: skip
        if listed and (answer := tokens.cursor[0]) not in listed:
            shown_for = play.folding.shown_for(answer)
            tokens.point(*((shown_for, tokens.cursor[1]) if shown_for in listed else (listed[0], 0)))
        if "update" in changes:
            rollouts.words = "No answer matches." if play.finder.nothing else rollouts.EMPTY
            rollouts.show(shown, listed, play.sort, tokens.rows, play.finder.count, kind)
            rollouts.point(*tokens.cursor)
            # Its lines have changed, so it may have missed a scroll.
            rollouts.scroll_to(y=tokens.scroll_y, animate=False, immediate=True)

    def _nothing_found(self) -> str:
        """The message for a search without matches; for clipped tokens also why there are none."""
        session, finder = self._playground.session, self._playground.finder
        nothing = finder.nothing
        if not nothing or not finder.wants_clipped or clipping.count_clipped(session.shown):
            return nothing
        return (
            f"{clipping.explain_none(session.shown, session.settings_of(session.shown), session.source.live)} {nothing}"
        )

    def _wanted_curves(self) -> list[str]:
        """The panels that the scenario of the run wants; none if this rlplay cannot read it."""
        started = self._playground.session.run.started
        if started is not self._wanted[0]:
            wanted: list[str] = []
            with contextlib.suppress(msgspec.MsgspecError, PlainYamlError):
                wanted = [] if started is None else scenario_of(started).panels
            self._wanted = started, wanted
        return self._wanted[1]

    def _words(self) -> None:
        play, session, curves = self._playground, self._playground.session, self._panels.curves
        changes, self._unshown = self._unshown, set()
        if not changes:
            return
        if changes:
            play.inspect()
        if changes & {"update", "status", "history"}:
            self._panels.narrator.narrate(_narration(session), play.spot())
        curves.mark_update(session.older_update)
        waits = curves.details.awaited != bool(session.asks)
        curves.take(
            RunDetails(
                world=session.world,
                wanted=self._wanted_curves(),
                beliefs=session.run.beliefs,
                evaluations=session.run.evaluations,
                box=None if play.finder.query is None else play.finder.query.box,
                guess=play.guess,
                mismatch=_mismatch(session),
                awaited=bool(session.asks),
                steered=session.has_engine,
                foreign=session.run.started is not None and bool(session.run.started.source),
                only=session.run.history.names() if session.source.curves_only else (),
                on_record=session.on_record(session.shown).keys(),
                squares=_squares(session),
                readers={River: partial(next_belief, session), LearningMap: partial(next_evaluation, session)},
            )
        )
        settings = session.settings_of(session.shown)
        if not session.source.live and session.status is None:  # the recording is still being read
            self._unshown |= changes & {"update", "history"}
        elif (changes & {"update", "history"} or waits) and (
            waits or _curves_are_due(session, changes) or curves.shows_answers or not curves.fit(settings)
        ):
            curves.prepare(session.run.history, session.shown, settings)
        for notice in session.notices:
            play.app.notify(
                visible_lines(notice.text), severity=_SEVERITY.get(notice.level, "information"), markup=False
            )
        session.notices.clear()
        painting = any(panel.painting is not None for panel in curves.panels)
        news = [change for change in session.new_changes if not (painting and change.name == "squares")]
        if news:  # what the user paints is on the map already
            play.app.notify(changes_notice(news), markup=False)
        session.new_changes.clear()


_MISMATCHES = ("mismatch_kl", "mismatch_kl/mean", "rollout_corr/k3_kl", "sampling/sampling_logp_difference/mean")
"""What own runs, prime-rl, verl and TRL call the distance of sampler and policy, the most direct first."""


def _mismatch(session: Session) -> str:
    """The metric that says how far the sampler is from the policy, by its name in this run; "" if they are one."""
    history, settings = session.run.history, session.settings_of(session.shown)
    logged = next((name for name in _MISMATCHES if history.latest(name) is not None), "")
    return logged or "mismatch_kl" * settings.samples_apart


def _squares(session: Session) -> Mapping[str, float | str] | None:
    """A world's squares as they are painted by now; None where the update on the screen says it better."""
    live = session.world is not None and session.has_engine and session.looking is None
    return session.run.timeline.latest().get("squares", {}) if live else None


def _vacant(session: Session) -> str:
    """Why there are no answers to show."""
    if session.stopped and session.place == "live":
        return f"{literal(session.stopped)}\n\n`space` tries again, `F12` shows where it happened."
    busy = session.status is None or session.status.running or bool(session.asked)
    return COMING if busy and session.place == "live" else VACANT[session.place]


def _narration(session: Session) -> Narration:
    if session.loading is not None and session.status is None:
        return narrate_start("" if session.has_engine else session.source.question, session.source.live)
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

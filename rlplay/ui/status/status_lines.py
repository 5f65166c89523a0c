"""The two lines above the panels, with the run and the phase of its update, and the banner for a failed engine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from rich.cells import cell_len
from textual import events
from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget

from rlplay.algorithms import named
from rlplay.trace.numbers import number
from rlplay.trace.text import visible, visible_lines
from rlplay.trace.update import Update
from rlplay.ui.format.bars import sparkline
from rlplay.ui.format.legend import LOOKED_AT
from rlplay.ui.format.number_cells import tenths
from rlplay.ui.format.step_word import worded
from rlplay.ui.motion import SLIDE, Motion
from rlplay.ui.parts.panel_messages import Perform
from rlplay.ui.session.session import Session
from rlplay.ui.words import step_search as search
from rlplay.ui.words.samplers import sampler_apart

Part = tuple[str, str]
SMALL = 110
"""Columns below which the header shows the reward, since its curve may have no panel."""
SPARKS = 10
"""Updates in the header's curve of the reward."""

PHASES = (("sample", "① SAMPLE"), ("score", "② SCORE"), ("credit", "③ CREDIT"), ("update", "④ UPDATE"))
FLOWS = ("answers", "rewards", "credit", "weights")
"""What each phase hands on to the next."""
_ROOMY = 100
"""Columns from which on arrows have a shaft."""
_LABELLED, _PLAIN, _SMALL = [f" ── {what} ──▶ " for what in FLOWS], [" ──▶ "] * 4, [" ▸ "] * 4

_ABOUT = {
    "sample": "The policy answers every prompt.",
    "score": "Each answer gets its reward.",
    "credit": "Each token gets its advantage.",
    "update": "The optimizer takes its steps.",
    "after": "The new policy reads the same tokens again.",
}
_NOW, _PAST = "bold $background on $foreground", "bold $background on $text-muted"
"""The highlight for the live update, and for an older update."""
_RUNNING, _PLAYING = ("● running", "bold $success"), ("▶ playing", "bold $success")


class Bar(Widget):
    """One line of text about a session, repainted only when it changes."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._content = Content("")
        self._session: Session | None = None

    def show(self, session: Session) -> None:
        """Show the state of the session."""
        self._session = session
        self.put(self.words(session))

    def words(self, session: Session) -> Content:
        """The text about the session, fitted to the width."""
        raise NotImplementedError

    def on_resize(self) -> None:
        """Fit the text to the new width; the right part stays at the right edge."""
        if self._session is not None:
            self.show(self._session)

    def clicks(self, x: int) -> tuple[str, Any, str]:
        """The verb of a click at cell `x` with its argument, "" for none; and what to say there."""
        raise NotImplementedError

    def on_click(self, event: events.Click) -> None:
        """Carry out the verb under the mouse."""
        verb, argument, _ = self.clicks(event.x)
        if verb:
            self.post_message(Perform(verb, argument))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Explain what is under the mouse."""
        tip = self.clicks(event.x)[2]
        if tip != str(self.tooltip or ""):
            self.tooltip = Content(tip) if tip else None

    def render(self) -> RenderResult:
        return self._content

    def put(self, content: Content) -> None:
        """Show `content`."""
        if content != self._content or content.spans != self._content.spans:
            self._content = content
            self.refresh()


class Header(Bar):
    """Program, scenario, algorithm, model and device; on the right, the progress and state of the engine."""

    _state_at = 0
    """The cell at which the state begins."""

    def clicks(self, x: int) -> tuple[str, Any, str]:
        """The settings; on the state, what its key would do."""
        session = self._session
        if session is None or x < self._state_at:
            return "knobs", None, "What runs here. Click to see and change its settings."
        if session.failed is not None:
            return "resume", None, "The engine has ended. Click to start it again."
        if session.looking is not None:
            return "live", None, "An older update is on the screen. Click to return."
        if session.asks:
            return "prefer", None, "The update waits for your labels. Click to give them."
        return "run", None, "How far the run is. Click to run or to pause."

    def words(self, session: Session) -> Content:
        """The header's text; a narrow screen drops the least important parts."""
        started = session.run.started
        left: list[Part] = [(" rlplay ", "bold $foreground"), (f" {visible(session.source.title)}", "bold $foreground")]
        if started is not None:
            left.append((f"   {visible(_algorithm(session))}", "$foreground"))
            several = f", {started.processes} processes" if started.processes > 1 else ""
            model = f" · {_short(started.model)} {_count(started.parameters)} · {started.device}{several}"
            if started.parameters:  # else another trainer made the run and did not record its model
                left.append((visible(model), "$text-muted"))
            if session.shown is not None and (
                apart := sampler_apart(session.shown, session.settings_of(session.shown))
            ):
                left.append((f" · sampler: {apart}", "$text-muted"))
        small = self.size.width < SMALL
        progress = [*_progress(session)[:1], *_curve(session), *_progress(session)[1:]] if small else _progress(session)
        state = _state(session)
        while progress and _width([*left, *progress, *state]) > self.size.width - 6:
            if small and (len(left) > 3 or (len(left) > 2 and len(progress) <= 2)):
                left.pop()
            elif len(progress) > 1:
                progress.pop()
            elif len(left) > (3 if session.looking is None else 2):
                left.pop()
            else:
                progress = []
        right = [*progress, ("  ", ""), *state]
        gap = max(self.size.width - _width(left) - _width(right) - 1, 1)
        self._state_at = _width(left) + gap
        return Content.assemble(*left, " " * gap, *right)


def _algorithm(session: Session) -> str:
    """The algorithm of the update on the screen; for the newest update also the next algorithm, if it differs."""
    shown = session.shown
    here, after = (settings.algorithm for settings in (session.settings_of(shown), session.settings))
    names = [here] if session.looking is not None or not session.source.live else list(dict.fromkeys((here, after)))
    if shown is None or shown.sampled is None:
        names = [after]
    return ", next ".join(named.title(name) for name in names)


def _progress(session: Session) -> list[Part]:
    parts: list[Part] = []
    status, tokens = session.status, session.run.history.latest("num_tokens")
    if status is not None and session.source.live:
        parts.append((_called(session, status.update), "$foreground"))
    elif status is not None and session.run.newest is not None:
        newest = session.run.newest.number
        parts.append((_called(session, newest, f" of {status.recorded}"), "$foreground"))
        tokens = session.run.history.at(session.run.newest.number).get("num_tokens")
    if tokens:
        parts.append((f" · {tokens:,.0f} {session.step_word}s", "$text-muted"))
    if session.seconds:
        parts.append((f" · {tenths(session.seconds)}", "$text-muted"))
    return parts


def _called(session: Session, update: int, of: str = "") -> str:
    """An update, with the step of its trainer where that has another number."""
    return f"update {update}{of}{session.run.history.clock.aside(update)}"


def _curve(session: Session) -> list[Part]:
    """The course of the reward, for a screen with no room for its panel."""
    _, values = session.run.history.of_stage("reward")
    if not values:
        return []
    return [(f"  reward {sparkline(values, SPARKS)} {number(values[-1])}", "$foreground")]


def _state(session: Session) -> list[Part]:
    if session.failed is not None:
        return [("● ended", "$error")]
    if session.looking is not None:
        back = " back to live" if session.source.live else " back"
        return [
            (f" {LOOKED_AT} looking at {_called(session, session.looking)} ", _PAST),
            (" v", "bold $foreground"),
            (back, "$foreground"),
        ]
    if session.status is None:
        return [("○ starting" if session.source.live else "○ reading", "$text-muted")]
    if session.asked:
        return [(f"● {session.asked}", "$text-muted")]
    running, finished = session.status.running, session.status.finished
    if session.source.live:
        return [_RUNNING] if running else [("● finished", "$foreground")] if finished else _waiting(session)
    return [_PLAYING if running else ("■ end of the recording" if finished else "● replay", "$foreground")]


def _waiting(session: Session) -> list[Part]:
    if session.stopped:
        return [("▲ stopped", "bold $error")]
    return _asking(len(session.asks)) if session.asks else [("● paused", "$foreground")]


def _asking(pairs: int) -> list[Part]:
    labels = "1 label" if pairs == 1 else f"{pairs} labels"
    return [(f"● waiting for {labels}", "bold $foreground"), (" · press ", "$text-muted"), ("A", "bold $foreground")]


def _short(model: str) -> str:
    """A model's name; of a folder, the last part."""
    return PurePath(model).name if PurePath(model).is_absolute() else model


def _count(number: int) -> str:
    if number >= 1e9:
        return f"{number / 1e9:.1f}B"
    if number >= 1e6:
        return f"{number / 1e6:.1f}M"
    return f"{number / 1e3:.0f}k" if number >= 1e3 else f"{number} parameters"


def _width(parts: list[Part]) -> int:
    return sum(cell_len(text) for text, _ in parts)


class PhaseBar(Bar):
    """The five phases of an update, the current one highlighted; while the engine starts, its progress."""

    here = ""
    """The highlighted phase."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._flow = Motion(self, SLIDE, self.on_resize)

    def clicks(self, x: int) -> tuple[str, Any, str]:
        """Going on until the phase under the mouse is done."""
        status = None if self._session is None else self._session.status
        for name, title in (*PHASES, ("after", "↻")):
            begin = self._content.plain.find(title)
            if status is not None and 0 <= begin <= x < begin + len(title) and not status.running:
                order = [phase for phase, _ in PHASES] + ["after"]
                steps = (order.index(name) - order.index(status.phase)) % len(order) + 1
                about = "" if self._session is None else worded(_ABOUT[name], self._session.step_word)
                return "phase", steps, f"{about} Click to go on until it is done."
        return "", None, ""

    def words(self, session: Session) -> Content:
        """The phase of the update on the screen."""
        if session.loading is not None and session.status is None:
            return _loading(session.loading.what, session.loading.fraction)
        update = session.under_way
        status = session.status
        if update is None or update.sampled is None:
            self.here = "sample" if status is not None else ""
            return _phases(self.here, False, "", self.size.width, _NOW, 1.0)
        here: str = update.phase
        # The engine reports the current or next phase; the update knows the last phase with a record.
        busy = session.looking is None and status is not None and status.running
        if busy and status is not None and status.phase != "after":
            here = status.phase
        order = [*(name for name, _ in PHASES), "after"]
        if self.here in order and order.index(here) == order.index(self.here) + 1:
            self._flow.begin()
        elif here != self.here:
            self._flow.stop()
        self.here = here
        ink = _NOW if session.looking is None else _PAST
        return _phases(here, here == "after", _detail(update), self.size.width, ink, self._flow.share)


def _loading(what: str, fraction: float) -> Content:
    filled = round(fraction * 20)
    return Content.assemble(
        (" " + "━" * filled, "$foreground"),
        ("─" * (20 - filled), "$border"),
        (f"  {visible(what)} …", "$text-muted"),
    )


def _detail(update: Update) -> str:
    if update.phase == "sample" and update.sampled is not None and not update.sampled.done:
        position = update.sampled.position
        # In a world, the squares in between are positions, too.
        return f"token {position}" if update.step_word == "token" else f"move {(position + 1) // 2}"
    if update.searched and not update.steps:
        return search.detail(update)
    if update.steps and update.finished is None:
        step = update.steps[-1]
        return f"epoch {step.epoch + 1}/{step.epochs} · minibatch {step.minibatch + 1}/{step.minibatches}"
    return ""


def _phases(here: str, over: bool, detail: str, width: int, ink: str, share: float) -> Content:
    """The stages; on the arrow to the one that is `here`, a dot shows the `share` of what flows there."""
    full = _stages(here, over, detail, ink, share, _LABELLED)
    if full.cell_length <= width:
        return full
    return _stages(here, over, detail, ink, share, _PLAIN if width >= _ROOMY else _SMALL)


def _stages(here: str, over: bool, detail: str, ink: str, share: float, arrows: Sequence[str]) -> Content:
    parts: list[Part] = [(" ", "")]
    names = [name for name, _ in PHASES]
    reached = len(names) if over else names.index(here) if here in names else -1
    for index, (_, title) in enumerate(PHASES):
        if index:
            parts += _arrow(arrows[index - 1], index <= reached, share if index == reached else 1.0)
        if index == reached:
            parts.append((f" {title} ", ink))
            if detail:
                parts.append((f"  {detail}", "$foreground"))
        else:
            parts.append((title, "$foreground" if index < reached else "$text-muted"))
    parts += _arrow(arrows[-1], over, share if over else 1.0)
    parts.append((" ↻ AFTER ", ink) if over else ("↻", "$text-muted"))
    return Content.assemble(*parts)


def _arrow(line: str, passed: bool, share: float) -> list[Part]:
    """The arrow after a phase, with the name of what the phase hands on; a dot is at its `share` below 1."""
    ink = "$foreground" if passed else "$border"
    if share < 1 and len(line) > len(_SMALL[0]):
        at = 1 + round(share * (len(line) - 4))
        return [(line[:at], ink), ("●", "bold $foreground"), (line[at + 1 :], ink)]
    return [(part, "$text-muted" if part.strip().isalpha() else ink) for part in re.split(r"( \w+ )", line) if part]


class Banner(Widget):
    """A calm message after the engine has ended: what happened, and how to continue."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._content = Content("")

    def render(self) -> RenderResult:
        return self._content

    def show(self, session: Session) -> None:
        """Appear when the session has failed; disappear when it has recovered."""
        failed = session.failed
        self.set_class(failed is not None, "-visible")
        if failed is None:
            return
        at = f" (update {session.last_finished})" if session.last_finished else ""
        again = f"resumes from the last snapshot{at}" if session.source.live else "reads the run again"
        if session.source.live and session.run.started is None:
            again = "tries again"
        keys: list[Part] = [("r", "bold $foreground"), (f" {again}", "$foreground")]
        keys += [
            ("   F12", "bold $foreground"),
            (" log", "$foreground"),
            ("   q", "bold $foreground"),
            (" quit", "$foreground"),
        ]
        self._content = Content.assemble((f"{visible_lines(failed.text)}\n", "$foreground"), *keys)
        self.refresh(layout=True)

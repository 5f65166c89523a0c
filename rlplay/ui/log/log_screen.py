"""The log: the engine's messages, its device, and what the time of the last update went to."""

from __future__ import annotations

import time
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.widgets import RichLog, Static

from rlplay.link.messages import LogLine
from rlplay.trace.parts import PARTS
from rlplay.trace.records import Finished, Started
from rlplay.trace.text import visible
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.number_cells import tenths
from rlplay.ui.format.shortcuts import LIST_KEYS
from rlplay.ui.log.traceback_text import folded
from rlplay.ui.parts.following import Following
from rlplay.ui.session.session import Session
from rlplay.ui.theme.inks import palette

LEVELS = ("debug", "info", "warning", "error")
_BAR, _LONG_BAR = 16, 60
_LONG = 130
"""Columns of the dialogue from which on bars are long."""
_AROUND = 3
"""Lines of the dialogue besides the head and the messages: its frame and the line below the head."""
_LOW = 30
"""Rows of a screen that has no room for a line for each part of an update's time."""
_NARROWEST = 20
"""Cells of a line before the log knows its width."""


class LogScreen(Following[None]):
    """Follows the session's log while it is open."""

    DEFAULT_CSS = """
    LogScreen > Vertical { width: 100%; max-width: 150; height: auto; max-height: 90%; }
    LogScreen Static { height: auto; border-bottom: solid $border; }
    LogScreen RichLog {
        height: auto; min-height: 3; scrollbar-size-vertical: 1;
        &, &:focus { background: $background; background-tint: $foreground 0%; }
    }
    """
    SECONDS = 0.5
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "filter(-1)", "more levels"),
        Binding("right", "filter(1)", "fewer levels"),
        Binding("y", "copy", "copy", id="copy"),
        Binding("escape,f12,q", "dismiss", "close"),
        *LIST_KEYS,
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._level = "debug"
        self._written: tuple[float, LogLine] | None = None
        self._head = Content()

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_subtitle = keyed("`← →` level · `y` copy · `esc` close")
            yield Static()
            yield RichLog(wrap=True, markup=False, highlight=False, min_width=20)

    def on_mount(self) -> None:
        self.query_one(RichLog).focus()
        self._rewrite()
        self.begin()

    def on_resize(self) -> None:
        """Wrap the lines to the new width."""
        self.call_after_refresh(self._rewrite)

    @property
    def lines(self) -> list[tuple[float, LogLine]]:
        """The messages that pass the filter, oldest first, each with its time of arrival."""
        least = LEVELS.index(self._level)
        return [(at, line) for at, line in self._session.log if LEVELS.index(line.level) >= least]

    def action_filter(self, step: int) -> None:
        """Hide one more level, or show one more; after errors only, show all levels again."""
        self._level = LEVELS[(LEVELS.index(self._level) + step) % len(LEVELS)]
        self._rewrite()

    def action_copy(self) -> None:
        """Copy the messages shown."""
        self.app.copy_to_clipboard("\n".join(f"{_clock(at)} {line.level} {line.text}" for at, line in self.lines))
        self.notify(f"{len(self.lines)} messages copied.")

    def version(self) -> object:
        """Whatever has happened in the run, and the size."""
        return self._session.version, self.size

    def follow(self) -> None:
        """Add what the session has logged and finished since."""
        newest = self._session.log[-1] if self._session.log else None
        if newest is not self._written:
            self._rewrite()
        finished = self._last_finished()
        lines = [*_place(self._session.run.started), *_timings(finished, self.size)]
        head = Content("\n").join(lines)
        if head != self._head:
            self._head = head
            self.query_one(Static).update(head)
            most = self.size.height * 9 // 10 - len(head.plain.split("\n")) - _AROUND
            self.query_one(RichLog).styles.max_height = max(most, 3)

    def _last_finished(self) -> Finished | None:
        ended = self._session.run.ended
        return None if ended is None else ended.finished

    def _rewrite(self) -> None:
        log = self.query_one(RichLog)
        panel = self.query_one(Vertical)
        panel.border_title = "Log" if self._level == "debug" else f"Log · {self._level} and above"
        log.clear()
        inks = palette(self.app.theme_variables)
        levels = {"debug": inks.muted, "info": inks.text, "warning": inks.warning, "error": inks.error}
        room = max(log.scrollable_content_region.width, _NARROWEST)
        for at, line in self.lines:
            head, *rest = folded(line.text.split("\n"))
            said = Text.assemble(visible(head), *((f"\n{visible(more)}", inks.muted) for more in rest))
            lead = Text.assemble((f"{_clock(at)}  ", inks.muted), (f"{line.level:<9}", levels[line.level]))
            for part in said.wrap(self.app.console, max(room - lead.cell_len, 1)):
                log.write(lead + part, width=room)
                lead = Text(" " * lead.cell_len)
        self._written = self._session.log[-1] if self._session.log else None
        if not self.lines:
            log.write(Text("no messages", style=inks.muted))


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def _place(started: Started | None) -> list[Content]:
    if started is None:
        return [Content.styled("waiting for the engine to start", "$text-muted")]
    versions = " · ".join(f"{name} {version}" for name, version in started.versions.items())
    numbers = f"{visible(started.dtype)}{_share_of_cores(started)} · seed {started.seed}"
    return [
        Content.assemble(
            (visible(started.model), "bold"), f" · {started.parameters:,} parameters · ",
            (visible(started.device), "bold"), f" · {numbers}",
        ),
        Content.styled(f"{visible(versions)} · run {visible(started.run_id)}", "$text-muted"),
    ]  # fmt: skip


def _share_of_cores(started: Started) -> str:
    """How many CPU threads compute, and on how many cores."""
    if not started.threads:
        return ""
    threads = "1 thread" if started.threads == 1 else f"{started.threads} threads"
    if started.processes > 1:
        return f" · {started.processes} processes, {threads} each"
    return f" · {threads}{f' on {started.cores} cores' if started.cores > 1 else ''}"


def _timings(finished: Finished | None, size: Size) -> list[Content]:
    """What the time of an update went to, a line each; in one line on a low screen, which messages need."""
    if finished is None or not finished.timings:
        return []
    timings, whole = finished.timings, sum(finished.timings.values()) or 1.0
    head = Content.assemble((f"update {finished.update}  ", "$text-muted"), (tenths(finished.seconds), "bold"))
    order = [*(name for name in PARTS if name in timings), *(timings.keys() - PARTS.keys())]
    if size.height < _LOW:
        shares = " · ".join(f"{visible(name)} {timings[name] / whole:.0%}" for name in order)
        return [Content.assemble(head, (f"  {shares}", "$text-muted"))]
    cells, longest = _LONG_BAR if size.width >= _LONG else _BAR, max(timings.values()) or 1.0
    bars = [
        Content.assemble(
            (f"{visible(name):<9}", "$text-muted"), f"{timings[name]:7.2f} s {timings[name] / whole:4.0%} ",
            (f"{'▇' * round(cells * timings[name] / longest):<{cells}}", "$text-muted"),
            (f" {PARTS.get(name, '')}", "$text-muted"),
        )
        for name in order
    ]  # fmt: skip
    return [head, *bars]

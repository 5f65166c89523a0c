"""A repair as an experiment: suggested changes and the unchanged run, a few updates each from the same snapshot."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Unmount
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from rlplay.link.messages import AnyCommand, EndProbe
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.text import visible
from rlplay.trace.update import Update
from rlplay.ui.format.keyed import keyed
from rlplay.ui.health.tried_rows import row, scale
from rlplay.ui.health.tried_summary import summary
from rlplay.ui.health.tried_tokens import shown_tokens
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.session.judging import Judging
from rlplay.ui.session.rehearsing import Rehearsing
from rlplay.ui.session.session import Session

WIDTH = 112
"""Cells of the frame, where the screen has them."""
_LEAST = 3
"""Lines of the list, at least: one row."""

Draft = Callable[[Callable[[SomeSettings | None], None]], None]


class RepairScreen(Following[SomeSettings | None]):
    """Its result is the changes that a branch goes on with, or None."""

    HELP = """\
# A repair that is tried

Each row is a change of settings that may help against the problem, and the first row is the unchanged run. All begin at
the end of the same update, with the same weights, prompts and random numbers, and go on for a few updates. Nothing of
this is recorded: afterwards the run is where it was.

The **bars** are the problem's own number, one for each update: left of │ those of the run, right of it those that were
tried. All rows have one scale, from the lowest number to the highest. ✓ gone: the health check no longer finds the
problem. ▲ better and ▼ worse compare the number with that of the unchanged run.

Below are the tokens that showed the problem, and what the same prompt got in the last update that was tried.

`a` starts a branch from that update with the settings of the row, and compares it with this run. `k` adds settings of
your own. `+` and `-` choose how many updates are tried, `enter` tries. `esc` ends what is under way, then closes.
"""
    DEFAULT_CSS = f"""
    RepairScreen > Vertical {{ width: {WIDTH}; height: auto; max-height: 95%; }}
    RepairScreen SteadyStatic {{ height: auto; }}
    RepairScreen OptionList {{
        height: auto; padding: 0; background: $background; scrollbar-size-vertical: 1;
        &, &:focus {{ border: none; background-tint: $foreground 0%; }}
        & > .option-list--option-highlighted, &:focus > .option-list--option-highlighted {{
            background: $foreground 8%; color: $foreground; text-style: none;
        }}
    }}
    """
    SECONDS = 0.1
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "apply", "apply"),
        Binding("k", "own", "knobs", id="knobs"),
        Binding("plus", "more(1)", "one update more"),
        Binding("minus", "more(-1)", "one update less"),
        Binding("question_mark,f1", "help", "help", id="help"),
        Binding("escape", "leave", "end, then close"),
        Binding("q,exclamation_mark", "dismiss", "close"),
    ]

    def __init__(
        self, session: Session, tried: Rehearsing, send: Callable[[AnyCommand], Awaitable[None]], draft: Draft
    ) -> None:
        """`send` sends to the engine; `draft` lets the user change settings, and hands the changes to its argument."""
        super().__init__()
        self._session, self.tried, self._send, self._draft = session, tried, send, draft
        self._judging = Judging(tried)
        self._shown: Update | None = None  # the update with the finding's place
        self._at = 0  # the selected candidate
        self._chosen = False  # whether the user has selected one

    def compose(self) -> ComposeResult:
        with Vertical():
            yield SteadyStatic(id="summary")
            yield OptionList()
            yield SteadyStatic(id="tokens")

    async def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self.run_worker(self._read(), exit_on_error=False)
        if self.tried.fresh:
            await self._send(self.tried.ask())
        self.begin()

    async def _read(self) -> None:
        """Find the update with the finding's place; a large one is read in a thread."""
        place = self.tried.trial.finding.place
        if place is None:
            return
        known = self._session.run.updates.get(place.update)
        with contextlib.suppress(RunFileError):  # the main screen says so where that update is shown
            self._shown = known or await self._session.source.load_in_thread(place.update)
        self.tried.version += 1

    @on(Unmount)
    async def _give_up(self) -> None:
        """End what is under way."""
        self._judging.stop()
        await self._end()

    async def _end(self) -> None:
        if self.tried.under_way:
            self.tried.end()
            await self._send(EndProbe())

    def look(self, at_once: bool = False) -> None:
        """Also let a thread judge what has arrived."""
        self._judging.go_on()
        super().look(at_once)

    def version(self) -> object:
        """What has been tried and judged, whether the engine lives, and the room."""
        return self.tried.version, self._session.failed is not None, self._trains, self._width()

    @property
    def _trains(self) -> bool:
        return self._session.status is not None and self._session.status.running

    def follow(self) -> None:
        """Show how far it is."""
        tried, panel, width = self.tried, self.query_one(Vertical), self._width()
        lost = self._session.failed is not None
        panel.border_title = Content(f"Try a repair · {visible(tried.trial.finding.title)}")
        panel.border_subtitle = keyed(self._keys(lost))
        if not self._chosen and not tried.under_way and tried.best is not None:
            self._at = tried.candidates.index(tried.best)
        ends = scale(tried)
        bars = "" if ends is None else f" · bars from {' to '.join(map(tried.measure.shown, ends))}"
        which = "largest" if tried.measure.wild else "mean"
        number = f"\n\n{tried.measure.name}, {which} of the updates{bars}"
        said = Content.assemble(keyed(summary(tried, lost, self._trains)), (number, "$text-muted"))
        shown = shown_tokens(tried, tried.candidates[self._at], self._shown, width, self._session.step_word)
        self.query_one("#summary", SteadyStatic).say(said)
        self.query_one("#tokens", SteadyStatic).say(shown)
        self._list(said.get_height({}, width + 1) + len(shown.split("\n")))

    def _list(self, others: int) -> None:
        """Draw the rows, in the room that `others` lines leave."""
        tried, options, width = self.tried, self.query_one(OptionList), self._width()
        options.styles.max_height = max(int(self.app.size.height * 0.95) - 2 - others, _LEAST)
        ends = scale(tried) or (0.0, 0.0)
        rows = [row(tried, each, ends, width, at == self._at) for at, each in enumerate(tried.candidates)]
        if options.option_count < len(rows):
            options.add_options(Option("") for _ in rows[options.option_count :])
        for at, each in enumerate(rows):
            options.replace_option_prompt_at_index(at, each)
        options.highlighted = self._at

    @on(OptionList.OptionHighlighted)
    def _selected(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_index != self._at:
            self._at, self._chosen = event.option_index, True
            self.follow()

    @on(OptionList.OptionSelected)
    async def _entered(self) -> None:
        """Try what has not been tried for so many updates yet."""
        await self._try()

    def _width(self) -> int:
        """The characters of a line in the panel, inside of its frame and scroll bar."""
        return min(WIDTH, self.app.size.width) - 6

    def _keys(self, lost: bool) -> str:
        tried, parts = self.tried, []
        if tried.fresh and not lost:
            parts.append("`enter` try")
        parts.append(f"`+ -` {tried.updates} {'update' if tried.updates == 1 else 'updates'}")
        if not lost:
            parts += ["`k` your own", "`a` branch"]
        parts.append(f"`esc` {'end' if tried.under_way else 'close'}")
        return " · ".join(parts)

    async def _try(self) -> None:
        if self.tried.fresh and self._session.failed is None:
            await self._send(self.tried.ask())
            self.look(at_once=True)

    def action_apply(self) -> None:
        """Go on with the settings of the selected row in a branch."""
        changes = self.tried.candidates[self._at].remedy.changes
        if not changes:
            self.notify("The first row changes nothing: the run goes on like that by itself.")
        else:
            self.dismiss(changes)

    def action_own(self) -> None:
        """Let the user choose settings to try as well."""
        self._draft(self._own)

    def _own(self, changes: SomeSettings | None) -> None:
        if changes:
            self.tried.add(changes)
            if not self.tried.under_way:
                self.run_worker(self._try(), exit_on_error=False)

    def action_more(self, by: int) -> None:
        """Try more updates the next time, or fewer."""
        self.tried.more(by)
        self.look(at_once=True)

    async def action_leave(self) -> None:
        """End what is under way; close if nothing is."""
        if self.tried.under_way:
            await self._end()
            self.look(at_once=True)
        else:
            self.dismiss()

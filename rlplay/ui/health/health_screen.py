"""Health: the problems of the run, if any, each with its cause and what to change; every check with its numbers."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from rlplay.health.examine import verdicts
from rlplay.health.finding import Evidence, Finding, Verdict
from rlplay.health.findings_report import Row, called, laid, parts, rows, summary, usual
from rlplay.health.normal import normal
from rlplay.trace.text import visible
from rlplay.ui.format.keyed import keyed
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.panel_messages import Perform, UpdatePicked
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.plot.plot_data import NO_UPDATE
from rlplay.ui.session.examination import examine
from rlplay.ui.session.session import Session
from rlplay.ui.words.diagnoses import progress

WIDTH = 100
"""Cells of the frame, where the screen has them."""


class ProblemList(OptionList):
    """The problems; what pages through a list pages through the whole dialogue."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "screen.page(-1)", "page up", show=False),
        Binding("pagedown", "screen.page(1)", "page down", show=False),
    ]


class HealthScreen(Following[None]):
    """Follows the run while it is open."""

    DEFAULT_CSS = f"""
    HealthScreen > VerticalScroll {{ width: {WIDTH}; height: auto; max-height: 95%; }}
    HealthScreen OptionList {{
        height: auto; max-height: 100%; padding: 0; background: $background;
        &, &:focus {{ border: none; }}
        & > .option-list--option-highlighted, &:focus > .option-list--option-highlighted {{
            background: $foreground 8%; color: $foreground; text-style: none;
        }}
    }}
    """
    SECONDS = 0.5
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "knobs", "knobs", id="knobs"),
        Binding("exclamation_mark", "try", "try a repair", id="try"),
        Binding("escape,h,q", "dismiss", "close"),
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._found: list[Finding] = []

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield SteadyStatic(id="summary")
            yield ProblemList()
            yield SteadyStatic(id="checks")

    def on_mount(self) -> None:
        self.query_one(OptionList).display = False
        self.begin()

    def version(self) -> object:
        """Whatever has happened in the run, how much of it is still to be read, and the room for it."""
        return self._session.version, _left(self._session), self._width()

    def follow(self) -> None:
        """Examine the run up to the update on the screen."""
        session, panel = self._session, self.query_one(VerticalScroll)
        run, found = examine(session)
        panel.border_title = "Health" if run is None else f"Health · {called(run.last, run)}"
        panel.border_subtitle = self._keys(found)
        self._list(found, run)
        if run is None:
            self.query_one("#summary", SteadyStatic).say(keyed(_waiting(session)))
            self.query_one("#checks", SteadyStatic).say(Content(""))
            return
        said = verdicts(run, found)
        self.query_one("#summary", SteadyStatic).say(_summary(found, said, progress(session.run.history)))
        width, usually = self._width(), usual(normal(run))
        lines = [*_lines(rows(said), width), *_lines(usually, width, "Normal")]
        self.query_one("#checks", SteadyStatic).say(Content("\n").join(lines))

    def _width(self) -> int:
        """The characters of a line in the panel, inside of its frame and scroll bar."""
        return min(WIDTH, self.app.size.width) - 5

    def _keys(self, found: list[Finding]) -> Content:
        enter = "`enter` look at it · " * any(finding.place is not None for finding in found)
        knobs = "`k` knobs · " * (self._session.place == "live")
        tries = "`!` try a repair · " * bool(found)
        return keyed(f"{enter}{tries}{knobs}`esc` close")

    def _list(self, found: list[Finding], run: Evidence | None) -> None:
        if found == self._found:
            return
        self._found, options = found, self.query_one(OptionList)
        at = options.highlighted or 0
        options.set_options(Option(_problem(finding, run)) for finding in found)
        options.display = bool(found)
        if found:
            options.highlighted = min(at, len(found) - 1)
            options.focus(scroll_visible=False)  # the summary is above it

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        """Close, and go to the token that shows the problem."""
        place = self._found[event.option_index].place
        if place is None:
            return
        self.dismiss()
        shown = self._session.shown
        if shown is None or shown.number != place.update:
            self.post_message(UpdatePicked(place.update))
        self.post_message(Perform("focus", {"completion": place.answer, "token": place.token}))

    def action_page(self, by: int) -> None:
        """Scroll by a page: the claims stand below the problems."""
        panel = self.query_one(VerticalScroll)
        if by > 0:
            panel.scroll_page_down(animate=False)
        else:
            panel.scroll_page_up(animate=False)

    def action_try(self) -> None:
        """Try what may help against the chosen problem."""
        at = self.query_one(OptionList).highlighted
        self.post_message(Perform("try", self._found[at].name if self._found and at is not None else None))

    def action_knobs(self) -> None:
        """Open the settings, at the one that the chosen finding names first."""
        at = self.query_one(OptionList).highlighted
        settings = self._found[at].settings if self._found and at is not None else ()
        self.dismiss()
        self.post_message(Perform("knobs", settings[0] if settings else None))


def _left(session: Session) -> int:
    return 0 if session.shown is None else session.digesting.left(session.shown.number)


def _waiting(session: Session) -> str:
    left = _left(session)
    if not left:
        return NO_UPDATE if session.place == "end" else "No data yet: press `u` for the first update."
    return f"Reading the run: {left} {'update is' if left == 1 else 'updates are'} left."


def _summary(found: list[Finding], said: list[Verdict], reward: str) -> Content:
    style = "bold $warning" if found else "bold"
    return Content.assemble((summary(found, said), style), f" {reward}".rstrip(), "\n")


def _problem(finding: Finding, run: Evidence | None) -> Content:
    """A finding in full."""
    lines = [Content.assemble(("▲ ", "$warning"), (visible(finding.title), "bold"))]
    lines += [Content.assemble((f"{label}: ", "$text-muted"), text) for label, text in parts(finding, run)]
    return Content("\n").join([*lines, Content("")])


def _lines(rows: list[Row], width: int, heading: str = "") -> list[Content]:
    """Rows as lines, below their heading."""
    lines = [Content(""), Content.styled(heading, "bold")] if heading and rows else []
    for row, (first, *others) in zip(rows, laid(rows, width), strict=True):
        (head, text), mark = first, len(row.mark)
        style = "$success" if row.mark == "✓" else "$text-muted"
        lines.append(Content.assemble((head[:mark], style), head[mark:], (text, "$text-muted")))
        lines += [Content.assemble(title, (rest, "$text-muted")) for title, rest in others]
    return lines

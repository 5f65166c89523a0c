"""Health: the problems of the run, if any; every check with its numbers, and what to try."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen

from rlplay.trace.update import Update
from rlplay.ui.format.text import without_knobs
from rlplay.ui.messages import Perform
from rlplay.ui.session.session import Session
from rlplay.ui.widgets.narrator import keyed
from rlplay.ui.widgets.steady_static import SteadyStatic
from rlplay.ui.words.diagnoses import Finding, examine, progress, warning

_REFRESH_SECONDS = 0.5


class HealthScreen(ModalScreen[None]):
    """Follows the run while it is open."""

    DEFAULT_CSS = """
    HealthScreen { align: center middle; background: $background 70%; }
    HealthScreen > VerticalScroll {
        width: 100; max-width: 100%; height: auto; max-height: 95%; padding: 0 1; scrollbar-size-vertical: 1;
        background: $background; border: round $accent; border-title-color: $accent; border-title-style: bold;
        border-subtitle-color: $text-muted;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "knobs", "knobs"),
        Binding("escape,h,q", "dismiss", "close"),
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def compose(self) -> ComposeResult:
        with VerticalScroll() as panel:
            panel.border_subtitle = keyed(f"{'`k` knobs · ' * (self._session.place == 'live')}`esc` close")
            yield SteadyStatic(id="findings")

    def on_mount(self) -> None:
        self.follow()
        self.set_interval(_REFRESH_SECONDS, self.follow)

    def follow(self) -> None:
        """Examine the newest finished update."""
        session, update = self._session, examined(self._session)
        panel = self.query_one(VerticalScroll)
        if update is None:
            panel.border_title = "Health"
            self.query_one(SteadyStatic).say(keyed("No data yet: press `u` for the first update."))
            return
        panel.border_title = f"Health · update {update.number}"
        findings = examine(update, session.history, session.settings_of(update))
        lines = [_line(finding, adjustable=session.place == "live") for finding in findings]
        page = [_summary(findings, progress(session.history)), Content(""), *lines]
        self.query_one(SteadyStatic).say(Content("\n").join(page))

    def action_knobs(self) -> None:
        """Open the settings."""
        self.dismiss()
        self.post_message(Perform("knobs"))


def examined(session: Session) -> Update | None:
    """The update on the screen; while it is unfinished and has no problem, the one before it."""
    shown = session.shown
    if shown is None or shown.finished is not None or warning(shown, session.history, session.settings_of(shown)):
        return shown
    return session.find(shown.number - 1) if shown.number > 1 else None


def _summary(findings: list[Finding], reward: str) -> Content:
    wrong = sum(bool(finding.wrong) for finding in findings)
    words = ("No problem found.", "1 problem found.", f"{wrong} problems found.")[min(wrong, 2)]
    return Content.assemble((words, "bold $warning" if wrong else "bold"), f" {reward}".rstrip())


def _line(finding: Finding, adjustable: bool) -> Content:
    """One check; names the key for settings only if they are `adjustable`."""
    if finding.wrong:
        wrong = finding.wrong if adjustable else without_knobs(finding.wrong)
        return Content.assemble(("▲ ", "$warning"), (finding.name, "bold"), "  ", keyed(wrong))
    mark, style = ("✓ ", "$success") if finding.evidence else ("– ", "$text-muted")
    evidence = finding.evidence or "not enough data"
    return Content.assemble((mark, style), finding.name, (f"  {evidence}", "$text-muted"))

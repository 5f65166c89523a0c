"""The parts of the comparison: the same answers side by side, and curves with both runs in them."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content

from rlplay.trace.history import History
from rlplay.ui.abreast import level
from rlplay.ui.messages import UpdatePicked
from rlplay.ui.overlay import Overlay
from rlplay.ui.views import Source
from rlplay.ui.widgets.curves import CurvePanel, CurvePanels
from rlplay.ui.widgets.tokens import Tokens

_SHOWN = (("reward", "rewards/accuracies"), ("eval_reward", "loss"), ("kl", "kl_old"), ("completions/mean_length",))


class PairedTokens(Tokens):
    """The answers of one of two runs; each prompt and answer begins on the line on which its partner's does."""

    partner: PairedTokens | None = None

    def __init__(self, mark: tuple[str, str]) -> None:
        """`mark` stands before its title: text and style."""
        super().__init__()
        self._mark = mark

    @property
    def title_room(self) -> int:
        """Cells for the words in the upper border, after the mark."""
        return super().title_room - len(self._mark[0])

    def caption(self, title: Content, subtitle: Content) -> None:
        """The words in the border, with the run's mark."""
        super().caption(Content.assemble(self._mark, title), subtitle)

    def _lay_out(self) -> None:
        super()._lay_out()
        if self.partner is not None and self.partner.is_mounted:
            Tokens._lay_out(self.partner)
            level(self._layout, self.partner._layout)
            self.rebuild()
            self.partner.rebuild()


class ComparedPanel(CurvePanel):
    """One metric of both runs."""

    def __init__(self, view: Overlay) -> None:
        super().__init__(view)
        self._other = view.other

    def action_cycle(self, step: int) -> None:
        """Show the next of all metrics that either run has recorded."""
        names = [] if self.source is None else self.source.history.names()
        names = list(dict.fromkeys([*names, *self._other().names()]))
        if names:
            shown = next((name for name in self.view.metrics if name in names), names[0])
            self.put(Overlay((names[(names.index(shown) + step) % len(names)],), self._other))

    def action_open(self) -> None:
        """Compare the update under the cursor."""
        if self.cursor is not None:
            self.post_message(UpdatePicked(self.cursor))


class ComparedPanels(CurvePanels):
    """Several of them in a row."""

    def __init__(self, other: Callable[[], History]) -> None:
        super().__init__()
        self.panels: list[CurvePanel] = [ComparedPanel(Overlay(names, other)) for names in _SHOWN]

    def overlay(self, history: History) -> None:
        """Draw the first run as it is now, with the other over it."""
        drawn = [panel.show(Source(history)) for panel in self.panels]
        if any(drawn):
            self.align()

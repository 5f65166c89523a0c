"""Which stage has the room, and which others fit this run: at the right end of the line with the phases."""

from __future__ import annotations

from typing import Any

from rich.cells import cell_len
from textual.content import Content

from rlplay.ui.format.keyed import KEY, QUIET, STRONG
from rlplay.ui.format.step_word import worded
from rlplay.ui.main.stages import fitting
from rlplay.ui.session.session import Session
from rlplay.ui.status.status_lines import Bar
from rlplay.verbs import VERBS

_ALL_FROM = 150
"""Columns of the screen from which on all names have room; below, only the present one."""
_GAP = 2


class StageTabs(Bar):
    """The names of the stages in the order of their key; a click chooses one."""

    DEFAULT_CSS = "StageTabs { width: auto; height: 1; padding: 0 1; }"

    def __init__(self, stage: str, id: str | None = None) -> None:
        super().__init__(id=id)
        self._stage, self._places = stage, dict[str, int]()
        self._word = "token"  # what the policy samples

    def mark(self, stage: str) -> None:
        """Show that `stage` has the room now."""
        self._stage = stage
        if self._session is not None:
            self.show(self._session)

    def words(self, session: Session) -> Content:
        """The names, the present one bright, after their key."""
        self._word, stages = session.step_word, fitting(session)
        names = stages if self.app.size.width >= _ALL_FROM else [self._stage]
        key = VERBS["panel"].keys[0]
        parts, at = [(key, KEY)], cell_len(key)
        self._places = {}
        for name in dict.fromkeys([*names, self._stage]):
            word = worded(name, self._word)
            self._places[name] = at + _GAP
            parts += [(" " * _GAP, ""), (word, STRONG if name == self._stage else QUIET)]
            at += _GAP + cell_len(word)
        return Content.assemble(*parts)

    def put(self, content: Content) -> None:
        """Show `content`; its width is the bar's."""
        longer = content.cell_length != self._content.cell_length
        super().put(content)
        if longer:
            self.refresh(layout=True)

    def clicks(self, x: int) -> tuple[str, Any, str]:
        """Giving the room to the stage under the mouse."""
        x -= self.styles.padding.left
        for name, at in self._places.items():
            if at <= x < at + len(name):
                what = "all panels" if name == "all" else f"the {worded(name, self._word)}"
                return "stage", name, f"The screen gives its room to one subject. Click for {what}."
        return "panel", None, "Click for the next subject."

"""What the views of a curve panel draw from, and what they say where there is nothing to draw."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlplay.algorithms.settings import UNKNOWN, Settings
from rlplay.scenario.scenario_world import step_word
from rlplay.trace.beliefs import Beliefs
from rlplay.trace.evaluations import Evaluations
from rlplay.trace.history import History
from rlplay.trace.pulls import PlaneBox
from rlplay.trace.update import Update
from rlplay.ui.format.step_word import worded
from rlplay.ui.plot.curve import Margins
from rlplay.ui.plot.guess import Guess
from rlplay.worlds.world import World

if TYPE_CHECKING:
    from rlplay.worlds.painting import Painting
    from rlplay.worlds.walking import Walk

NEXT_UPDATE = "No data yet: press `u` for the next update."
"""For metrics that a new stage or new settings may compute."""
ENDS_BEFORE = "The recording ends before an update has computed this."
NOT_COMPUTED = "Not computed by this algorithm with these settings."
LIGHT = "Not computed: with observe=light no pass is made for it alone."
NEEDS_A_PASS = ("kl", "kl_old")
"""Metrics that observe=light leaves out, unless the training needs the pass anyway."""
NOT_RECORDED = "Not on record: another program trained this run."
NO_UPDATE = "This recording holds no finished update."
_ROOMY = 36
"""Columns of a panel from which on its axis names a step of the trainer, too."""
GHOSTS = 1
"""Discarded branches drawn together with the live one."""


@dataclass(frozen=True)
class PlotData:
    """The data of a panel: the run so far, the update on the screen and the settings."""

    history: History
    live: Update | None = None  # the last one that has taken an optimizer step
    settings: Settings = UNKNOWN
    room: Margins = (0, 0)  # minimum for labels
    replayed: bool = False  # a recording, so no engine adds to it
    shown: Update | None = None  # the update on the screen
    world: World | None = None
    cursor: tuple[int, int] = (0, 0)  # completion and token
    lines: int = 0  # of the panel
    columns: int = 0  # of the panel; 0: any number
    beliefs: Beliefs | None = None  # the candidates of every update
    evaluations: Evaluations | None = None  # the held-out answers
    box: PlaneBox | None = None  # of the pull map, which filters the tokens
    pulled: Update | None = None  # the last one with a pull map, if that is not `live`
    bands: tuple[int, ...] = ()  # tokens with a band of the river, if not those of the run alone
    guess: Guess | None = None  # of a lesson's question
    plain: bool = False  # the terminal has no colours
    tinted: bool = True  # it has enough of them for shades
    axis: tuple[int, int] | None = None  # the updates of the axis, if they are not those of the history
    awaited: bool = False  # the run waits for the user's labels, and nothing else plays on
    steered: bool = True  # the settings can be changed: rlplay's own engine trains, not another trainer
    foreign: bool = False  # another program trained the run: what it did not write is absent
    on_record: Container[str] = ()  # the settings that the run states; the others have their defaults
    walk: Walk | None = None  # that the user makes in the world
    painting: Painting | None = None  # of the world, by the user
    repainted: bool = False  # since the walks of the update on the screen
    lens: str = ""  # the statistic that the user has chosen for the colours; empty: automatic

    @property
    def mapped(self) -> Update | None:
        """The update of the pull map: the last one whose ratios are known, while a newer one has none yet."""
        return self.live if self.pulled is None else self.pulled

    @property
    def span(self) -> tuple[int, int]:
        """The updates of every axis, so that an update is in the same column in all panels."""
        return self.axis or self.history.extent(GHOSTS)

    def at(self, cursor: int | None) -> str:
        """Where the cursor is, for a title: " at 618 · step 1,237"; "" without one."""
        return "" if cursor is None else f" at {cursor}{self.history.clock.aside(cursor)}"

    def ends(self, first: int, last: int) -> tuple[str, str]:
        """The labels of the first and the last update of an axis: where there is room, with the step of its trainer."""
        aside = self.history.clock.aside(last) if self.columns >= _ROOMY else ""
        return str(first), f"{last}{aside}" if last > first else ""

    def span_from(self, first: int) -> tuple[int, int]:
        """The updates of an axis whose first value is of update `first`: without a value of 0, no column is for it.

        Stacked plots keep their columns in common.
        """
        start, last = self.span
        alone = self.axis is None and not any(self.room)
        ahead = 0 if self.guess is None else self.guess.until
        return (max(start, min(first, 1)) if alone else start), max(last, ahead)

    def coming(self, words: str) -> str:
        """The text of an empty panel: `words`, or that labels come first, or in an empty recording that it is empty."""
        if self.awaited:
            words = f"{words.split(' Press ', maxsplit=1)[0]} `A`: your labels come first."
        return self.worded(words) if self.history.updates or not self.replayed else NO_UPDATE

    def worded(self, text: str) -> str:
        """A text written about tokens, in the words of the run."""
        return worded(text, step_word(self.world))

    @property
    def light(self) -> bool:
        """Whether the settings leave out the passes that only the screen needs."""
        return self.settings.observe == "light"

    def missing(self, title: str, metrics: Iterable[str] = ()) -> str:
        """Why the curve `title` has no points: no update yet, no update since a change, or never computed."""
        if not self.history.updates:
            return self.coming(first_update(title))
        if self.light and set(metrics) & set(NEEDS_A_PASS):
            return LIGHT
        if self.history.settled:
            return NOT_RECORDED if self.foreign else NOT_COMPUTED
        return ENDS_BEFORE if self.replayed else NEXT_UPDATE


def first_update(title: str) -> str:
    """The text of a panel before the first update: what it will show."""
    return f"{title} of each update will be drawn here. Press `u` for the first."

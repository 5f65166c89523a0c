"""A statistic of every token over its position in the answer: dots, with the median and the middle 80 %.

One plot for all statistics: difference to the sampler, entropy, KL, credit, whatever colours the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from textual.content import Content

from rlplay.trace.lenses import LENSES, Lens
from rlplay.trace.numbers import number
from rlplay.trace.update import Update
from rlplay.ui.format.legend import coming
from rlplay.ui.plot.picture import Picture, Size, lit
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.view import VALUE, OfUpdate
from rlplay.ui.position.dots import MEDIAN, Plot, drawing, plot_of
from rlplay.ui.position.places import Places, places, spread

HERE = "bold $foreground"
AUTOMATIC = ("sampler_difference", "entropy", "probability")
"""What is drawn while the colours are automatic: the first of these that the update has."""
CURSOR_SIGN = "◉"
NOTHING_YET = "A dot for each token will be drawn here, by its position in the answer. Press `n` to sample."
_AXIS, _ROOMY = "position in the answer", 50
"""The words below the plot, and the columns from which on the title has the name of the statistic."""


@dataclass(frozen=True)
class ByPosition(OfUpdate):
    """A view of one update: positions `first` to `last` (-1: the end), from 0, with a cursor `at` one of them.

    `rank` says how many tokens at the cursor have been gone to. All views by position are equal: the rest is zoom.
    """

    first: int = field(default=0, compare=False)
    last: int = field(default=-1, compare=False)
    at: int | None = field(default=None, compare=False)
    rank: int = field(default=0, compare=False)

    title = "By position"

    def state(self, source: PlotData) -> object:
        """The tokens with their values, and the one under the cursor."""
        lens, found = drawn(source)
        return lens.name, found, source.cursor, source.settings.kind

    def data(self, source: PlotData) -> object:
        """Every token's position and value, equal for equal plots; None before there are any."""
        found = drawn(source)[1]
        return None if found is None else (found.position.tobytes(), found.value.tobytes())

    def draw(self, source: PlotData, size: Size, log: bool, _smoothing: float = 0.0) -> Picture | str:
        """The dots of the tokens, the band and the line; on a logarithmic scale those of the values' sizes."""
        lens, found = drawn(source)
        if found is None:
            return nothing(source, lens)
        plot = plot_of(found, *self.window(found), size, log)
        neutral = (lens.low + lens.high) / 2 if lens.two_sided else None
        content = drawing(plot, neutral, source.tinted, source.worded(_AXIS))
        if self.at is not None:
            content = lit(content, plot.frame.width, plot.columns(self.at), range(plot.height))
        if (token := _at_cursor(source, found)) is not None and plot.first <= found.position[token] <= plot.last:
            column, row = plot.cell(token)
            at = row * (plot.frame.width + 1) + column
            content = Content.assemble(content[:at], (CURSOR_SIGN, HERE), content[at + 1 :])
        return Picture(content, plot.frame)

    def titles(
        self, source: PlotData, _cursor: int | None, log: bool, _smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        """Above, the statistic and how many tokens there are; below, their quantiles, at the cursor or of all."""
        lens, found = drawn(source)
        if found is None:
            return Content(f"{lens.title} · by position"), Content("")
        first, last = self.window(found)
        shown = of_update(source)
        assert shown is not None
        name = source.worded(lens.title) if source.columns >= _ROOMY else lens.symbol
        parts: list[str | tuple[str, str]] = [f"{name} by position"]
        if (first, last) != (0, found.length - 1):
            parts.append(f" · {first + 1}–{last + 1} of {found.length:,}")
        parts.append(f" · update {shown.number}")
        below: list[str | tuple[str, str]] = []
        if self.at is not None:
            first, last = fitted(source, found, self, log).positions(self.at)
            below.append(f"position {first + 1}{f'–{last + 1}' if last > first else ''} · ")
        of = spread(found, first, last, log)
        if of is None:
            return Content.assemble(*parts), Content.assemble(*below, source.worded("no token"))
        below += [
            ("━ ", MEDIAN), "median ", (number(of.median), VALUE), " · ", *[("▒ ", MEDIAN)] * source.tinted, "80 % ",
            (f"{number(of.low)} … {number(of.high)}", VALUE), " · farthest ", (number(of.farthest), VALUE),
        ]  # fmt: skip
        below += [f" {lens.unit}"] * bool(lens.unit) + [source.worded(f" · {of.tokens:,} tokens")]
        return Content.assemble(*parts, *[f" · log of the size of {lens.symbol}"] * log), Content.assemble(*below)

    def window(self, found: Places) -> tuple[int, int]:
        """The positions in view, within those of the update's answers."""
        end = found.length - 1
        first = min(self.first, end)
        return first, max(first, end if self.last < 0 else min(self.last, end))

    def zoomed(self, closer: bool, found: Places) -> ByPosition:
        """Half of the positions around the cursor, or twice as many."""
        first, last = self.window(found)
        count, end = last - first + 1, found.length
        middle = (first + last) // 2 if self.at is None else self.at
        count = max(count // 2, min(_CLOSEST, end)) if closer else min(count * 2, end)
        begin = min(max(middle - count // 2, 0), end - count)
        return replace(self, first=begin, last=-1 if count == end else begin + count - 1)

    def moved(self, step: int, found: Places, plot: Plot) -> ByPosition:
        """The cursor one column of `plot` on or back; at an end of the window, the window moves too."""
        first, last = self.window(found)
        if self.at is None:
            return replace(self, at=first if step > 0 else last, rank=0)
        low, high = plot.positions(self.at)
        at = min(max(high + 1 if step > 0 else low - 1, 0), found.length - 1)
        shift = max(at - last, 0) - max(first - at, 0)
        last = -1 if self.last < 0 else last + shift
        return replace(self, at=at, rank=0, first=first + shift, last=last)


_CLOSEST = 8
"""Positions in view at least."""


def of_update(source: PlotData) -> Update | None:
    """The update that is drawn: the one on the screen, or while its answers are sampled the last that took a step."""
    shown, before = source.shown, source.live
    sampling = shown is not None and shown.sampled is not None and not shown.sampled.done
    return before if sampling and before is not None else shown


def drawn(source: PlotData) -> tuple[Lens, Places | None]:
    """The statistic, and its tokens in the update on the screen, if it has any."""
    update, chosen = of_update(source), source.lens
    names = (chosen,) if chosen else AUTOMATIC
    found = ((name, places(update, name)) for name in names if update is not None)
    name, tokens = next((each for each in found if each[1] is not None), (names[-1] if chosen else "entropy", None))
    return LENSES[name].of(source.settings), tokens


def nothing(source: PlotData, lens: Lens) -> str:
    """Why there is no plot."""
    update = source.shown
    if update is None or update.sampled is None:
        return source.coming(NOTHING_YET)
    return source.worded(f"{lens.title} {coming(lens, update.phase)}.")


def fitted(source: PlotData, found: Places, view: ByPosition, log: bool) -> Plot:
    """The plot in the panel of `source`."""
    return plot_of(found, *view.window(found), Size(source.columns, source.lines), log)


def _at_cursor(source: PlotData, found: Places) -> int | None:
    """The token under the cursor of the answers, as an index of `found`; None if it has no value."""
    update = source.shown
    if update is None or update is not of_update(source):
        return None
    if update.sampled is None or source.cursor[0] >= update.completions:
        return None
    flat = int(update.sampled.offsets[source.cursor[0]]) + source.cursor[1]
    at = int(np.searchsorted(found.index, flat))
    return at if at < len(found.index) and found.index[at] == flat else None

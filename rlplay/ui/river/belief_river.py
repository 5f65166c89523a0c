"""The belief river: the next-token distribution at the cursor over all updates, as stacked bands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from rich.cells import cell_len, set_cell_size
from textual.content import Content

from rlplay.trace.beliefs import Belief, Beliefs, Context, shares_over, window_of
from rlplay.trace.records import Array
from rlplay.trace.text import visible
from rlplay.ui.format.bars import BARS
from rlplay.ui.format.shown_text import quoted
from rlplay.ui.plot.curve import Margins
from rlplay.ui.plot.picture import AXIS, Axes, Picture, Size, painted
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.probability_lines import share_text
from rlplay.ui.plot.view import signs
from rlplay.ui.river.river_legend import LegendBand, legend
from rlplay.ui.theme.curve_inks import CURVES

NOTHING_YET = "The next token's probabilities in each update will be drawn here. Press `u` for the first."
INKS = tuple(f"${name}" for name in CURVES.values())[:6]
"""Of the named bands, from the bottom to the top."""
OTHERS = "$border"
TEXTURES = "█▒▓░▚╱"
"""Of the named bands where the terminal has no colours; all others stay blank."""
NAMED = 0.05
"""A token gets its own band if its probability reaches this in some update."""
NO_TOKEN = "Put the cursor on a sampled token to see what the model believed there."
NO_CANDIDATES = "This run recorded no candidates at this place."
READING = "Reading the recorded updates…"
_SCALE = "1.0", " .5", "  0"
_LEAST = 12
"""Cells of a prompt in the title."""
_CORNERS = 2
"""Columns of the plot that the words in the border below it cannot use."""


@dataclass(frozen=True)
class River:
    """A view of one place of the answers over the run: the token under the cursor, by default the first one."""

    title = "Belief"
    metrics = ()
    of_run = True

    def state(self, source: PlotData) -> object:
        """The place, and what is known of it."""
        beliefs, place = source.beliefs, _place(source)
        return place, None if beliefs is None else beliefs.version, source.span, source.history.marks, source.bands

    def data(self, source: PlotData) -> object:
        """What is drawn: the probabilities of every update, equal for equal rivers; None before there are any."""
        place = _place(source)
        found = {} if source.beliefs is None or place is None else source.beliefs.at(place)
        return [(number, *belief) for number, belief in found.items()] or None

    def margins(self, _source: PlotData, _log: bool, _lines: int) -> Margins:
        """The cells of the scale."""
        return max(map(len, _SCALE)) + 1, 0

    def draw(self, source: PlotData, size: Size, _log: bool, _smoothing: float = 0.0) -> Picture | str:
        """One column of bands for each update; updates that recorded nothing at this place stay blank."""
        beliefs, place = source.beliefs, _place(source)
        if beliefs is None or not (beliefs.known or beliefs.missing):
            return source.coming(NOTHING_YET)
        if place is None:
            return READING if beliefs.missing else source.worded(NO_TOKEN)
        found = _found(source, beliefs, place)
        if not found:
            return READING if beliefs.missing else NO_CANDIDATES
        tokens = [*source.bands] or named(found)
        frame, filled = _filled(source, found, tokens, size)
        height = len(filled)
        characters, inks, styles = _grid(filled, source.plain)
        for _, row, start, text, style in _names(filled, [quoted(beliefs.name(place, token)) for token in tokens]):
            characters[row, start : start + len(text)] = list(text)
            inks[row, start : start + len(text)] = len(styles)
            styles.append("" if source.plain else style)
        scale = {0: _SCALE[0], height // 2: _SCALE[1], height - 1: _SCALE[2]}
        labels = [scale.get(at, "").rjust(frame.left - 1) + " " for at in range(height)]
        notes = [(frame.column(update), sign, "$warning") for update, sign in signs(source.history.marks)
                 if frame.first <= update <= frame.last]  # fmt: skip
        ends = source.ends(int(frame.first), int(frame.last))
        name = [each for each in _between(ends, "update", frame) if not _under(each, notes)]
        axis = frame.axis(*ends, [*name, *notes])
        return Picture(painted(labels, characters[::-1], inks[::-1], styles, axis), frame)

    def titles(
        self, source: PlotData, cursor: int | None, _log: bool, _smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        """Above, the place and the prompts it is averaged over; below, each band's probability, first and last."""
        beliefs, place = source.beliefs, _place(source)
        if beliefs is None or place is None:
            return Content(self.title), Content("")
        found = _found(source, beliefs, place)
        where = _where(beliefs, place)
        parts = [f"{self.title}{source.at(cursor)}", where]
        if found and source.columns:
            window = _window(source, found, _frame(source, found, Size(source.columns, source.lines)))
            parts[1:1] = [f"mean of {window} updates"] * (window > 1)
        if not place.state and found:
            room = source.columns - _CORNERS - cell_len(" · ".join(parts)) - len(" · ") if source.columns else 0
            parts.append(_asked(source, room) if place.prompt is not None else _averaged(found, cursor, room))
        if beliefs.missing:
            parts.append(f"reading, {len(beliefs.missing)} to go")
        entries = list(_entries(source, beliefs, place, found, cursor)) if found else []
        below = legend(entries, max(source.columns - _CORNERS, 0))
        return Content(" · ".join(map(visible, parts))), below


def named(found: dict[int, Belief]) -> list[int]:
    """The tokens with a band, at most one for each of `INKS`: those that were likeliest at some time.

    The likeliest in the last update come first.
    """
    peaks: dict[int, float] = {}
    for belief in found.values():
        for token, share in belief.shares.items():
            if share >= NAMED and share > peaks.get(token, 0.0):
                peaks[token] = share
    top = sorted(peaks, key=lambda token: -peaks[token])[: len(INKS)]
    last = next(reversed(found.values())).shares if found else {}
    return sorted(top, key=lambda token: (-last.get(token, 0.0), -peaks[token]))


def shared(sources: Sequence[PlotData]) -> tuple[int, ...]:
    """The tokens with a band in the rivers of several runs, so that a token has the same place and ink in each."""
    every = []
    for source in sources:
        place = _place(source)
        if source.beliefs is not None and place is not None:
            every.append(named(_found(source, source.beliefs, place)))
    by_rank = [token for rank in zip_longest(*every) for token in rank if token is not None]
    return tuple(dict.fromkeys(by_rank))[: len(INKS)]


def _place(source: PlotData) -> Context | None:
    return None if source.beliefs is None else source.beliefs.place(source.shown, source.cursor)


def _found(source: PlotData, beliefs: Beliefs, place: Context) -> dict[int, Belief]:
    """The beliefs up to the last finished update, where the other panels end; before the first one, all."""
    found, last = beliefs.at(place), source.span[1]
    return {number: belief for number, belief in found.items() if number <= last} or found


def _frame(source: PlotData, found: dict[int, Belief], size: Size) -> Axes:
    gutters = max(source.room[0], max(map(len, _SCALE)) + 1), source.room[1]
    first, last = min(source.span_from(min(found))[0], *found), max(source.span[1], *found)
    width = max(size.width - sum(gutters), 2)
    return Axes(size.width, gutters[0], gutters[0] + width - 1, first, max(last, first + 1))


def _filled(source: PlotData, found: dict[int, Belief], tokens: list[int], size: Size) -> tuple[Axes, Array]:
    """The frame of a plot of this size, and how many eighths of each cell each band fills."""
    frame, height = _frame(source, found, size), max(size.height - 1, 2)
    return frame, _eighths(_edges(found, tokens, frame, height, _window(source, found, frame)), height)


def _window(source: PlotData, found: dict[int, Belief], frame: Axes) -> int:
    """Over how many neighbouring updates the bands are means."""
    place = _place(source)
    return 1 if place is None else window_of(len(found), frame.right + 1 - frame.left, place)


def _entries(
    source: PlotData, beliefs: Beliefs, place: Context, found: dict[int, Belief], cursor: int | None
) -> Iterator[LegendBand]:
    """The bands for the legend, the most changed first."""
    tokens = [*source.bands] or named(found)
    names = [*(quoted(beliefs.name(place, token)) for token in tokens), "others"]
    filled = _filled(source, found, tokens, Size(source.columns, source.lines))[1] if source.columns else None
    written = set() if filled is None else {band for band, *_ in _names(filled, names[:-1])}
    inks = [*INKS[: len(tokens)], OTHERS]
    for token in (*_by_change(tokens, found), None):
        band = len(tokens) if token is None else tokens.index(token)
        shares = (belief.shares for belief in found.values())
        peak = max(_rest(each, tokens) if token is None else each.get(token, 0.0) for each in shares)
        if token is not None or peak >= 0.005:
            swatch, value = _swatch(band, len(tokens), source.plain), _values(found, tokens, token, cursor)
            yield LegendBand(swatch, inks[band], names[band], value, peak >= NAMED and band not in written)


def _rest(shares: Mapping[int, float], tokens: list[int]) -> float:
    """The probability of all other tokens."""
    return max(1 - sum(shares.get(each, 0.0) for each in tokens), 0.0)


def _edges(found: dict[int, Belief], tokens: list[int], frame: Axes, height: int, window: int) -> Array:
    """The upper edges of the bands in eighths of a row, int [cells of the plot's width, bands]; −1: nothing recorded.

    A cell shows the update nearest to its middle, so one update may fill several cells; of several updates in one
    cell, the latest. Each update is the mean over its `window`.
    """
    known = np.array(sorted(found))
    middles = np.array([frame.x(column) for column in range(frame.left, frame.right + 1)])
    half = (frame.last - frame.first) / max(frame.right - frame.left, 1) / 2
    before = known[np.maximum(np.searchsorted(known, middles + half, side="left") - 1, 0)]
    nearest = np.floor(middles + 0.5).astype(int)
    updates = np.where((before >= middles - half) & (before < middles + half), before, nearest)
    shares = shares_over(found, tokens, window)
    edges = np.rint(np.clip(np.cumsum(shares, axis=1), 0, 1) * height * 8).astype(int)
    places = np.minimum(np.searchsorted(known, updates), len(known) - 1)
    return np.where((known[places] == updates)[:, None], edges[places], -1)


def _eighths(edges: Array, height: int) -> Array:
    """How many eighths of each cell each band fills: int [height, columns, bands + 1], all others last; 0 in gaps."""
    below = np.pad(edges, ((0, 0), (1, 0)))  # the lower edge of each band
    above = np.pad(edges, ((0, 0), (0, 1)), constant_values=height * 8)
    bottoms = np.arange(height)[:, None, None] * 8
    counts = np.clip(above - bottoms, 0, 8) - np.clip(below - bottoms, 0, 8)
    return np.where((edges.min(axis=1, initial=0) >= 0)[:, None], counts, 0)


def _grid(filled: Array, plain: bool) -> tuple[Array, Array, list[str]]:
    """The characters of the cells, bottom line first, the index of each one's style, and the styles.

    A cell shows the lowest of its bands and, behind it, the one that fills most of the rest.
    """
    bands = filled.shape[2] - 1
    inks, textures = [*INKS[:bands], OTHERS], np.array([*TEXTURES[:bands], " "])
    low = (filled > 0).argmax(axis=2)
    heights = np.take_along_axis(filled, low[..., None], axis=2)[..., 0]
    if plain:
        return np.where(heights > 0, textures[filled.argmax(axis=2)], " "), np.zeros_like(low), [""]
    rest = np.where(np.arange(bands + 1) == low[..., None], -1, filled).argmax(axis=2)
    behind = np.where((heights == 0) | (heights == 8), 0, rest + 1)
    styles = [f"{ink} on {other}" if other else ink for ink in inks for other in ("", *inks)]
    return np.array(list(BARS))[heights], low * (bands + 2) + behind, styles


def _names(filled: Array, names: list[str]) -> Iterator[tuple[int, int, int, str, str]]:
    """Each band's name where the band fills the longest stretch of one line: band, line, first cell, text and style."""
    whole = filled == 8
    run = best = np.zeros(whole.shape[::2], dtype=int)  # [height, bands + 1]
    end = np.zeros_like(best)
    for column in range(whole.shape[1]):
        run = (run + 1) * whole[:, column]
        end, best = np.where(run > best, column + 1, end), np.maximum(run, best)
    for band, name in enumerate([*names, "others"]):
        row = int(best[:, band].argmax())
        length = int(best[row, band])
        text = next((text for text in (f" {name} ", name) if cell_len(text) <= length), "")
        if not text or cell_len(text) != len(text):
            continue  # the line below the plot has it
        ink = OTHERS if band == len(names) else INKS[band]
        start = int(end[row, band]) - length + (length - len(text)) // 2
        yield band, row, start, text, f"$foreground on {ink}" if band == len(names) else f"bold $background on {ink}"


def _swatch(band: int, bands: int, plain: bool) -> str:
    return "■" if not plain else TEXTURES[band] if band < bands else "□"


def _by_change(tokens: list[int], found: dict[int, Belief]) -> list[int]:
    """The tokens by how much their probability changed from the first to the last update, the most first."""
    if not found:
        return tokens
    first, last = (found[update].shares for update in (min(found), max(found)))
    return sorted(tokens, key=lambda token: -abs(last.get(token, 0.0) - first.get(token, 0.0)))


def _between(ends: tuple[str, str], words: str, frame: Axes) -> list[tuple[int, str, str]]:
    """The words in the middle of the axis, if they fit between the labels of its ends."""
    left, right = frame.left + len(ends[0]) + 1, frame.right - len(ends[1])
    fits = cell_len(words) == len(words) <= right - left
    return [((left + right - len(words)) // 2, visible(words), AXIS)] if fits else []


def _under(word: tuple[int, str, str], notes: Sequence[tuple[int, str, str]]) -> bool:
    """Whether a sign would stand in the word."""
    return any(word[0] <= at < word[0] + len(word[1]) for at, _, _ in notes)


def _where(beliefs: Beliefs, place: Context) -> str:
    if place.state:
        return f"square {place.state}"
    if not place.before:
        return "first token"
    text = "".join(beliefs.pieces.get(token, "") for token in place.before)
    return f"after “{text if len(text) <= 24 else '…' + text[-23:]}”"


def _asked(source: PlotData, room: int) -> str:
    """The prompt that the river is of, as far as it fits."""
    shown = source.shown
    if shown is None or shown.sampled is None:
        return "this prompt"
    text = shown.sampled.prompts[int(shown.sampled.group[source.cursor[0]])].strip()
    fits = max(room - 2, _LEAST)
    return f"“{text if cell_len(text) <= fits or not room else set_cell_size(text, fits - 1) + '…'}”"


def _averaged(found: dict[int, Belief], cursor: int | None, room: int) -> str:
    """The number of prompts behind the mean: in the update at the cursor, or from the fewest to the most."""
    counts, when = [belief.prompts for belief in found.values()], " an update"
    if cursor in found:
        counts, when = [found[cursor].prompts], ""
    low, high = min(counts), max(counts)
    prompts = f"{low if low == high else f'{low}–{high}'} prompt{'s' * (high > 1)}"
    whole = (f"mean of {prompts}{when}", f"mean of {prompts}")
    return next((words for words in whole if not room or len(words) <= room), prompts)


def _values(found: dict[int, Belief], tokens: list[int], token: int | None, cursor: int | None) -> str:
    def share(update: int) -> str:
        shares = found[update].shares
        return share_text(_rest(shares, tokens) if token is None else shares.get(token, 0.0)).strip()

    if not found:
        return ""
    if cursor is not None:
        return share(cursor) if cursor in found else "–"
    first, last = min(found), max(found)
    return share(last) if first == last else f"{share(first)}→{share(last)}"

"""What else could have come where a token was sampled, and how likely each was before and after the update."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size

from rlplay.trace.records import Array
from rlplay.ui.format.bars import moved
from rlplay.ui.format.number_cells import signed
from rlplay.ui.format.shown_text import quoted
from rlplay.ui.format.step_word import worded
from rlplay.ui.theme.inks import Palette
from rlplay.ui.tokens.facts import AnswerFacts

LEAST, MOST, TALL = 3, 8, 34
"""The fewest and the most candidates, and the lines of a panel from which on each bar has two."""
WIDEST, NUMBER, BAR = 24, 5, 100
"""Cells for a candidate's text at most, for a probability, and for a bar at most, to keep both near each other."""
SLIGHT = 0.005
"""Probabilities below this are written as <.01, and smaller changes are not coloured."""


class Candidates(NamedTuple):
    """The lines of the candidates, and the ids of those that have one, top to bottom."""

    lines: list[list[Segment]]
    ids: list[int]


def candidates(
    facts: AnswerFacts, token: int, size: Size, palette: Palette, limit: int = MOST, shown: float = 1.0,
    picked: int | None = None,
) -> Candidates:  # fmt: skip
    """A line of heads, one for each of the `limit` likeliest tokens at this place, and one for all others together.

    Each has a bar for its probability: what the update left, and what it added or took. `shown` is the share of the
    change that the bars have, while they move; the numbers are always the recorded ones. The name of the id `picked`
    has the cursor.
    """
    sampled = facts.sampled
    ids = [int(x) for x in sampled.top_ids[token]]
    if not ids and np.isnan(sampled.old_logprobs[token]):
        return Candidates([[Segment("its probability is not on record", palette.muted)]], [])
    old = _by_id(ids, sampled.top_logprobs, token)
    ref = _by_id(ids, facts.ref_top, token)
    new = _by_id(ids, facts.new_top, token)
    sampler = _by_id(ids, sampled.sampling_top_logprobs, token)
    teacher = _by_id(ids, facts.teacher_top, token)
    pieces = sampled.pieces
    chosen = int(sampled.token_ids[token])
    if chosen not in old:
        for column, logprobs in (
            (old, sampled.old_logprobs), (ref, facts.ref), (new, facts.new), (sampler, sampled.sampling_logprobs),
            (teacher, facts.teacher),
        ):  # fmt: skip
            if logprobs is not None:
                column[chosen] = float(np.exp(logprobs[token]))
    favourite = facts.favourite(token)
    if ids and favourite is not None and favourite.id not in (*ids, chosen):
        new[favourite.id], pieces = favourite.probability, pieces | {favourite.id: favourite.text}
    listed = _likeliest(ids, chosen, old, new, limit)
    if size.height < TALL:  # where lines are few, those without a bar are left to "all others"
        seen = [i for i in listed if i == chosen or max(table.get(i, 0.0) for table in (ref, old, new)) >= SLIGHT]
        listed = seen if len(seen) >= LEAST else listed[:LEAST] if chosen in listed[:LEAST] else listed
    q = facts.action_values(token)
    others = [_rest(column, listed) for column in (old, new)]
    # The reference has a column where it differs.
    apart = any(abs(ref[i] - old[i]) >= SLIGHT for i in listed if i in ref and i in old)
    beside = {"ref": ref if apart and not q else {}, "sampler": sampler, "teacher": teacher}
    columns = {name: column for name, column in beside.items() if column}
    names = [quoted(pieces.get(i, "")) for i in listed]
    table = _Table(size, palette, names, [*["Q"] * bool(q), *columns], bool(new), shown)
    lines = [table.heads(bool(ids), facts.update.step_word)]
    for i, name in zip(listed, names, strict=True):
        style = palette.cursor if i == picked else palette.strong if i == chosen else palette.text
        first = [_worth(q.get(pieces.get(i, "")))] * bool(q) + [_probability(each.get(i)) for each in columns.values()]
        before = _probability(old[i]) if i in old else _at_most(min(old[each] for each in ids))
        lines += table.row(name, first, before, (old.get(i), new.get(i)), style, i == chosen)
    rest = [_rest(column, listed) for column in columns.values()]
    if any(share is not None and share >= SLIGHT for share in (*rest, *others)):
        first = [_worth(None)] * bool(q) + [_probability(each) for each in rest]
        lines += table.row(table.others, first, _probability(others[0]), others, palette.muted, False)
    return Candidates(lines, listed)


SHORT = {"sampler": "smpl", "teacher": "tchr"}
"""Titles of columns where room is short."""
_SHORTEST = 3
"""Cells of a bar for which names are shortened."""
_ROOMY = 60
"""Cells from which on the titles of columns are whole words."""


class _Table:
    """The columns of a panel of this `size`: mark, name, bar, numbers; `first` are the titles of those before old."""

    def __init__(
        self, size: Size, palette: Palette, names: Sequence[str], first: Sequence[str], renewed: bool, shown: float
    ) -> None:
        widest = max(map(cell_len, (*names, "all others")))
        titles = list(first) if size.width >= _ROOMY else [SHORT.get(each, each) for each in first]
        self._widths = [max(len(each) + 1, NUMBER) for each in titles]
        numbers = 2 * NUMBER + sum(self._widths)
        self._name = min(widest + 1, max((size.width - numbers) // 3, 7), WIDEST)
        self._name = max(min(self._name, size.width - numbers - 3 - _SHORTEST), 4)
        self._bar = max(min(size.width - 3 - self._name - numbers, BAR), 1)
        self._high = 2 if size.height >= TALL else 1
        self._palette, self._first, self._renewed, self._shown = palette, titles, renewed, shown

    @property
    def others(self) -> str:
        """The name of the last line."""
        return "all others" if self._name > len("all others") else "others"

    def heads(self, recorded: bool, word: str) -> list[Segment]:
        """What each column has; `word` names what is sampled."""
        room = self._name + self._bar + 1
        names = ("most likely next tokens", "most likely next", "likeliest", "") if recorded else ("",)
        head = next(words for words in names if len(words) <= room)
        numbers = "".join(self._aligned(self._first)) + f"{'old':>{NUMBER}}{'new':>{NUMBER}}"
        return [Segment(f"  {worded(head, word):<{room}}{numbers}", self._palette.muted)]

    def _aligned(self, texts: Sequence[str]) -> list[str]:
        return [f"{text:>{width}}" for text, width in zip(texts, self._widths, strict=True)]

    def row(
        self, name: str, first: Sequence[str], before: str, probabilities: Sequence[float | None], style: Style,
        here: bool,
    ) -> list[list[Segment]]:  # fmt: skip
        """The lines of a candidate: its name, a bar, its probability under old and new policy."""
        old, new = probabilities
        was = old or 0.0
        latest = new if new is not None and np.isfinite(new) else was
        palette, now = self._palette, _probability(new) if self._renewed else " " * NUMBER
        stayed, gained, lost = moved(was, was + (latest - was) * self._shown, self._bar)
        bar = [
            Segment(f" {stayed}", palette.text if here else palette.muted),
            Segment(gained if palette.coloured else gained.replace("█", "▓"), palette.up_text),
            Segment(lost, palette.down_text),
        ]
        lines = [
            [
                Segment("▸ " if here else "  ", palette.strong),
                Segment(set_cell_size(name, self._name), style),
                *bar,
                Segment("".join(self._aligned(first)), palette.muted),
                Segment(before, style),
                Segment(now, self._change(was, new, style)),
            ]
        ]
        if self._high > 1:
            lines += [[Segment(" " * (2 + self._name)), *bar], []]
        return lines

    def _change(self, old: float, new: float | None, otherwise: Style) -> Style:
        if new is None or not abs(new - old) >= SLIGHT:  # not re-evaluated is NaN
            return otherwise
        return self._palette.up_text if new > old else self._palette.down_text


def _by_id(ids: list[int], logprobs: Array | None, token: int) -> dict[int, float]:
    if logprobs is None:
        return {}
    return {i: float(np.exp(lp)) for i, lp in zip(ids, logprobs[token], strict=False)}


def _likeliest(
    ids: list[int], chosen: int, old: Mapping[int, float], new: Mapping[int, float], limit: int
) -> list[int]:
    """Those likeliest before or after the update, by probability before it, then the chosen token, then a newcomer.

    The chosen token is always among them.
    """
    every = [*ids, *(i for i in dict.fromkeys([chosen, *new]) if i not in ids)]
    likely = {i: float(np.fmax(old.get(i, np.nan), new.get(i, np.nan))) for i in every}
    likely[chosen] = max(likely[chosen], 1.0) if chosen not in ids else likely[chosen]
    kept = set(sorted(every, key=lambda i: -likely[i])[:limit])
    return [i for i in every if i in kept]


def _rest(table: Mapping[int, float], listed: Sequence[int]) -> float | None:
    """The total probability of all that are not in `table` and on the list; None if no probability is known."""
    known = [table[i] for i in listed if i in table]
    share = 1.0 - sum(known)
    return max(0.0, share) if known and np.isfinite(share) else None


def _at_most(bound: float) -> str:
    """A probability that was not recorded, since those of all candidates were larger."""
    return f" ≤{math.ceil(100 * bound) / 100:.2f}".replace("0.", ".")


def _worth(value: float | None) -> str:
    """A value Q(s, a) in the width of a probability."""
    return "    ·" if value is None else f"{signed(value).strip():>5}"


def _probability(value: float | None) -> str:
    if value is None or not np.isfinite(value):
        return "    ·"
    if value >= 0.995:
        return " 1.00"
    return " <.01" if 0 < value < 0.005 else f"  {value:.2f}".replace("0.", " .", 1)[-5:]

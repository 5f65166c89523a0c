"""What else could have come where a token was sampled, and how likely each was before and after the update."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size

from rlplay.trace.records import Array
from rlplay.ui.format.bars import moved
from rlplay.ui.format.number_cells import signed
from rlplay.ui.format.shown_text import quoted
from rlplay.ui.theme.inks import Palette
from rlplay.ui.tokens.facts import AnswerFacts

SHOWN, FEW, ROOMY = 8, 5, 24
"""Candidates in a panel of `ROOMY` lines or more (`SHOWN`), and in a lower one (`FEW`)."""
WIDEST, BAR = 24, 16
"""Cells for a candidate's text and for its bar at most, to keep the numbers near both."""
SLIGHT = 0.005
"""Probabilities below this are written as <.01, and smaller changes are not coloured."""


def candidates(facts: AnswerFacts, token: int, size: Size, palette: Palette) -> list[list[Segment]]:
    """A line of heads, one for each of the likeliest tokens at this place, and one for all others together."""
    sampled = facts.sampled
    ids = [int(x) for x in sampled.top_ids[token]]
    if not ids and np.isnan(sampled.old_logprobs[token]):
        return [[Segment("its probability is not on record", palette.muted)]]
    table = _Table(size.width, palette)
    limit = SHOWN if size.height >= ROOMY else FEW
    old = _by_id(ids, sampled.top_logprobs, token)
    ref = _by_id(ids, facts.ref_top, token)
    new = _by_id(ids, facts.new_top, token)
    pieces = sampled.pieces
    chosen = int(sampled.token_ids[token])
    if chosen not in old:
        for column, logprobs in ((old, sampled.old_logprobs), (ref, facts.ref), (new, facts.new)):
            if logprobs is not None:
                column[chosen] = float(np.exp(logprobs[token]))
    favourite = facts.favourite(token)
    if ids and favourite is not None and favourite.id not in (*ids, chosen):
        new[favourite.id], pieces = favourite.probability, pieces | {favourite.id: favourite.text}
    listed = _likeliest(ids, chosen, old, new, limit)
    q = facts.action_values(token)
    grown = not {chosen, *ids[:limit]}.issuperset(listed)
    lines = [table.heads(bool(ids), grown, bool(q))]
    for i in listed:
        style = palette.strong if i == chosen else palette.text
        text = pieces.get(i, "")
        first = _worth(q.get(text)) if q else _probability(ref.get(i))
        before = _probability(old[i]) if i in old else _at_most(min(old[each] for each in ids))
        lines.append(table.row(quoted(text), first, before, (old.get(i), new.get(i)), style, i == chosen))
    others = [_rest(column, listed) for column in (ref, old, new)]
    if any(share is not None and share >= SLIGHT for share in others):
        first = _worth(None) if q else _probability(others[0])
        lines.append(table.row(table.others, first, _probability(others[1]), others[1:], palette.muted, False))
    return lines


class _Table:
    """The columns of a panel `width` cells wide."""

    def __init__(self, width: int, palette: Palette) -> None:
        room = width - 18
        self._bar = min(max(2 * room // 5, 4), BAR)
        self._name = min(max(room - self._bar, 7), WIDEST)
        self._palette = palette

    @property
    def others(self) -> str:
        """The name of the last line."""
        return "all others" if self._name >= len("all others") else "others"

    def heads(self, recorded: bool, grown: bool, valued: bool) -> list[Segment]:
        """What each column has; `grown` where a candidate is listed for what it became."""
        by = "by old or new" if grown else "by old"
        heads = (f"likeliest {by}", f"top {by}", by, by[3:], "") if recorded else ("",)
        head = next(words for words in heads if len(words) <= self._name)
        first = "   Q" if valued else " ref"
        return [Segment(f"  {head:<{self._name}} {first}  old  new", self._palette.muted)]

    def row(
        self, name: str, first: str, before: str, probabilities: Sequence[float | None], style: Style, here: bool
    ) -> list[Segment]:  # fmt: skip
        """One line: a candidate, its number in the first column, its probability under old and new policy, a bar."""
        old, new = probabilities
        latest = new if new is not None and np.isfinite(new) else old or 0.0
        stayed, gained, lost = moved(old or 0.0, latest, self._bar)
        return [
            Segment("▸ " if here else "  ", self._palette.key),
            Segment(set_cell_size(name, self._name), style),
            Segment(first, self._palette.muted),
            Segment(before, style),
            Segment(_probability(new), self._change(old or 0.0, new, style)),
            Segment(f" {stayed}", self._palette.accent),
            Segment(gained, self._palette.up_text),
            Segment(lost, self._palette.down_text),
        ]

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

"""Describes the token that the key for the largest or the smallest value has found."""

from __future__ import annotations

from rlplay.trace.lenses import Lens
from rlplay.ui.format.number_cells import plain, signed
from rlplay.ui.format.shown_text import within
from rlplay.ui.format.step_word import worded
from rlplay.ui.tokens.ranking import Ranked
from rlplay.ui.tokens.token_layout import MARKS


def describe_ranked(lens: Lens, ranks: list[Ranked], at: int, which: tuple[str, str], word: str, lowest: bool) -> str:
    """Describe `ranks[at]`, a token of the order that `x` goes through, or `X` for the `lowest`.

    `which` is the token's text and its answer's name; `word` names what the policy samples.
    """
    token, answer = which
    here, key = ranks[at], "X" if lowest else "x"
    more = f"; `{key}` next." if len(ranks) > 1 else "."
    if lens.scale == "states":
        mark = MARKS[int(here.value)]
        if len(ranks) == 1:
            return f"The only clipped {word} ({mark})."
        return f"Clipped {word} {at + 1} of {len(ranks)} ({mark}): {token} of {answer}{more}"
    digits = 2 if lens.high >= 0.1 else 4
    value = signed(here.value, digits).strip() if lens.low < 0 else plain(here.value, digits)
    falls = len(ranks) > 1 and ranks[0].value < ranks[-1].value
    small = lowest or falls or (lens.two_sided and here.value < (lens.low + lens.high) / 2)
    size = "smallest" if small else "largest"
    size = size.capitalize() if not at else f"{_nth(at + 1)} {size}"
    shared = f"; {here.sharing} {word}s of the answer share it" if here.sharing > 1 else ""
    return f"{size} {worded(within(lens.title), word)}: {value}, {word} {token} of {answer}{shared}{more}"


def _nth(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"

"""Describes the token that the key for the largest value has found."""

from __future__ import annotations

from collections.abc import Sequence

from rlplay.trace.lenses import Lens
from rlplay.trace.records import Array
from rlplay.ui.format.number_cells import plain, signed
from rlplay.ui.format.shown_text import within
from rlplay.ui.format.step_word import worded
from rlplay.ui.tokens.token_layout import MARKS

ON = "; `x` goes to the next."


def describe_largest(
    lens: Lens, best: float, places: Sequence[tuple[int, int]] | Array, at: int, which: tuple[str, str, int], word: str
) -> str:
    """Describe `places[at]`, one of the `places` (completion, token) where the statistic is `best`.

    `which` is the token's text, its answer's name, and the number of tokens there that are the policy's; `word` names
    what the policy samples.
    """
    token, answer, own = which
    count = len(places)
    if lens.name == "clip_state":
        mark = MARKS[int(best)]
        return f"The only clipped {word} ({mark})." if count == 1 else f"One of {count} clipped {word}s ({mark}){ON}"
    value = signed(best).strip() if lens.low < 0 else plain(best)
    below = lens.two_sided and best < (lens.low + lens.high) / 2
    found = f"{'Smallest' if below else 'Largest'} {worded(within(lens.title), word)}: {value}"
    if count == 1:
        return f"{found}, {word} {token} of {answer}."
    if count == own and len({completion for completion, _ in places}) == 1:
        return f"{found}: all {count} {word}s of {answer} share it{ON}"
    return f"{found}, at {at + 1} of {count} {word}s that have it: {token} of {answer}{ON}"

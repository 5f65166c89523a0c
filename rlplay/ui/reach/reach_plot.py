"""Draws a token's probability over the reward of its answer: measured points, and the target that is dragged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from textual.content import Content

from rlplay.trace.numbers import compact, real_minus
from rlplay.ui.session.reaching import Reaching

_LEFT, _BELOW = 5, 3
AXIS = "reward of this answer"
_MARGIN = 0.08
_SPAN = 0.05
"""The axis shows at least so much probability."""


class Frame(NamedTuple):
    """Where things are: `width` × `height` cells right of the axis, rewards from `first` to `last`, `low` to `high`."""

    width: int
    height: int
    first: float
    last: float
    low: float
    high: float

    @classmethod
    def of(cls, columns: int, lines: int, reaching: Reaching) -> Frame:
        """For a picture of this size, with every point and the target in it."""
        known = [*reaching.points.values(), *(each for each in (reaching.old, reaching.target) if each is not None)]
        low, high = (min(known), max(known)) if known else (0.0, 1.0)
        room = max(_MARGIN * (high - low), (_SPAN - (high - low)) / 2, 0.0)
        rewards = [*reaching.points, *reaching.asked, reaching.reward]
        return cls(
            max(columns - _LEFT, 8), max(lines - _BELOW, 3), min(rewards) - 0.15, max(rewards) + 0.15,
            max(low - room, 0.0), min(high + room, 1.0),
        )  # fmt: skip

    def column(self, reward: float) -> int:
        """The cell of a reward."""
        share = (reward - self.first) / (self.last - self.first)
        return min(max(int(share * self.width), 0), self.width - 1)

    def line(self, probability: float) -> int:
        """The line of a probability, the highest first."""
        share = (probability - self.low) / ((self.high - self.low) or 1.0)
        return min(max(round((1 - share) * (self.height - 1)), 0), self.height - 1)

    def probability_at(self, line: int) -> float:
        """The probability in the middle of a line."""
        share = 1 - min(max(line, 0), self.height - 1) / max(self.height - 1, 1)
        return self.low + share * (self.high - self.low)


def drawn(frame: Frame, reaching: Reaching) -> Content:
    """The picture, with its axes."""
    signs = np.full((frame.height, frame.width), " ", dtype=object)
    inks = np.full((frame.height, frame.width), "", dtype=object)

    def put(line: int, column: int, sign: str, ink: str) -> None:
        signs[line, column], inks[line, column] = sign, ink

    if reaching.old is not None:
        for column in range(frame.width):
            put(frame.line(reaching.old), column, "┈", "$text-muted")
    known = sorted(reaching.points.items())
    columns = np.array([frame.column(reward) for reward, _ in known])
    if len(known) > 1:
        for column in range(columns[0], columns[-1] + 1):
            put(frame.line(float(np.interp(column, columns, [p for _, p in known]))), column, "·", "$scale-up")
    if reaching.target is not None:
        for column in range(frame.width):
            put(frame.line(reaching.target), column, "━", "$accent")
    for reward, probability in known:
        earned = reward == reaching.reward
        put(frame.line(probability), frame.column(reward), "◆" if earned else "●", "bold $foreground")
    lines = [_row(signs[at], inks[at], _label(frame, reaching, at)) for at in range(frame.height)]
    return Content("\n").join([*lines, *_axis(frame, reaching)])


def _row(signs: object, inks: object, label: str) -> Content:
    parts = list(zip(signs, inks, strict=True))  # type: ignore[call-overload]
    return Content.assemble((f"{label:>{_LEFT - 1}} ", "$text-muted"), *parts)


def _label(frame: Frame, reaching: Reaching, line: int) -> str:
    marked = {0: frame.high, frame.height - 1: frame.low}
    if reaching.target is not None:
        marked[frame.line(reaching.target)] = reaching.target
    return f"{marked[line]:.2f}".replace("0.", ".", 1) if line in marked else ""


def _axis(frame: Frame, reaching: Reaching) -> list[Content]:
    words = [" "] * frame.width
    for reward in (reaching.reward, *sorted(reaching.points)):
        text = real_minus(compact(reward))
        begin = min(max(frame.column(reward) - len(text) // 2, 0), frame.width - len(text))
        if all(each == " " for each in words[max(begin - 1, 0) : begin + len(text) + 1]):
            words[begin : begin + len(text)] = text
    blank = " " * _LEFT
    return [
        Content.styled(blank + "─" * frame.width, "$text-muted"),
        Content(blank + "".join(words)),
        Content.styled(f"{blank}{AXIS:^{frame.width}}", "$text-muted"),
    ]

"""What the learner predicted of a curve: a dashed arrow from where it was, over which the curve is then drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlplay.scenario.script import Way
from rlplay.ui.plot.canvas import Canvas
from rlplay.ui.plot.picture import Axes
from rlplay.ui.plot.strokes import thin

INK, WORDS = "$foreground", "your guess"
_RISE: dict[Way, float] = {"falls": -0.4, "stays": 0.0, "rises": 0.4}
"""Shares of the height. A guess has a direction and no size."""
_ARROWS: dict[Way, str] = {"falls": "↘", "stays": "→", "rises": "↗"}


@dataclass(frozen=True)
class Guess:
    """A question about `metric`, asked after `update` and answered at `until`; `way` is None until the guess."""

    metric: str
    update: int
    until: int
    way: Way | None = None


def draw_guess(canvas: Canvas, frame: Axes, guess: Guess, height: float) -> None:
    """Draw the arrow from `height`, 0 to 1, where the curve was; its words where nothing else is."""
    start, end = (frame.column(update) - frame.left for update in (guess.update, guess.until))
    if guess.way is None or end <= start:
        return
    aim = float(np.clip(height + _RISE[guess.way], 0, 1))
    thin(canvas, np.array([start, end], dtype=float), np.array([height, aim]), INK, "dashed")
    row = min(int(aim * canvas.height), canvas.height - 1)
    canvas.write(end, row, _ARROWS[guess.way], f"bold {INK}")
    first = max(end + 1 - len(WORDS), 0)
    rows = [at for at in (row + 1, row - 1, row + 2, row - 2) if 0 <= at < canvas.height]
    place = next((at for at in rows if canvas.free(range(first, first + len(WORDS)), at)), None)
    if place is not None and first + len(WORDS) <= canvas.width:
        for at, character in enumerate(WORDS, first):
            canvas.write(at, place, character, INK)

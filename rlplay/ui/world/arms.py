"""A bandit: no map, but a bar for each arm."""

from __future__ import annotations

from textual.content import Content

from rlplay.trace.text import visible
from rlplay.ui.format.bars import moved
from rlplay.ui.plot.picture import Size
from rlplay.ui.world.big_signs import big, readable
from rlplay.ui.world.canvas import Canvas
from rlplay.ui.world.reading import Reading
from rlplay.ui.world.short_numbers import share, short

_TALLEST = 7
"""Lines of a bar."""
_LEFT, _RIGHT = 9, 15
"""Cells for the name and the reward, and for the probabilities."""
_FOR_LARGE = 4
"""Lines of a bar from which on its probability is in large digits, with the one before below."""
_BAR, _GAINED, _LOST, _MUTED = "$secondary", "$scale-up", "$scale-down", "$text-muted"


def arms(found: Reading, size: Size) -> Content | str:
    """Each arm's reward, and its probability before and after, averaged over the situations: bars as thick as fit."""
    world, count = found.world, len(found.world.arms)
    if size.height < count:
        return f"The {count} arms take {count} lines: make the terminal larger."
    tall = min((size.height + 1) // count - 1, _TALLEST) or 1
    step = tall + (size.height + 1 >= count * (tall + 1))
    canvas = Canvas(size.width, min(count * step, size.height))
    chances = _chances(found)
    for place, (arm, worth) in enumerate(world.arms.items()):
        top, middle = place * step, place * step + (tall - 1) // 2
        if tall >= _FOR_LARGE and readable(arm):
            canvas.bitmap(top, 0, big(arm), "bold $foreground")
            canvas.put(top + tall - 1, 0, short(worth, signed=True), _MUTED)
        else:
            canvas.put(middle, 0, visible(arm), "bold")
            canvas.put(middle, 2, f"{short(worth, signed=True):>6}", _MUTED)
        if arm in chances:
            _draw_bar(canvas, top, tall, *chances[arm])
    return Content("\n").join(canvas.content())


def _chances(found: Reading) -> dict[str, tuple[float | None, float]]:
    """By arm, its probability before the update, if it has ended, and the newest one."""
    known = [square for square in found.chart.squares.values() if square.policy is not None]
    ended = bool(known) and known[0].after is not None
    chances: dict[str, tuple[float | None, float]] = {}
    for arm in found.world.arms if known else ():
        before = [square.before[arm] for square in known if square.before is not None]
        newest = sum(square.policy[arm] for square in known if square.policy) / len(known)
        chances[arm] = sum(before) / len(before) if before and ended else None, newest
    return chances


def _draw_bar(canvas: Canvas, top: int, tall: int, before: float | None, newest: float) -> None:
    room = max(canvas.width - _LEFT - _RIGHT, 4)
    parts = moved(newest if before is None else before, newest, room)
    for line in range(top, top + tall):
        column = _LEFT
        for text, style in zip(parts, (_BAR, _GAINED, _LOST), strict=True):
            canvas.put(line, column, text, style)
            column += len(text)
    right, was = _LEFT + room + 1, "" if before is None else f"{share(before)} → "
    if tall < _FOR_LARGE:
        canvas.put(top + (tall - 1) // 2, right, f"{was}{share(newest)}", "")
        return
    large = readable(share(newest))
    if large:
        canvas.bitmap(top, right, big(share(newest)), "bold $foreground")
    if was or not large:
        canvas.put(top + tall - 1, right, f"{was}{share(newest)}", _MUTED)

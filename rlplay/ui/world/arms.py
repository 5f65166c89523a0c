"""A bandit: no map, but a bar for each arm."""

from __future__ import annotations

from textual.content import Content

from rlplay.trace.text import visible
from rlplay.ui.format.bars import horizontal
from rlplay.ui.plot.picture import Size
from rlplay.ui.world.reading import Reading
from rlplay.ui.world.short_numbers import share, short

_TALLEST = 3
"""Lines of a bar."""
_BESIDE = 24
"""Cells for the name, the reward and the probabilities."""


def arms(found: Reading, size: Size) -> Content | str:
    """Each arm's reward, and its probability before and after, averaged over the situations: bars as thick as fit."""
    world = found.world
    if size.height < len(world.arms):
        return f"The {len(world.arms)} arms take {len(world.arms)} lines: make the terminal larger."
    known = [square for square in found.chart.squares.values() if square.policy is not None]
    tall = min((size.height + 1) // len(world.arms) - 1, _TALLEST) or 1
    spaced = size.height + 1 >= len(world.arms) * (tall + 1)
    room = max(size.width - _BESIDE, 4)
    lines: list[Content] = []
    for arm, worth in world.arms.items():
        parts: list[tuple[str, str]] = [(visible(arm), "bold"), (f" {short(worth, signed=True):>6} ", "$text-muted")]
        bar = ""
        if known:
            chance = sum(square.policy[arm] for square in known if square.policy) / len(known)
            before = [square.before[arm] for square in known if square.before is not None]
            bar = horizontal(chance, room)
            moved = f"{share(sum(before) / len(before))} → " if before and known[0].after is not None else ""
            parts += [(bar, "$secondary"), (f" {moved}{share(chance)}", "")]
        plain = Content.assemble(" " * 9, (bar, "$secondary"))
        middle = tall // 2
        lines += [plain] * middle + [Content.assemble(*parts)] + [plain] * (tall - 1 - middle)
        lines += [Content("")] * spaced
    return Content("\n").join(lines[: -1 if spaced else None])

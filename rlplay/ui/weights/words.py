"""What an update moved, in sentences with the numbers that were measured."""

from __future__ import annotations

import math

from rlplay.trace.numbers import number
from rlplay.trace.questions import Weighed
from rlplay.trace.text import visible
from rlplay.ui.weights.model_grid import Grid, relative
from rlplay.ui.weights.moved_picture import share


def updates(since: int, update: int) -> str:
    """The updates between two moments: "Update 3", "Updates 2 to 4"."""
    return f"Update {update}" if update == since + 1 else f"Updates {since + 1} to {update}"


def summary(weighed: Weighed, grid: Grid) -> list[str]:
    """How many numbers changed and by how much; where most; what was not trained."""
    weights = [weight for weight in weighed.weights if weight.size or weight.moved]
    changed, count = sum(weight.changed for weight in weights), sum(weight.numbers for weight in weights)
    whole = relative(math.hypot(*(w.moved for w in weights)), math.hypot(*(w.size for w in weights)))
    which = "" if weighed.model == "policy" else " of the reward model"
    every = f"all {count:,}" if changed == count else f"{changed:,} of {count:,}"
    size = f", by {share(whole)} of their norm" if math.isfinite(whole) else ""
    lines = [f"{updates(weighed.since, weighed.update)} changed {every} numbers{which}{size}."]
    largest = grid.largest
    if largest is not None and largest.moved:
        lines.append(f"The largest relative change, {share(largest.relative)}, is in {where(largest.title)}.")
    elif not changed:
        lines.append("Nothing moved.")
    if weighed.adapters:
        lines.append(f"Adapters of rank {weighed.adapters} carry it; {weighed.frozen:,} other numbers are frozen.")
    elif weighed.frozen and not weighed.squares:
        lines.append(f"{weighed.frozen:,} other numbers are frozen.")
    return lines


def where(title: str) -> str:
    """The name of a cell in a sentence: down of layer 2's MLP, the embedding."""
    outer, _, inner = visible(title).partition(" · ")
    part, _, label = inner.partition(" ")
    if outer.startswith("layer "):
        return f"{label} of {outer}'s {part}" if label else f"{outer}'s {part}"
    return f"the {outer}" + (f" ({inner})" if inner else "")


def squares_summary(weighed: Weighed) -> str:
    """The square of a table that moved most, and its moves that gained and lost most."""
    if not weighed.squares:
        return ""
    square, moved = max(weighed.squares.items(), key=lambda each: math.hypot(*each[1]))
    best, worst = max(range(len(moved)), key=moved.__getitem__), min(range(len(moved)), key=moved.__getitem__)
    moves = [visible(move) for move in weighed.moves]
    up = f"{moves[best]} rose by {number(moved[best], 2)}" if moved[best] > 0 else ""
    down = f"{moves[worst]} fell by {number(-moved[worst], 2)}" if moved[worst] < 0 else ""
    many = f"{len(weighed.squares)} squares" if len(weighed.squares) > 1 else "one square"
    return f"It moved {many}, most {visible(square)}: {' and '.join(filter(None, (up, down)))}."

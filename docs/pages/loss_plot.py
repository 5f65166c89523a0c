"""What an algorithm makes larger or smaller, drawn from the function that the engine trains with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlplay.algorithms.arrays import NumpyArrays
from rlplay.algorithms.choice import argument_names, call_choice
from rlplay.algorithms.pair_losses import PAIR_LOSSES
from rlplay.algorithms.settings import Settings
from rlplay.trace.numbers import compact
from rlplay.trace.records import Array
from rlplay.ui.surrogate.walls import Walls, has_picture, objective

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 640, 280, 48, 12, 36
_POINTS = 241


class Plot(NamedTuple):
    """A picture with its title and what it shows."""

    title: str
    svg: str
    caption: str


class Curve(NamedTuple):
    """A line of a picture: its name, its class in the style sheet, and its values."""

    name: str
    style: str
    values: Array


def loss_plot(s: Settings) -> Plot | None:
    """The surrogate over the ratio, or the loss over the gap of a pair; None where it depends on more than that."""
    if has_picture(s):
        return _surrogate(s)
    loss = PAIR_LOSSES.get(s.loss_type)
    read = set() if loss is None else set(argument_names(loss.compute))
    if "gap" in read and read <= {"gap", *Settings.__struct_fields__}:
        return _pairs(s)
    return None


def _surrogate(s: Settings) -> Plot:
    ratio = np.linspace(0.0, 2.0, _POINTS)
    curves = [
        Curve("A = 1", "rises", objective(s, Walls.of(s), ratio, 1.0)),
        Curve("A = −1", "falls", objective(s, Walls.of(s), ratio, -1.0)),
    ]
    walls = [1 - s.clip_range[0], 1 + s.clip_range[1]] if s.surrogate_row.band else []
    said = f" The dashed lines are the clip range, {compact(walls[0])} and {compact(walls[1])}." if walls else ""
    return Plot(
        "The surrogate",
        _svg(ratio, curves, walls, "ratio w"),
        "What an update makes larger for one token, over its ratio w = π/π_old, at an advantage of 1 and of −1. Where "
        f"a line is flat, the token has no gradient.{said}",
    )


def _pairs(s: Settings) -> Plot:
    gap = np.linspace(-10.0, 10.0, _POINTS)
    loss = call_choice(PAIR_LOSSES[s.loss_type].compute, NumpyArrays, {"gap": gap}, s)
    return Plot(
        "The loss",
        _svg(gap, [Curve("loss", "falls", np.asarray(loss, dtype=np.float64))], [], "gap Δ"),
        "The loss of a pair over its gap Δ, the chosen answer's score minus the rejected one's, at β = "
        f"{compact(s.beta)}.",
    )


def _svg(x: Array, curves: list[Curve], walls: list[float], axis: str) -> str:
    values = np.concatenate([each.values for each in curves])
    low, high = float(values.min()), float(values.max())
    span = (high - low) or 1.0

    def across(at: float) -> float:
        return LEFT + (at - x[0]) / (x[-1] - x[0]) * (WIDTH - LEFT - 8)

    def up(value: float) -> float:
        return TOP + (high - value) / span * (HEIGHT - TOP - BOTTOM)

    parts = [f'<svg class="loss" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{axis}">']
    for at in np.linspace(x[0], x[-1], 5):
        parts.append(f'<text x="{across(at):.1f}" y="{HEIGHT - 18}" text-anchor="middle">{compact(float(at))}</text>')
    for value in _ticks(low, high):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - 8}" y1="{up(value):.1f}" y2="{up(value):.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{up(value) + 4:.1f}" text-anchor="end">{compact(value)}</text>')
    for at in walls:
        parts.append(
            f'<line class="wall" x1="{across(at):.1f}" x2="{across(at):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        )
    for each in curves:
        points = " ".join(f"{across(at):.1f},{up(value):.1f}" for at, value in zip(x, each.values, strict=True))
        parts.append(f'<polyline class="{each.style}" points="{points}"/>')
    for place, each in enumerate(curves if len(curves) > 1 else []):
        parts.append(f'<text class="{each.style}" x="{LEFT + 12 + 80 * place}" y="{TOP + 14}">{each.name}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 3}" text-anchor="middle">{axis}</text></svg>')
    return "".join(parts)


def _ticks(low: float, high: float) -> list[float]:
    """Three to seven round numbers between the two."""
    rough = ((high - low) or 1.0) / 5
    unit = 10.0 ** np.floor(np.log10(rough))
    step = next(unit * each for each in (1, 2, 5, 10) if unit * each >= rough)
    return [round(float(at), 9) + 0.0 for at in np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step]

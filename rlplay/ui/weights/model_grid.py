"""A model as rows and cells: a row for each layer, a cell for each of its matrices, with what an update moved there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rlplay.trace.moved_weights import ModelPart, MovedWeight
from rlplay.trace.questions import Weighed

_ORDER = ("q", "k", "v", "qkv", "o", "router", "gate", "gate+up", "experts", "up", "down")
"""How the matrices of a layer follow each other; others come after them."""
PARTS: dict[ModelPart, str] = {"attention": "attention", "mlp": "MLP", "other": "other", "norm": "norms"}
"""The parts of a layer, from left to right."""


@dataclass(frozen=True)
class Cell:
    """Weights that are drawn as one: a matrix with its bias, or all norms of a layer."""

    title: str
    label: str
    weights: tuple[MovedWeight, ...]

    @cached_property
    def size(self) -> float:
        """‖W‖ before."""
        return math.hypot(*(weight.size for weight in self.weights))

    @cached_property
    def moved(self) -> float:
        """‖Δ‖."""
        return math.hypot(*(weight.moved for weight in self.weights))

    @cached_property
    def relative(self) -> float:
        """‖Δ‖ / ‖W‖; infinite where all was 0 before, NaN where it still is."""
        return relative(self.moved, self.size)

    @property
    def matrix(self) -> MovedWeight:
        """The largest of the weights."""
        return max(self.weights, key=lambda weight: weight.numbers)


def relative(moved: float, size: float) -> float:
    """‖Δ‖ / ‖W‖; infinite where all was 0 before, NaN where it still is."""
    return moved / size if size else math.inf if moved else math.nan


Column = tuple[ModelPart, str]
"""A part of a layer, and the label of a matrix in it."""


@dataclass(frozen=True)
class Row:
    """A layer, whose cells stand in the columns of all layers, or what is before or after them."""

    title: str
    cells: tuple[Cell | None, ...]
    is_layer: bool


@dataclass(frozen=True)
class Grid:
    """The rows from the embedding to the head."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @cached_property
    def cells(self) -> list[Cell]:
        """All there are."""
        return [cell for row in self.rows for cell in row.cells if cell is not None]

    @cached_property
    def largest(self) -> Cell | None:
        """The cell with the largest relative change that is finite."""
        known = [cell for cell in self.cells if math.isfinite(cell.relative)]
        return max(known, key=lambda cell: cell.relative, default=None)


def grid(weighed: Weighed, most: int) -> Grid:
    """The model's grid with at most `most` columns; if it had more, the matrices of a part are one cell."""
    weights = [weight for weight in weighed.weights if weight.size or weight.moved]
    layers: list[list[MovedWeight]] = [[] for _ in range(weighed.layers + 2)]
    for weight in weights:
        layers[weight.layer].append(weight)
    columns = _columns([weight for layer in layers[1:-1] for weight in layer], folded=False)
    if len(columns) > most:
        columns = _columns([weight for layer in layers[1:-1] for weight in layer], folded=True)
    folded = len(columns) > 0 and all(label == PARTS[part] for part, label in columns if part in PARTS)
    before, after = (_outside(layers[at], weighed) for at in (0, -1))
    within = [
        _layer(number, layers[number], columns, folded) for number in range(1, weighed.layers + 1) if layers[number]
    ]
    return Grid(columns, (*before, *within, *after))


def _columns(weights: Sequence[MovedWeight], folded: bool) -> tuple[Column, ...]:
    found = dict.fromkeys(_column(weight, folded) for weight in weights)
    places = list(PARTS)
    first = {column: at for at, column in enumerate(found)}

    def order(column: Column) -> tuple[int, int, int]:
        part, label = column
        known = _ORDER.index(label) if label in _ORDER else len(_ORDER)
        return places.index(part) if part in places else len(places), known, first[column]

    return tuple(sorted(found, key=order))


def _column(weight: MovedWeight, folded: bool) -> Column:
    part: ModelPart = weight.part if weight.part in PARTS else "other"
    return part, PARTS[part] if folded or part == "norm" else weight.label


def _layer(number: int, weights: Sequence[MovedWeight], columns: Sequence[Column], folded: bool) -> Row:
    own: dict[Column, list[MovedWeight]] = {column: [] for column in columns}
    for weight in weights:
        own[_column(weight, folded)].append(weight)
    title = f"layer {number}"
    return Row(title, tuple(_cell(column, tuple(own[column]), title) for column in columns), True)


def _cell(column: Column, weights: tuple[MovedWeight, ...], title: str) -> Cell | None:
    part, label = column
    inner = PARTS[part] if label == PARTS[part] else f"{PARTS[part]} {label}"
    return Cell(f"{title} · {inner}", label, weights) if weights else None


def _outside(weights: Sequence[MovedWeight], weighed: Weighed) -> list[Row]:
    """The rows of what is no layer: embeddings in one, the others each by its label."""
    titles = {"embedding": "embedding", "head": "head", "norm": "final norm" if weighed.layers else "norm"}
    groups: dict[str, dict[str, list[MovedWeight]]] = {}
    for weight in weights:
        title = titles.get(weight.part, weight.label)
        groups.setdefault(title, {}).setdefault(weight.label, []).append(weight)
    rows = []
    for title, labels in groups.items():
        several = len(labels) > 1
        cells = [
            Cell(f"{title} · {label}" if several else title, label if several else "", tuple(own))
            for label, own in labels.items()
        ]
        rows.append(Row(title, tuple(cells), False))
    return rows

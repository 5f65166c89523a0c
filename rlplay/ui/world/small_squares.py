"""Squares of one or two lines of text, for a panel that has no room for pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from textual.content import Content

from rlplay.ui.plot.picture import Size
from rlplay.ui.world.layers import Kind
from rlplay.ui.world.reading import Reading, Way, best_moves, likeliest, worth
from rlplay.ui.world.shades import heat, shade
from rlplay.ui.world.short_numbers import share, short, shortest
from rlplay.worlds.chart import Square
from rlplay.worlds.world import GOAL, HOLE, ICE, WALL, World, square_name

_WIDEST, _TALLEST = 19, 3
"""Cells and lines of a square; more would only be empty."""
NARROWEST = 4
_MUTED = "$text-muted"
_SIGNS = {GOAL: ("★", "$success"), HOLE: ("○", "$error")}


@dataclass(frozen=True)
class _Cell:
    """The two written lines of a square, each in ever shorter forms so that no number is ever cut, and its shade.

    `only` is what a square shows if there is one line for it.
    """

    first: tuple[str, ...]
    second: tuple[str, ...] = ()
    shade: str = ""
    only: tuple[str, ...] = ()

    def forms(self, line: int, tall: int) -> tuple[str, ...]:
        """The forms of one of `tall` lines."""
        if line == _TALLEST - 1:
            return ()
        return self.only if tall == 1 and self.only else self.second if line else self.first


def square_width(world: World, width: int) -> int:
    """Cells of a square with the gap behind it, in a panel of `width`; below `NARROWEST` there is no room."""
    return min((width - 2) // len(world.map[0]), _WIDEST)


def lines_of(world: World, height: int) -> int:
    """Lines of the map in a panel of `height`, with the letters of the columns."""
    rows = len(world.map)
    return min(_tall(rows, height) * rows + 1, height)


def square_at(world: World, size: Size, x: int, y: int) -> str | None:
    """The square at column `x` of line `y` of a panel of this size."""
    rows, columns = len(world.map), len(world.map[0])
    row, column = y // _tall(rows, size.height), (x - 2) // square_width(world, size.width)
    return square_name(row, column) if 0 <= row < rows and 0 <= column < columns else None


def small_squares(kind: Kind, found: Reading, way: Way, width: int, height: int) -> list[Content]:
    """The map, row by row; below it the letters of the columns, if there is a line for them."""
    world, cells = found.world, _cells(kind, found)
    rows, columns, each = len(world.map), len(world.map[0]), square_width(world, width)
    tall = _tall(rows, height)
    lines = []
    for row in range(rows):
        for line in range(tall):
            label = (str(row + 1) if line == 0 else " ") + " "
            parts = [(label, _MUTED)]
            for column in range(columns):
                name = square_name(row, column)
                emphasis = "reverse" if name == way.here else "underline" if name in way.path else ""
                parts += _line(world.map[row][column], cells.get(name), (line, tall), each, emphasis)
            lines.append(Content.assemble(*parts))
    if height > tall * rows:
        letters = "".join(chr(ord("a") + column).ljust(each) for column in range(columns))
        lines.append(Content.styled("  " + letters, _MUTED))
    return lines


def _tall(rows: int, height: int) -> int:
    return max(min((height - 1) // rows, _TALLEST), 2 if height >= 2 * rows else 1)


def _line(sign: str, cell: _Cell | None, place: tuple[int, int], width: int, emphasis: str) -> list[tuple[str, str]]:
    """A square's line `place[0]` of `place[1]`, followed by a gap of one cell."""
    line, tall = place
    inside = width - 1
    if sign == WALL:
        return [("▒" * inside, f"{_MUTED} {emphasis}".strip()), (" ", "")]
    if sign in _SIGNS and line == 0:
        mark, ink = _SIGNS[sign]
        return [(mark, f"bold {ink} {emphasis}".strip()), (" " * inside, "")]
    if cell is None:
        mark = "≈" if sign == ICE else sign if sign.isdigit() else "·"
        seen = line == 0 and sign not in _SIGNS
        return [(mark if seen else " ", f"{_MUTED} {emphasis}".strip() if seen else ""), (" " * (width - 1), "")]
    text = next((t for t in cell.forms(line, tall) if len(t) <= inside), "")
    style = f"{'bold ' if line == 0 else ''}{emphasis if line == 0 else ''} {cell.shade}".strip()
    return [(text.ljust(inside), style), (" ", "")]


def _cells(kind: Kind, found: Reading) -> dict[str, _Cell]:
    """The texts of every square with a policy."""
    make: dict[Kind, Callable[[str, Square], _Cell | None]] = {
        "policy": lambda _name, square: _policy_cell(square, found.worths),
        "values": lambda name, square: _values_cell(found, name, square),
        "visits": lambda _name, square: _visits_cell(found, square),
        "change": lambda _name, square: _change_cell(square),
        "optimal": lambda name, _square: _optimal_cell(found, name),
    }
    going = {name: square for name, square in found.chart.squares.items() if not found.world.ends(name)}
    cells = {name: make[kind](name, square) for name, square in going.items()}
    return {name: _with_coin(cell, found.world.kind(name)) for name, cell in cells.items() if cell is not None}


def _policy_cell(square: Square, among: Sequence[float]) -> _Cell | None:
    if square.policy is None:
        return None
    move, chance = likeliest(square.policy)
    first = _move_share(move, chance) if square.greedy is None else ("".join(square.greedy),)
    earns, visits = worth(square), f"×{square.visits}" if square.visits else ""
    value = "" if earns is None else short(earns, signed=True)
    second = f"{value} {visits}".strip(), f"{value}{visits}", value, *(() if earns is None else shortest(earns))
    only = (f"{first[0]} {value:>4}", f"{first[-1]} {value}", *first) if value else ()
    return _Cell(first, second, shade(earns, among), only)


def _values_cell(found: Reading, name: str, square: Square) -> _Cell | None:
    learned, exact = worth(square), found.exact.get(name)
    if learned is None and exact is None:
        return None
    first = () if learned is None else (short(learned, signed=True), *shortest(learned))
    second = () if exact is None else (f"={short(exact, signed=True)}", *shortest(exact))
    both = f"{first[0]} {second[0]}" if first and second else ""
    return _Cell(first, second, shade(learned, found.worths), (both, *first) if both else first or second)


def _visits_cell(found: Reading, square: Square) -> _Cell | None:
    if not found.chart.paths:
        return None
    most = max(each.visits for each in found.chart.squares.values())
    return _Cell((f"×{square.visits}", str(square.visits)), (), heat(square.visits, most))


def _change_cell(square: Square) -> _Cell | None:
    if square.policy is None:
        return None
    if square.greedy is not None and square.value is not None:
        return _value_change_cell("".join(square.greedy), square)
    move, chance = likeliest(square.policy)
    if square.before is None or square.after is None or not move:
        return _Cell(_move_share(move, chance))
    moved = square.after[move] - square.before[move]
    before = share(square.before[move])
    only = f"{move} {before} → {share(chance)}", f"{move}{before}→{share(chance)}", move
    return _Cell(_move_share(move, square.before[move]), (f"→ {share(chance)}",), shade(moved, (-1.0, 1.0)), only)


def _with_coin(cell: _Cell, sign: str) -> _Cell:
    """The cell with the reward of its square in front of the move, if the map has a digit there."""
    if not sign.isdigit():
        return cell
    first, only = (
        tuple(f"{sign}{gap}{text}" for text in forms for gap in (" ", "")) for forms in (cell.first, cell.only)
    )
    return replace(cell, first=first, only=only)


def _value_change_cell(moves: str, square: Square) -> _Cell:
    """The best moves by Q, and max Q before and after the update."""
    assert square.value is not None
    if square.after is None or square.action_values_before is None:
        return _Cell((f"{moves} {short(square.value, signed=True)}", moves))
    before = max(square.action_values_before.values())
    was, now = short(before, signed=True), short(square.value, signed=True)
    return _Cell((f"{moves} {was}", was), (f"→ {now}",), shade(square.value - before, (-1.0, 1.0)))


def _move_share(move: str, chance: float) -> tuple[str, ...]:
    return (f"{move} {share(chance)}", f"{move}{share(chance)}", move) if move else (share(chance),)


def _optimal_cell(found: Reading, name: str) -> _Cell | None:
    if found.best is None:
        return None
    values = found.best.action_values[name]
    top = max(values.values())
    moves, value = best_moves(values), short(top, signed=True)
    among = list(found.best.values.values())
    return _Cell((moves,), (value,), shade(top, among), (f"{moves} {value}", moves))

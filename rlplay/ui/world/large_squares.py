"""Squares with a picture in each: bars for the chances of the moves, large numbers, footprints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from textual.content import Content

from rlplay.trace.records import Array
from rlplay.ui.plot.picture import Size
from rlplay.ui.world.arrows import draw_arrows
from rlplay.ui.world.big_signs import HOLE as HOLE_SIGN
from rlplay.ui.world.big_signs import STAR, WALKER, big
from rlplay.ui.world.board import LEAST, Board, has_rose
from rlplay.ui.world.canvas import Canvas
from rlplay.ui.world.layers import Kind
from rlplay.ui.world.reading import Reading, Way, best_moves, likeliest, worth
from rlplay.ui.world.rose import draw_rose
from rlplay.ui.world.shades import heat, shade
from rlplay.ui.world.short_numbers import share, short
from rlplay.worlds.chart import Square
from rlplay.worlds.world import DIRECTIONS, GOAL, HIDDEN, ICE, START, WALL, place, square_name

LINES, HERE, MUTED, STRONG = "$border", "$accent", "$text-muted", "bold $foreground"
_UP, _DOWN = "bold $scale-up", "bold $scale-down"
FOOTPRINT = "•"
_FOR_LARGE, _APART, _INWARD = 12, 5, 0.8
"""Lines of a square from which on it has four large numbers, cells between them, and how near the edge they are."""
_WIDEST = "+.99"
_BESIDE = 4
"""Cells for the signs of two moves with a gap behind each."""
_STILL = 0.005
"""Changes of a probability below this are not written."""


@dataclass(frozen=True)
class _Tile:
    """The inside of one square."""

    canvas: Canvas
    top: int
    left: int
    width: int
    height: int
    shade: str

    def fill(self, sign: str, style: str = "") -> None:
        for line in range(self.height):
            self.canvas.put(self.top + line, self.left, sign * self.width, f"{style} {self.shade}".strip())

    def put(self, line: int, column: int, text: str, style: str = "") -> None:
        self.canvas.put(self.top + line, self.left + column, text, f"{style} {self.shade}".strip())

    def corners(self, line: int, left: str, right: str, style: str = "") -> None:
        """Texts at both ends of a line: what has no room is left out, the right one first."""
        if len(left) <= self.width:
            self.put(line, 0, left, style)
        if right and len(left) + len(right) < self.width:
            self.put(line, self.width - len(right), right, style)

    def named(self, name: str, number: str) -> str:
        """A number with its name, if any number has room with it beside an arm that points down."""
        return f"{name} {number}" if len(f"{name} {_WIDEST}") < self.width // 2 - 2 else number

    def centred(self, line: int, text: str, style: str = "") -> None:
        self.put(line, (self.width - len(text)) // 2, text, style)

    def large(self, pixels: Array, style: str, at: tuple[float, float] = (0.5, 0.5)) -> bool:
        """Pixels `at` a place down and across, as shares of the room that they leave; False if they have no room."""
        lines, columns = (len(pixels) + 1) // 2, pixels.shape[1]
        if columns > self.width or lines > self.height:
            return False
        line, column = (self.height - lines) * at[0], (self.width - columns) * at[1]
        self.canvas.bitmap(self.top + int(line), self.left + int(column), pixels, f"{style} {self.shade}".strip())
        return True

    def largest(self, pixels: Array, style: str) -> bool:
        """Pixels in the middle, each as many pixels as fit; False if they have no room."""
        times = min((self.width - 2) // pixels.shape[1], 2 * (self.height - 2) // len(pixels))
        return self.large(pixels.repeat(max(times, 1), 0).repeat(max(times, 1), 1), style)

    def number(self, text: str) -> None:
        """A number in the middle, as large as fits."""
        if not self.largest(big(text), STRONG):
            self.centred((self.height - 1) // 2, text, STRONG)


def large_squares(kind: Kind, found: Reading, way: Way, board: Board, width: int) -> list[Content]:
    """The lines of a board, `width` cells each."""
    canvas = Canvas(width, board.lines)
    _draw_lines(canvas, board)
    for row in range(board.rows):
        for column in range(board.columns):
            name = square_name(row, column)
            tile = _tile(canvas, board, name, _shade_of(kind, found, name))
            tile.fill(" ")
            _draw_square(kind, found, way, name, tile)
    for one, other in dict.fromkeys(pairwise(way.path)):
        _draw_steps(canvas, board, one, other)
    if way.here:
        frame(canvas, board, way.here)
    return canvas.content()


def _tile(canvas: Canvas, board: Board, name: str, shading: str) -> _Tile:
    top, left = board.corner(*place(name))
    return _Tile(canvas, top, left, board.width, board.height, shading)


def _draw_square(kind: Kind, found: Reading, way: Way, name: str, tile: _Tile) -> None:
    world, sign = found.world, found.world.kind(name)
    if sign == WALL:
        tile.fill("▒", MUTED)
        tile.corners(0, f" {name} " if way.painting else "", "", MUTED)
        return
    if world.ends(name):
        good = world.reward(name) > 0
        rows, ink = (STAR, "$success") if sign == GOAL else (HOLE_SIGN, "$error")
        tile.largest(rows, f"bold {ink}")
        tile.corners(tile.height - 1, short(world.reward(name), signed=True), "", f"bold {'$success' if good else ink}")
    elif way.walk is None or name != way.here:
        _LAYERS[kind](found, name, found.chart.squares[name], tile)
    if way.walk is not None and name == way.here:
        tile.largest(WALKER, f"bold {HERE}")
    tile.corners(0, _label(found, name), "", MUTED)


def _label(found: Reading, name: str) -> str:
    """The name of a square, with what is special about it."""
    world = found.world
    sign, reward = world.kind(name), world.reward(name)
    special = not world.ends(name) and reward != world.step
    marks = [
        name,
        "?" * (world.observed(name) == HIDDEN),
        "≈" * (sign == ICE),
        "S" * (sign == START),
        f"◆{short(reward, signed=True)}" if special else "",
    ]
    return " ".join(filter(None, marks))


def _draw_policy(found: Reading, _name: str, square: Square, tile: _Tile) -> None:
    if square.policy is None:
        return
    greedy = square.greedy
    move, chance = likeliest(square.policy)
    _moves(tile, square.policy, move if greedy is None else "".join(greedy))
    earns = worth(square)
    value = "" if earns is None else tile.named(found.valued.split()[-1], short(earns, signed=True))
    tile.corners(tile.height - 1, value, share(chance) if move else "", STRONG)
    visits = f"×{square.visits}" if square.visits else ""
    tile.put(0, tile.width - len(visits), visits, MUTED)


def _draw_values(found: Reading, name: str, square: Square, tile: _Tile) -> None:
    learned, exact = worth(square), found.exact.get(name)
    if square.action_values is not None:
        best = best_moves(square.action_values)
        texts = {m: (short(q, signed=True), STRONG if m in best else MUTED) for m, q in square.action_values.items()}
        _compass(tile, texts)
    elif learned is not None:
        tile.number(short(learned, signed=True))
    if exact is not None:
        off = "" if learned is None or found.learns_q else f"Δ{short(learned - exact, signed=True)}"
        tile.corners(tile.height - 1, f"={short(exact, signed=True)}", off)


def _draw_visits(found: Reading, _name: str, square: Square, tile: _Tile) -> None:
    total = sum(each.visits for each in found.chart.squares.values())
    if total:
        tile.number(str(square.visits))
        tile.corners(tile.height - 1, f"{100 * square.visits / total:.0f} %", "", MUTED)


def _draw_change(_found: Reading, _name: str, square: Square, tile: _Tile) -> None:
    if square.action_values is not None and square.action_values_before is not None:
        before, after = square.action_values_before, square.action_values
    elif square.before is not None and square.after is not None:
        before, after = square.before, square.after
    else:
        return
    moved = {move: after[move] - before[move] for move in after}
    shown = {move: change for move, change in moved.items() if abs(change) >= _STILL}
    _compass(tile, {m: (short(c, signed=True), _UP if c > 0 else _DOWN) for m, c in shown.items()})
    if not shown:
        tile.centred((tile.height - 1) // 2, "·", MUTED)


def _draw_optimal(found: Reading, name: str, _square: Square, tile: _Tile) -> None:
    if found.best is not None:
        values = found.best.action_values[name]
        moves = best_moves(values)
        _moves(tile, dict.fromkeys(moves, 1.0), moves)
        tile.corners(tile.height - 1, tile.named("V*", short(max(values.values()), signed=True)), "", STRONG)


_LAYERS: dict[Kind, Callable[[Reading, str, Square, _Tile], None]] = {
    "policy": _draw_policy,
    "values": _draw_values,
    "visits": _draw_visits,
    "change": _draw_change,
    "optimal": _draw_optimal,
}


def _moves(tile: _Tile, chances: Mapping[str, float], best: str) -> None:
    draw = draw_arrows if best and not has_rose(tile.width) else draw_rose
    draw(tile.canvas, tile.top, tile.left, Size(tile.width, tile.height), chances, best, tile.shade)


def _compass(tile: _Tile, texts: Mapping[str, tuple[str, str]]) -> None:
    """A text for each move, at the side to which the move leads; in large digits if all have room."""
    half = max((tile.height - 1) // 2, 2)  # in a low square, below its name
    widest = max((big(text.lstrip("+")).shape[1] for text, _ in texts.values()), default=0)
    large = tile.height >= _FOR_LARGE and 2 * widest + _APART <= tile.width
    for move, (text, style) in texts.items():
        down, right = DIRECTIONS[move]
        words = f"{move} {text}" if 2 * len(text) + _BESIDE <= tile.width else f"{move}{text}"
        if large:
            tile.large(big(text.lstrip("+")), style, ((1 + _INWARD * down) / 2, (1 + _INWARD * right) / 2))
        elif down:
            tile.centred(half + down * max(half - 1, 1), words, style)
        else:
            tile.put(half, tile.width - len(words) if right > 0 else 0, words, style)


def _shade_of(kind: Kind, found: Reading, name: str) -> str:
    world = found.world
    if world.kind(name) == WALL:
        return ""
    if world.ends(name):
        return shade(world.reward(name), (-2 * world.reward(name), 2 * world.reward(name)))
    square = found.chart.squares[name]
    if kind == "visits":
        return heat(square.visits, max(each.visits for each in found.chart.squares.values()))
    if kind == "optimal":
        best = found.best
        return "" if best is None else shade(best.values[name], list(best.values.values()))
    return "" if kind == "change" else shade(worth(square), found.worths)


def _draw_lines(canvas: Canvas, board: Board) -> None:
    """The lines around the squares."""
    for row in range(board.rows + 1):
        left, between, right = "┌┬┐" if row == 0 else "└┴┘" if row == board.rows else "├┼┤"
        inner = between.join(["─" * board.width] * board.columns)
        canvas.put(board.top + row * (board.height + 1), board.left, f"{left}{inner}{right}", LINES)
    for line in range(board.lines - board.top):
        if line % (board.height + 1):
            for column in range(board.columns + 1):
                canvas.put(board.top + line, board.left + column * (board.width + 1), "│", LINES)


def frame(canvas: Canvas, board: Board, name: str) -> None:
    """A heavy frame around a square."""
    top, left = board.corner(*place(name))
    canvas.put(top - 1, left - 1, f"┏{'━' * board.width}┓", HERE)
    for line in range(board.height):
        canvas.put(top + line, left - 1, "┃", HERE)
        canvas.put(top + line, left + board.width, "┃", HERE)
    canvas.put(top + board.height, left - 1, f"┗{'━' * board.width}┛", HERE)


def _draw_steps(canvas: Canvas, board: Board, one: str, other: str) -> None:
    """Footprints over the line between two squares."""
    (row, column), (to_row, to_column) = place(one), place(other)
    top, left = board.corner(row, column)
    if row == to_row and column != to_column:
        edge = left + board.width if to_column > column else left - 1
        canvas.write_over(top + (board.height - 1) // 2 + (board.height > LEAST.height), edge - 1, FOOTPRINT * 3, HERE)
    elif column == to_column and row != to_row:
        edge = top + board.height if to_row > row else top - 1
        for line in (edge - 1, edge, edge + 1) if board.height > LEAST.height else (edge,):
            canvas.write_over(line, left + board.width // 2 + 2, FOOTPRINT, HERE)

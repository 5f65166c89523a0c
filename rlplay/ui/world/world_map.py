"""A tiny world as a map: the policy's best move on every square, its worth, and the path of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from textual.content import Content

from rlplay.trace.text import visible
from rlplay.trace.update import Update
from rlplay.ui.format.bars import horizontal
from rlplay.ui.plot.picture import Axes, Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.probability_lines import share_text
from rlplay.ui.plot.views import VALUE, OfUpdate
from rlplay.worlds.chart import Chart, Square, chart
from rlplay.worlds.planning import OptimalValues, evaluate, plan
from rlplay.worlds.world import GOAL, HOLE, WALL, World

Kind = Literal["policy", "change", "optimal"]
_TITLES: dict[Kind, str] = {"policy": "Map", "change": "Map · change", "optimal": "Map · optimal"}
_WIDEST = 13
"""Cells of a square; more would only be empty."""
_NARROWEST = 4
_MUTED = "$text-muted"
_SIGNS = {GOAL: ("★", "$success"), HOLE: ("○", "$error")}
_NAMES = {"V": "value V", "G": "return G", "max Q": "max Q"}
_TIE = 1e-6
"""Probabilities that differ by less are equal up to rounding."""
_DEEPEST = 45
"""Percent of colour behind the square that is worth most."""


@dataclass(frozen=True)
class WorldMap(OfUpdate):
    """A view of one update of a world, not of the run, so it has no cursor of its own.

    "policy": the likeliest move, its probability, the value of the square and how often it was visited; "change": the
    probability of that move before and after the update; "optimal": the best moves and V*, by dynamic programming.
    Where action values are learned, the move is the best one by Q, and max Q takes the place of the probability.
    """

    kind: Kind = "policy"

    @property
    def title(self) -> str:
        """The title of an empty panel."""
        return _TITLES[self.kind]

    def state(self, source: PlotData) -> object:
        """The update and its phase, the answer under the cursor, and what the values depend on."""
        shown = _update(source)
        if shown is None:
            return None, source.settings.gamma, id(source.world)
        sampled = shown.sampled is not None and shown.sampled.done  # only then is the policy on every square known
        which = shown.number, shown.phase, shown.completions, sampled
        return which, source.cursor, source.settings.gamma, id(source.world)

    def draw(self, source: PlotData, size: Size, _log: bool, _smoothing: float = 0.0) -> Picture | str:
        """The squares, row by row; a bandit's arms as bars."""
        world = source.world
        if world is None:
            return "This run has no world."
        found = chart(world, _update(source))
        if world.arms:
            return _arms(world, found, size)
        rows, columns = len(world.map), len(world.map[0])
        width = min((size.width - 2) // columns, _WIDEST)
        if size.height < rows or width < _NARROWEST:
            return f"The map takes {rows} lines and {least_width(world)} columns: make the terminal larger."
        cells = self._cells(world, found, source)
        path, here = _path(found, source)
        tall = 2 if size.height >= 2 * rows else 1
        lines = []
        for row in range(rows):
            for line in range(tall):
                label = (str(row + 1) if line == 0 else " ") + " "
                parts = [(label, _MUTED)]
                for column in range(columns):
                    square = _Drawn(world, row, column, path, here, tall)
                    parts += square.line(cells.get(square.name), line, width)
                lines.append(Content.assemble(*parts))
        if size.height > tall * rows:
            letters = "".join(chr(ord("a") + column).ljust(width) for column in range(columns))
            lines.append(Content.styled("  " + letters, _MUTED))
        return Picture(Content("\n").join(lines), Axes(size.width, 0, size.width - 1, 0, 1))

    def titles(
        self, source: PlotData, _cursor: int | None, _log: bool, _smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        """Above, what the numbers are; below, the value of the start: learned, of this policy exactly, and optimal."""
        world = source.world
        if world is None:
            return Content(self.title), Content("")
        found = chart(world, _update(source))
        tall = source.lines >= 2 * len(world.map)
        known = any(square.policy is not None for square in found.squares.values())
        words = {
            "policy": f" · move · {_NAMES[_valued(found)]}{' · ×visits' if tall else ''}" if known else "",
            "change": " · before → after",
            "optimal": " · best moves · V*",
        }[self.kind]
        if _learns_q(found) and self.kind != "optimal":
            words = " · best move by Q · max Q"
            words += " · ×visits" if self.kind == "policy" else " before → after"
        if world.arms:
            words = " · reward · p before → after"
        return Content(self.title + words), _at_the_start(world, found, source.settings.gamma)

    def _cells(self, world: World, found: Chart, source: PlotData) -> dict[str, _Cell]:
        """The texts of every square with a policy."""
        best = _plan(world, source.settings.gamma) if self.kind == "optimal" else None
        largest = max((abs(v) for v in map(_worth, found.squares.values()) if v is not None), default=0.0)
        if best is not None:
            largest = max(map(abs, best.values.values()))
        make: Callable[[str, Square], _Cell | None] = {
            "policy": lambda _name, square: _policy_cell(square, largest),
            "change": lambda _name, square: _change_cell(square),
            "optimal": lambda name, _square: _optimal_cell(best, name, largest),
        }[self.kind]
        cells = {name: make(name, square) for name, square in found.squares.items() if not world.ends(name)}
        return {name: _with_coin(cell, world.kind(name)) for name, cell in cells.items() if cell is not None}


MAPS = WorldMap(), WorldMap("change"), WorldMap("optimal")


@dataclass(frozen=True)
class _Cell:
    """The two lines of a square, each in ever shorter forms so that no number is ever cut, and its shade.

    `only` is what a square shows if there is one line for it.
    """

    first: tuple[str, ...]
    second: tuple[str, ...] = ()
    shade: str = ""
    only: tuple[str, ...] = ()

    def forms(self, line: int, tall: int) -> tuple[str, ...]:
        """The forms of one of `tall` lines."""
        return self.only if tall == 1 and self.only else self.second if line else self.first


@dataclass(frozen=True)
class _Drawn:
    """One square as it is drawn, and whether the answer under the cursor has been there."""

    world: World
    row: int
    column: int
    path: frozenset[str]
    here: str
    tall: int

    @property
    def name(self) -> str:
        return f"{chr(ord('a') + self.column)}{self.row + 1}"

    def line(self, cell: _Cell | None, line: int, width: int) -> list[tuple[str, str]]:
        """One line of the square, followed by a gap of one cell."""
        sign = self.world.map[self.row][self.column]
        inside = width - 1
        emphasis = "reverse" if self.name == self.here else "underline" if self.name in self.path else ""
        if sign == WALL:
            return [("▒" * inside, _MUTED), (" ", "")]
        if sign in _SIGNS and line == 0:
            mark, ink = _SIGNS[sign]
            return [(mark, f"bold {ink} {emphasis}".strip()), (" " * inside, "")]
        if cell is None:
            mark = sign if sign.isdigit() else "·"
            return [(mark if line == 0 and sign not in _SIGNS else " ", _MUTED), (" " * (width - 1), "")]
        text = next((t for t in cell.forms(line, self.tall) if len(t) <= inside), "")
        style = f"{'bold ' if line == 0 else ''}{emphasis if line == 0 else ''} {cell.shade}".strip()
        return [(text.ljust(inside), style), (" ", "")]


def _policy_cell(square: Square, largest: float) -> _Cell | None:
    if square.policy is None:
        return None
    move, share = _likeliest(square.policy)
    first = _move_share(move, share) if square.greedy is None else ("".join(square.greedy),)
    worth, visits = _worth(square), f"×{square.visits}" if square.visits else ""
    value = "" if worth is None else _short(worth, signed=True)
    second = f"{value} {visits}".strip(), f"{value}{visits}", value, *(() if worth is None else _shortest(worth))
    only = (f"{first[0]} {value:>4}", f"{first[-1]} {value}", *first) if value else ()
    return _Cell(first, second, _shade(worth, largest), only)


def _change_cell(square: Square) -> _Cell | None:
    if square.policy is None:
        return None
    if square.greedy is not None and square.value is not None:
        return _value_change_cell("".join(square.greedy), square)
    move, share = _likeliest(square.policy)
    if square.before is None or square.after is None or not move:
        return _Cell(_move_share(move, share))
    moved = square.after[move] - square.before[move]
    before = _share(square.before[move])
    only = f"{move} {before} → {_share(share)}", f"{move}{before}→{_share(share)}", move
    return _Cell(_move_share(move, square.before[move]), (f"→ {_share(share)}",), _shade(moved, 1.0), only)


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
        return _Cell((f"{moves} {_short(square.value, signed=True)}", moves))
    before = max(square.action_values_before.values())
    was, now = _short(before, signed=True), _short(square.value, signed=True)
    return _Cell((f"{moves} {was}", was), (f"→ {now}",), _shade(square.value - before, 1.0))


def _move_share(move: str, share: float) -> tuple[str, ...]:
    return (f"{move} {_share(share)}", f"{move}{_share(share)}", move) if move else (_share(share),)


def _optimal_cell(best: OptimalValues | None, name: str, largest: float) -> _Cell | None:
    if best is None:
        return None
    worth = best.action_values[name]
    top = max(worth.values())
    moves = "".join(move for move, value in worth.items() if value >= top - 1e-9)
    value = _short(top, signed=True)
    return _Cell((moves,), (value,), _shade(top, largest), (f"{moves} {value}", moves))


def _arms(world: World, found: Chart, size: Size) -> Picture | str:
    """One line per arm: its reward, its probability before and after, averaged over the situations."""
    if size.height < len(world.arms):
        return f"The {len(world.arms)} arms take {len(world.arms)} lines: make the terminal larger."
    known = [square for square in found.squares.values() if square.policy is not None]
    lines = []
    for arm, worth in world.arms.items():
        parts: list[tuple[str, str]] = [(visible(arm), "bold"), (f" {_short(worth, signed=True):>6} ", _MUTED)]
        if known:
            share = sum(square.policy[arm] for square in known if square.policy) / len(known)
            before = [square.before[arm] for square in known if square.before is not None]
            room = max(size.width - 24, 4)
            parts += [(horizontal(share, room), "$primary")]
            moved = f"{_share(sum(before) / len(before))} → " if before and known[0].after is not None else ""
            parts += [(f" {moved}{_share(share)}", "")]
        lines.append(Content.assemble(*parts))
    return Picture(Content("\n").join(lines), Axes(size.width, 0, size.width - 1, 0, 1))


def _update(source: PlotData) -> Update | None:
    """The update whose policy is on the map; while its walks are sampled, the one before, whose policy samples them."""
    shown, last = source.shown, source.live
    if shown is None or shown.sampled is None or shown.sampled.done:
        return shown
    return last if last is not None and last.number == shown.number - 1 and last.finished is not None else shown


def _path(found: Chart, source: PlotData) -> tuple[frozenset[str], str]:
    """The squares of the answer under the cursor, and the one on which the move under the cursor was made."""
    row, token = source.cursor
    path = found.paths.get(row, [])
    shown = _update(source)
    if not path or shown is None or shown.sampled is None:
        return frozenset(), ""
    sampled = shown.sampled
    start, end = int(sampled.offsets[row]), int(sampled.offsets[row + 1])
    moves = int(sampled.mask[start : min(start + token + 1, end)].sum())
    return frozenset(path), path[min(max(moves - 1, 0), len(path) - 1)]


def _at_the_start(world: World, found: Chart, gamma: float) -> Content:
    """What the first start is worth: learned, under this policy exactly, and at best.

    Where action values are learned, exactly under the greedy policy of Q, and under the ε-greedy one.
    """
    start = world.starts[0]
    parts = []
    learned = found.squares[start]
    if _worth(learned) is not None and not _learns_q(found):  # max Q is on the square
        parts.append((f"{_valued(found)} ", _worth(learned)))
    policies = {name: square.policy for name, square in found.squares.items() if square.policy is not None}
    greedy = {name: square.greedy for name, square in found.squares.items() if square.greedy is not None}
    for label, policy in (("greedy ", greedy), ("ε " if greedy else "exact ", policies)):
        if policy and set(policy) == {s for s in world.states if not world.ends(s)}:
            parts.append((label, _exact(world, policy, start, gamma)))
    best = _plan(world, gamma)
    parts.append(("best ", None if best is None else best.values[start]))
    words = [Content.assemble(label, ("not finite" if v is None else _short(v), VALUE)) for label, v in parts]
    return Content.assemble(f"{start} ", Content(" · ").join(words))


def _exact(world: World, policy: Mapping[str, Mapping[str, float]], start: str, gamma: float) -> float | None:
    """The value of the start under a policy; None if the policy need never end and nothing is discounted."""
    try:
        return evaluate(world, policy, gamma)[start]
    except ValueError:
        return None


def _plan(world: World, gamma: float) -> OptimalValues | None:
    try:
        return plan(world, gamma)
    except ValueError:
        return None


def _learns_q(found: Chart) -> bool:
    return any(square.action_values is not None for square in found.squares.values())


def _valued(found: Chart) -> str:
    """The symbol of a square's worth: max Q, the critic's value, or the mean return of the moves made there."""
    if _learns_q(found):
        return "max Q"
    return "V" if any(square.value is not None for square in found.squares.values()) else "G"


def _worth(square: Square) -> float | None:
    return square.mean_return if square.value is None else square.value


def _likeliest(policy: Mapping[str, float]) -> tuple[str, float]:
    """The likeliest move with its probability; "" if another one is as likely."""
    top = max(policy.values())
    first, *others = (move for move, share in policy.items() if share >= top - _TIE)
    return "" if others else first, top


def _share(value: float) -> str:
    return share_text(value).strip()


def _short(value: float, signed: bool = False) -> str:
    """Two decimals without the leading zero: .98, +.90, −.01, 1."""
    text = f"{abs(value):.2f}" if abs(value) < 10 else f"{abs(value):.0f}"
    text = text.removesuffix(".00") if text != "0.00" else "0"
    sign = "−" if value < 0 and text != "0" else "+" if signed and text != "0" else ""
    return sign + (text[1:] if text.startswith("0.") else text)


def _shortest(value: float) -> tuple[str, str]:
    """Forms for the narrowest squares: without a plus sign, and with one decimal."""
    rough = f"{abs(value):.1f}".removesuffix(".0")
    sign = "−" if value < 0 and rough != "0" else ""
    return _short(value), sign + (rough[1:] if rough.startswith("0.") else rough)


def least_width(world: World) -> int:
    """The columns of the terminal that the map of a world needs."""
    return 0 if world.arms else _NARROWEST * len(world.map[0]) + 2


def unshaded(style: str) -> str:
    """A style without its shade, for terminals with few colours; the numbers on the squares remain."""
    return style.partition("on $")[0].strip()


def _shade(value: float | None, largest: float) -> str:
    if value is None or not largest:
        return ""
    depth = round(_DEEPEST * min(abs(value) / largest, 1.0))
    return f"on {'$success' if value > 0 else '$error'} {depth}%" if depth else ""

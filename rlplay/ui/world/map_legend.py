"""What the marks of a map mean, below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from textual.content import Content

from rlplay.ui.world.board import Board, has_rose
from rlplay.ui.world.large_squares import FOOTPRINT, HERE, MUTED
from rlplay.ui.world.layers import Kind
from rlplay.ui.world.reading import Reading, Way
from rlplay.worlds.world import GOAL, HIDDEN, HOLE, ICE

_ALSO, _SHADE = ", also the shade", "shade"


def legend(kind: Kind, found: Reading, way: Way, width: int, board: Board | None, shaded: bool) -> list[Content]:
    """The marks of a layer on the squares of a board or, without one, on small squares, in lines of at most `width`
    cells, the most important first; `shaded` says whether the screen has colours behind the squares."""
    rows: list[list[Content]] = [[]]
    marks = _in_small if board is None else _IN_LARGE[kind]
    if kind == "policy" and board is not None and not has_rose(board.width):
        marks = _arrows
    entries = [*marks(found), *_everywhere(found, way, board is not None)]
    if not shaded:
        entries = [each[: len(each.plain.removesuffix(_ALSO))] for each in entries if not each.plain.startswith(_SHADE)]
    for entry in entries:
        if _length([*rows[-1], entry]) > width and rows[-1]:
            rows.append([])
        rows[-1].append(entry)
    return [Content.styled("   ", "").join(row) for row in rows]


def _length(entries: list[Content]) -> int:
    return sum(entry.cell_length for entry in entries) + 3 * (len(entries) - 1)


def _policy(found: Reading) -> Iterator[Content]:
    if found.policies:
        yield _entry("██", "= chance of that move, to a quarter")
        yield _plain(f"white = {_best(found)}, .31 = its chance")
        yield _worth(found)
        yield _plain("×7 = moves made")
        yield _entry("·", "= below an eighth")


def _arrows(found: Reading) -> Iterator[Content]:
    if found.policies:
        yield _plain(f"arrow = {_best(found)} move, .31 = its chance")
        yield _worth(found)
        yield _entry("━", "= other moves, to a quarter")
        yield _plain("×7 = moves made")


def _best(found: Reading) -> str:
    return "best by Q" if found.learns_q else "likeliest"


def _worth(found: Reading) -> Content:
    names = {"V": "value V", "G": "mean return G"}
    return _plain(f"+.3 = {names.get(found.valued, 'highest Q')}{_ALSO}")


def _values(found: Reading) -> Iterator[Content]:
    if found.policies:
        large = {"V": "large: V learned by the critic", "G": "large: mean return measured"}
        yield _plain(large.get(found.valued, "Q learned, by move"))
        if found.exact:
            yield _plain("=+.3 exact V of this policy, by the rules")
            yield from () if found.learns_q else (_plain("Δ learned − exact"),)
        yield _plain("shade: learned")


def _visits(found: Reading) -> Iterator[Content]:
    if found.chart.paths:
        yield _plain("moves made on the square in this update, and their share")
        yield _plain("shade: the same")


def _change(found: Reading) -> Iterator[Content]:
    if found.policies:
        yield _plain("change of Q in this update" if found.learns_q else "change of each chance in this update")
        yield _entry("+", "up", "$scale-up")
        yield _entry("−", "down", "$scale-down")


def _optimal(found: Reading) -> Iterator[Content]:
    if found.best is not None:
        yield _plain("arrow = best move; several are equally good")
        yield _plain(f"+.3 = V*, the return they earn on average{_ALSO}")


_IN_LARGE: dict[Kind, Callable[[Reading], Iterator[Content]]] = {
    "policy": _policy,
    "values": _values,
    "visits": _visits,
    "change": _change,
    "optimal": _optimal,
}


def _in_small(found: Reading) -> Iterator[Content]:
    """The title names the numbers; these are the marks besides."""
    if found.policies:
        yield _plain("shade: the larger the number, the deeper; red below 0")


def _everywhere(found: Reading, way: Way, large: bool) -> Iterator[Content]:
    signs, world = {sign for row in found.world.map for sign in row}, found.world
    if way.path and large:
        yield _entry(FOOTPRINT * 3, "walk under the cursor", HERE)
    elif way.path:
        yield _entry("underlined", "walk under the cursor", "underline")
    yield _entry("← →", "layer", "bold $foreground")
    if ICE in signs:
        yield _entry("≈", f"ice: {100 * world.ice:.0f} % of moves slip")
    if large and any(world.observed(state) == HIDDEN for state in world.states):
        yield _entry("?", "the policy cannot tell these apart")
    if large and any(not world.ends(state) and world.reward(state) != world.step for state in world.states):
        yield _entry("◆", "reward paid there")
    if ends := " ".join(mark for sign, mark in ((GOAL, "★"), (HOLE, "○")) if sign in signs):
        yield _entry(ends, "end a walk" if " " in ends else "ends a walk")


def _plain(text: str) -> Content:
    return Content.styled(text, MUTED)


def _entry(mark: str, text: str, style: str = MUTED) -> Content:
    return Content.assemble((mark, style), (f" {text}", MUTED))

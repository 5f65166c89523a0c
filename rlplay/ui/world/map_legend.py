"""What the marks of a map mean, below it."""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content

from rlplay.ui.world.large_squares import FOOTPRINT, HERE, MUTED
from rlplay.ui.world.layers import Kind
from rlplay.ui.world.reading import Reading, Way
from rlplay.worlds.world import ICE

_LEARNED = {"V": "V by the critic", "G": "G mean return", "max Q": "Q: the larger one"}


def legend(kind: Kind, found: Reading, way: Way, width: int) -> list[Content]:
    """The marks of a layer, in lines of at most `width` cells, the most important first."""
    rows: list[list[Content]] = [[]]
    for entry in _entries(kind, found, way):
        if _length([*rows[-1], entry]) > width and rows[-1]:
            rows.append([])
        rows[-1].append(entry)
    return [Content.styled("   ", "").join(row) for row in rows]


def _length(entries: list[Content]) -> int:
    return sum(entry.cell_length for entry in entries) + 3 * (len(entries) - 1)


def _entries(kind: Kind, found: Reading, way: Way) -> Iterator[Content]:
    known = bool(found.policies)
    if kind == "policy" and known:
        best = "bright, with a head: best by Q" if found.learns_q else "bright, with a head: likeliest, .31 its chance"
        yield _entry("██", "chance of a move, to a quarter")
        yield _plain(best)
        yield _plain(
            {"V": "V +.3 value by the critic", "G": "G +.3 mean return from here"}.get(
                found.valued, "Q +.3 of the best move"
            )
        )
        yield _plain("shade: the same value")
        yield _plain("×7 moves made here")
    elif kind == "values" and known:
        yield _plain(
            {"V": "large: V learned by the critic", "G": "large: mean return measured", "max Q": "Q learned, by move"}[
                found.valued
            ]
        )
        if found.exact:
            yield _plain("=+.3 exact V of this policy, by the rules")
            if not found.learns_q:
                yield _plain("Δ learned − exact")
        yield _plain("shade: learned")
    elif kind == "visits" and found.chart.paths:
        yield _plain("moves made on the square in this update, and their share")
        yield _plain("shade: the same")
    elif kind == "change" and known:
        yield _plain("change of Q in this update" if found.learns_q else "change of each chance in this update")
        yield _entry("+", "up", "$scale-up")
        yield _entry("−", "down", "$scale-down")
    elif kind == "optimal" and found.best is not None:
        yield _plain("arrow: best move; several: equally good")
        yield _plain("V* the return to expect with them")
    if way.path:
        yield _entry(FOOTPRINT * 3, "the walk under the cursor", HERE)
    if any(ICE in row for row in found.world.map):
        yield _entry("≈", f"ice: {100 * found.world.ice:.0f} % of moves slip")
    yield _entry("← →", "layer", "bold $foreground")


def _plain(text: str) -> Content:
    return Content.styled(text, MUTED)


def _entry(mark: str, text: str, style: str = MUTED) -> Content:
    return Content.assemble((mark, style), (f" {text}", MUTED))

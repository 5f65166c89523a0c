"""A screen as SVG. Every cell has a fixed position, so that columns align in any font."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import groupby

from rlplay.trace.text import visible
from rlplay.ui.screenshot.cells import Cell, CellStyle, Grid
from rlplay.ui.screenshot.shapes import RADIUS, Dot, Rectangle, shapes

WIDTH, HEIGHT, SIZE = 9, 18, 15
"""Of a cell and of its letters, in pixels: a monospaced letter is 0.6 of its size wide."""
_BASELINE = 13.5
NBSP = "\u00a0"
"""Some viewers collapse repeated ordinary blanks."""
_FONTS = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', 'Noto Sans Mono', monospace"


def svg(grid: Grid, title: str) -> str:
    """The text of an SVG file that draws the screen, with the title `title`."""
    columns = max(sum(cell.width for cell in line) for line in grid)
    size = f'width="{columns * WIDTH}" height="{len(grid) * HEIGHT}"'
    lines = "\n".join(part for y, line in enumerate(grid) for part in _line(line, y * HEIGHT))
    ground = grid[0][0].style.ground
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {columns * WIDTH} {len(grid) * HEIGHT}">\n'
        f"<title>{escape(visible(title))}</title>\n"
        f'<style>text {{ font-size: {SIZE}px; font-family: {_FONTS}; }}</style>\n<rect {size} fill="{ground}"/>\n'
        f"{lines}\n</svg>\n"
    )


def _line(cells: list[Cell], top: float) -> Iterator[str]:
    x, inked = 0, list[str]()
    for style, run in groupby(cells, key=lambda cell: cell.style):
        part = list(run)
        columns = sum(cell.width for cell in part)
        yield _box(Rectangle(x, 0, x + columns, 1), top, style.ground)
        inked += _run(part, x, top, style)
        x += columns
    yield from inked  # after all backgrounds: a letter may reach into the next cell


def _run(cells: list[Cell], x: int, top: float, style: CellStyle) -> Iterator[str]:
    drawn = ""
    for kind, group in groupby(cells, key=_kind):
        part = list(group)
        columns = sum(cell.width for cell in part)
        text = "".join(cell.text for cell in part)
        if kind == "letters" and text.strip():
            yield _text(text, x, columns, top, style, 'lengthAdjust="spacing"')
        for cell in part:
            if kind == "letter" and cell.text.strip():
                yield _text(cell.text, x, cell.width, top, style, 'lengthAdjust="spacingAndGlyphs"')
            elif kind == "shapes":
                drawn += "".join(_path(shape, x, top) for shape in shapes(cell.text) or ())
            x += cell.width
    if drawn:
        yield f'<path fill="{style.ink}" d="{drawn}"/>'


def _kind(cell: Cell) -> str:
    """Letters in every monospaced font are drawn together; others may come from a font with other widths."""
    if shapes(cell.text) is not None:
        return "shapes"
    return "letters" if len(cell.text) == cell.width == 1 and cell.text <= "\u024f" else "letter"


def _text(text: str, x: int, columns: int, top: float, style: CellStyle, fit: str) -> str:
    weight = ' font-weight="bold"' * style.bold + ' font-style="italic"' * style.italic
    lines = [name for name, there in (("underline", style.underline), ("line-through", style.strike)) if there]
    weight += f' text-decoration="{" ".join(lines)}"' * bool(lines)
    place = f'x="{x * WIDTH}" y="{top + _BASELINE:g}" textLength="{columns * WIDTH}" {fit}'
    return f'<text {place} fill="{style.ink}"{weight}>{escape(text).replace(" ", NBSP)}</text>'


def _box(box: Rectangle, top: float, fill: str) -> str:
    return (
        f'<rect x="{box.left * WIDTH:g}" y="{top:g}" width="{(box.right - box.left) * WIDTH:g}" height="{HEIGHT}" '
        f'fill="{fill}" shape-rendering="crispEdges"/>'
    )


def _path(shape: Rectangle | Dot, x: int, top: float) -> str:
    if isinstance(shape, Rectangle):
        left, right = (x + shape.left) * WIDTH, (x + shape.right) * WIDTH
        return f"M{left:g} {top + shape.top * HEIGHT:g}H{right:g}V{top + shape.bottom * HEIGHT:g}H{left:g}Z"
    r = RADIUS * WIDTH
    left, middle = (x + shape.x) * WIDTH - r, top + shape.y * HEIGHT
    return f"M{left:g} {middle:g}a{r:g} {r:g} 0 1 0 {2 * r:g} 0a{r:g} {r:g} 0 1 0 {-2 * r:g} 0Z"

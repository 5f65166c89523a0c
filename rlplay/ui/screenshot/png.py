"""A screen as a PNG, drawn cell by cell with pillow and a monospaced font; also used for the README's pictures."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from rlplay.ui.screenshot.cells import Cell, Grid
from rlplay.ui.screenshot.shapes import RADIUS, Rectangle, shapes

_SIZE = 26
_FAMILIES = (
    ("DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf"),
    ("Menlo.ttc", "Menlo.ttc"),
    ("consola.ttf", "consolab.ttf"),
    ("LiberationMono-Regular.ttf", "LiberationMono-Bold.ttf"),
    ("NotoSansMono-Regular.ttf", "NotoSansMono-Bold.ttf"),
)
"""Plain and bold fonts; the first pair found is used. Pillow knows the font folders of Linux, macOS and Windows."""
_OTHERS = ("DejaVuSans.ttf", "NotoSansCJK-Regular.ttc", "wqy-microhei.ttc", "Arial Unicode.ttf", "msgothic.ttc")
"""Fonts for characters that the family lacks, in order of preference."""


class NoFont(OSError):
    """No monospaced font was found."""


class PngRenderer:
    """Draws screens with a fixed cell size. Raises NoFont without a monospaced font."""

    def __init__(self) -> None:
        family = next((both for both in map(_family, _FAMILIES) if both is not None), None)
        if family is None:
            raise NoFont("no monospaced font was found; install DejaVu Sans Mono (Debian: fonts-dejavu-core)")
        self._plain, self._bold = family
        self._others = [font for name in _OTHERS if (font := _font(name, _SIZE - 4)) is not None]
        self.width, self.height = round(self._plain.getlength("M")), round(_SIZE * 1.22)

    def paint(self, grid: Grid, out: Path, reduced: int = 2) -> None:
        """Write the screen to the new file `out` as a PNG; OSError if it cannot be."""
        image = self.picture(grid, reduced)
        with out.open("xb") as file:
            image.save(file, "PNG", optimize=True)

    def picture(self, grid: Grid, reduced: int = 2) -> Image.Image:
        """The screen, drawn at double size and `reduced` by a factor."""
        columns = max(sum(cell.width for cell in line) for line in grid)
        size = (columns * self.width, len(grid) * self.height)
        image = Image.new("RGB", size, grid[0][0].style.ground)
        draw = ImageDraw.Draw(image)
        for y, line in enumerate(grid):
            x = 0
            for cell in line:
                self._cell(draw, cell, x * self.width, y * self.height)
                x += cell.width
        return image.reduce(reduced)

    def _cell(self, draw: ImageDraw.ImageDraw, cell: Cell, left: int, top: int) -> None:
        style, w, h = cell.style, self.width, self.height
        right = left + cell.width * w - 1
        draw.rectangle((left, top, right, top + h - 1), fill=style.ground)
        made_of = shapes(cell.text)
        for shape in made_of or ():
            if isinstance(shape, Rectangle):
                x0, y0, x1, y1 = (round(share * side) for share, side in zip(shape, (w, h, w, h), strict=True))
                draw.rectangle((left + x0, top + y0, left + x1 - 1, top + y1 - 1), fill=style.ink)
            else:
                x, y, r = left + w * shape.x, top + h * shape.y, w * RADIUS
                draw.ellipse((x - r, y - r, x + r, y + r), fill=style.ink)
        if made_of is None and cell.text.strip():
            draw.text((left, top), cell.text, fill=style.ink, font=self._font_for(cell.text[0], style.bold))
        for y, there in ((top + h - 4, style.underline), (top + h // 2, style.strike)):
            if there:
                draw.line((left, y, right, y), fill=style.ink, width=2)

    def _font_for(self, character: str, bold: bool) -> ImageFont.FreeTypeFont:
        own = self._bold if bold else self._plain
        return next((font for font in (own, *self._others) if _has(font, character)), own)


@lru_cache(4096)
def _has(font: ImageFont.FreeTypeFont, character: str) -> bool:
    return bytes(font.getmask(character)) != bytes(font.getmask("\U0010ffff"))


def _family(names: tuple[str, str]) -> tuple[ImageFont.FreeTypeFont, ImageFont.FreeTypeFont] | None:
    plain, bold = (_font(name, _SIZE) for name in names)
    return None if plain is None else (plain, bold or plain)


def _font(name: str, size: int) -> ImageFont.FreeTypeFont | None:
    try:
        return ImageFont.truetype(name, size)
    except OSError:
        return None

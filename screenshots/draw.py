"""Draws a terminal's screen as a picture, cell by cell: lines meet, blocks fill, braille dots sit where they should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

_FONTS = Path("/usr/share/fonts/truetype/dejavu")  # Debian: apt-get install fonts-dejavu-core
_SIZE = 26
_NAMED = {
    "black": "#000000", "red": "#cd3131", "green": "#0dbc79", "brown": "#e5e510",
    "blue": "#2472c8", "magenta": "#bc3fbc", "cyan": "#11a8cd", "white": "#e5e5e5",
}  # fmt: skip

# Where a line leaves the middle of its cell: up, right, down, left.
_LINES = {
    "─": "rl", "│": "ud", "╭": "rd", "╮": "dl", "╰": "ur", "╯": "ul", "┌": "rd", "┐": "dl", "└": "ur", "┘": "ul",
    "├": "urd", "┤": "udl", "┬": "rdl", "┴": "url", "┼": "urdl", "━": "rl", "┃": "ud",
}  # fmt: skip
_DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))
_QUADRANTS = {
    0x2596: 4,
    0x2597: 8,
    0x2598: 1,
    0x2599: 13,
    0x259A: 9,
    0x259B: 7,
    0x259C: 11,
    0x259D: 2,
    0x259E: 6,
    0x259F: 14,
}


class Painter:
    """Draws `pyte` screens with a fixed cell size."""

    def __init__(self) -> None:
        names = ("DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf")
        self._plain, self._bold = (ImageFont.truetype(str(_FONTS / name), _SIZE) for name in names)
        self._fallback = ImageFont.truetype(str(_FONTS / "DejaVuSans.ttf"), _SIZE - 4)
        self._missing = bytes(self._plain.getmask("\U0010ffff"))
        self.width, self.height = round(self._plain.getlength("M")), round(_SIZE * 1.22)

    def paint(self, screen: Any, out: Path) -> None:
        """Write the screen to `out` as a PNG, at half the size it is drawn."""
        size = (screen.columns * self.width, screen.lines * self.height)
        image = Image.new("RGB", size, "#101010")
        draw = ImageDraw.Draw(image)
        for y in range(screen.lines):
            for x in range(screen.columns):
                self._cell(draw, screen.buffer[y][x], x * self.width, y * self.height)
        image.resize((size[0] // 2, size[1] // 2), Image.Resampling.BOX).save(out, optimize=True)

    def _cell(self, draw: Any, cell: Any, left: int, top: int) -> None:
        ink, ground = _colour(cell.fg, "#e0e0e0"), _colour(cell.bg, "#101010")
        if cell.reverse:
            ink, ground = ground, ink
        draw.rectangle([left, top, left + self.width - 1, top + self.height - 1], fill=ground)
        text = cell.data
        if text.strip():
            code = ord(text[0])
            if text in _LINES:
                self._lines(draw, _LINES[text], left, top, ink, 4 if text in "━┃" else 2)
            elif 0x2800 <= code <= 0x28FF:
                self._braille(draw, code - 0x2800, left, top, ink)
            elif 0x2580 <= code <= 0x259F and not 0x2591 <= code <= 0x2595:
                self._block(draw, code, left, top, ink)
            else:
                font = self._bold if cell.bold else self._plain
                font = self._fallback if bytes(font.getmask(text[0])) == self._missing else font
                draw.text((left, top), text, fill=ink, font=font)
        if cell.underscore:
            y = top + self.height - 4
            draw.line([left, y, left + self.width - 1, y], fill=ink, width=2)

    def _lines(self, draw: Any, ways: str, left: int, top: int, ink: str, thick: int) -> None:
        # Rectangles, since a drawn line of even width leans to the side it is drawn from.
        x, y, half = left + self.width // 2, top + self.height // 2, thick // 2
        boxes = {
            "u": (x - half, top, x + half - 1, y + half - 1),
            "d": (x - half, y - half, x + half - 1, top + self.height - 1),
            "l": (left, y - half, x + half - 1, y + half - 1),
            "r": (x - half, y - half, left + self.width - 1, y + half - 1),
        }
        for way in ways:
            draw.rectangle(boxes[way], fill=ink)

    def _braille(self, draw: Any, bits: int, left: int, top: int, ink: str) -> None:
        for bit, (column, row) in enumerate(_DOTS):
            if bits >> bit & 1:
                x, y = left + self.width * (0.27 + 0.46 * column), top + self.height * (0.125 + 0.25 * row)
                draw.ellipse([x - 2.4, y - 2.4, x + 2.4, y + 2.4], fill=ink)

    def _block(self, draw: Any, code: int, left: int, top: int, ink: str) -> None:
        w, h = self.width, self.height
        if code == 0x2580:
            boxes = [(0.0, 0.0, 1.0, 0.5)]
        elif code <= 0x2588:
            boxes = [(0.0, 1 - (code - 0x2580) / 8, 1.0, 1.0)]
        elif code <= 0x258F:
            boxes = [(0.0, 0.0, (0x2590 - code) / 8, 1.0)]
        elif code == 0x2590:
            boxes = [(0.5, 0.0, 1.0, 1.0)]
        else:
            corners = [(b % 2 / 2, b // 2 / 2) for b in range(4) if _QUADRANTS[code] >> b & 1]
            boxes = [(x, y, x + 0.5, y + 0.5) for x, y in corners]
        for x0, y0, x1, y1 in boxes:
            draw.rectangle([left + x0 * w, top + y0 * h, left + x1 * w - 1, top + y1 * h - 1], fill=ink)


def _colour(name: str, default: str) -> str:
    if name == "default":
        return default
    return _NAMED.get(name, "#" + name)

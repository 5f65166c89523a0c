"""Makes the README's moving picture from a real run: `python -m screenshots.animate`, about a minute.

One update token by token and phase by phase, then seven whole ones, and at last the belief river; a frame is what the
terminal showed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from PIL import Image

from rlplay.ui.screenshot.png import PngRenderer
from screenshots.draw import grid_of
from tests.terminal import Terminal, rlplay

OUT = Path(__file__).parent / "learn-to-think.gif"
_SIZE = (120, 35)
_COLOURS = 160
_TOKENS, _UPDATES = 4, 8
_BRIEF, _LONG = 600, 1800
"""Milliseconds that a frame stands."""


class Film:
    """Frames of one terminal."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal, self._renderer = terminal, PngRenderer()
        self.frames: list[Image.Image] = []
        self.stands: list[int] = []

    def after(self, key: str, pattern: str, milliseconds: int) -> None:
        """Press a key, and keep the screen once it shows `pattern` and has come to rest."""
        self._terminal.press(key)
        self._terminal.wait_for(pattern, timeout=90)
        self.keep(milliseconds)

    def keep(self, milliseconds: int) -> None:
        """Keep the screen once it has come to rest."""
        self._terminal.settle()
        self.frames.append(self._renderer.picture(grid_of(self._terminal.screen)))
        self.stands.append(milliseconds)

    def save(self, out: Path) -> None:
        """One file, in the colours that all frames together have most of."""
        width, height = self.frames[0].size
        reel = Image.new("RGB", (width, height * len(self.frames)))
        for place, frame in enumerate(self.frames):
            reel.paste(frame, (0, place * height))
        colours = reel.quantize(_COLOURS)
        first, *others = (frame.quantize(palette=colours, dither=Image.Dither.NONE) for frame in self.frames)
        first.save(out, save_all=True, append_images=others, duration=self.stands, loop=0, optimize=True)


def main() -> None:
    """Play and write."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        terminal = Terminal(rlplay("learn-to-think"), *_SIZE, env={"RLPLAY_HOME": home})
        try:
            terminal.wait_for("paused", timeout=60)
            film = Film(terminal)
            terminal.wait_for("sampled|SCORE", timeout=90)
            film.keep(_LONG)  # the first batch
            for phase in ("CREDIT", "UPDATE"):
                film.after("n", phase, _LONG)
            film.after("u", "update 1 ", _LONG)
            for position in range(1, _TOKENS + 1):
                film.after(".", f"token {position}", _BRIEF)
            for number in range(2, _UPDATES + 1):
                film.after("u", f"update {number} ", _BRIEF)
            film.after("B", "Belief", 3 * _LONG)
        finally:
            terminal.close()
    film.save(OUT)
    print(OUT)


if __name__ == "__main__":
    main()

"""Colours of curves, of compared runs and of the bands of the river, for every theme.

Blue, amber and grey first: they stay apart in every common kind of colour blindness. The others differ from their
neighbours in lightness, too.
"""

from __future__ import annotations

from textual.color import Color

from rlplay.ui.theme.inks import readable

CURVES = {letter: f"curve-{letter.lower()}" for letter in "ABCDEFGH"}
"""The CSS variables by the letter of a compared run; the first two are those of a run's own curves, too.

With `-shade` at its end, the colour of the area at such a curve.
"""
_DARK = ("#55a8f5", "#f2a93b", "#cfd4dc", "#7e83b7", "#dbe1bb", "#b48231", "#cc7f84", "#e5d77e")
_LIGHT = ("#1f6fd0", "#a05a00", "#656d75", "#1d1c80", "#664b2e", "#1f0d3c", "#3a2cca", "#1a0e11")
_ANSI = ("blue", "yellow", "white", "magenta", "cyan", "green", "bright_red", "bright_blue")
_ANSI_ON_LIGHT = ("blue", "red", "black", "magenta", "cyan", "green", "bright_red", "bright_blue")
_SHADE, _FAINT = 0.22, 0.36
"""How much of a curve's colour is in its area, and how much of the ink in what was discarded."""
_SHADES = "#262626", "#e4e4e4"
"""With 256 colours, a shade would change its hue."""


def curve_inks(variables: dict[str, str], dark: bool, ansi: bool, colours: int = 1 << 24) -> dict[str, str]:
    """The CSS variables: colours that can be read on the panel, their shades, and the faint grey of discarded updates.

    A theme of the terminal's colours has no shades: what is drawn there needs none.
    """
    if ansi:
        names = _ANSI if dark else _ANSI_ON_LIGHT
        inks = {name: f"ansi_{ink}" for name, ink in zip(CURVES.values(), names, strict=True)}
        return inks | {f"{name}-shade": "ansi_default" for name in inks} | {"curve-ghost": "ansi_bright_black"}
    ground, panel = (Color.parse(variables[name]) for name in ("background", "panel"))
    hues = zip(CURVES.values(), _DARK if dark else _LIGHT, strict=True)
    found = {name: readable(panel, Color.parse(hue)) for name, hue in hues}
    shades = {f"{name}-shade": ground.blend(ink, _SHADE).hex for name, ink in found.items()}
    if colours <= 256:
        shades = dict.fromkeys(shades, _SHADES[0] if dark else _SHADES[1])
    ghost = ground.blend(Color.parse(variables["foreground"]), _FAINT)
    return {name: ink.hex for name, ink in found.items()} | shades | {"curve-ghost": ghost.hex}

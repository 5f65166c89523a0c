"""The themes that come with rlplay. Chrome is nearly colourless; `inks.py` draws with the scales.

The greys of the chrome have so little saturation that a terminal with 256 colours shows them as greys.
"""

from __future__ import annotations

from textual.color import Color
from textual.theme import Theme

from rlplay.ui.theme.inks import readable

_BARE = ("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active")
_COLOURS = {
    #                   dark       light      contrast   dusk       paper
    "primary":         ("#b79cf7", "#6b46c1", "#ffd75f", "#88c0d0", "#8b3a62"),
    "secondary":       ("#4fc1b0", "#0f7c6e", "#5fd7ff", "#ebcb8b", "#2f6f5e"),
    "foreground":      ("#d5d9e0", "#23272f", "#ffffff", "#e3e6ea", "#37322d"),
    "background":      ("#0e1015", "#fbfaf8", "#000000", "#252932", "#f6efdf"),
    "surface":         ("#12151b", "#f5f5f4", "#121212", "#2a2e37", "#efe6d2"),
    "panel":           ("#1b1f27", "#eeeeee", "#1c1c1c", "#2f343e", "#ebe3d1"),
    "success":         ("#4fc1b0", "#0f7c6e", "#5fffaf", "#a3be8c", "#2f6f5e"),
    "warning":         ("#e0b350", "#946200", "#ffaf5f", "#ebcb8b", "#8a5a00"),
    "error":           ("#ef7d6c", "#b3372a", "#ff8787", "#e08a93", "#a6352a"),
}  # fmt: skip
"""Textual's colours by theme."""
_VARIABLES = {
    "border":          ("#303643", "#cfcbc3", "#6c6c6c", "#454c59", "#c8c1b5"),
    "text-muted":      ("#868e9b", "#6d6a64", "#bcbcbc", "#9aa2b0", "#6a6257"),
    "scrollbar":       ("#2c2f36", "#d8d4cc", "#585858", "#454c59", "#d0cbc2"),
    "scrollbar-hover": ("#45484f", "#bdb8ae", "#808080", "#5f6776", "#b5afa5"),
    "scale-up":        ("#3f8fe8", "#4a92e6", "#4fa3ff", "#5e9fe8", "#5a95d8"),
    "scale-down":      ("#e8812e", "#ee8a3c", "#ff8c2a", "#e08a4a", "#e08a42"),
    "scale-amount":    ("#2fa592", "#3fb3a1", "#2fc2ab", "#4fb3a2", "#4ba894"),
}  # fmt: skip
"""rlplay's own CSS variables by theme."""


def _theme(place: int, name: str, dark: bool) -> Theme:
    colours = {role: each[place] for role, each in _COLOURS.items()}
    variables = {role: each[place] for role, each in _VARIABLES.items()} | dict.fromkeys(_BARE, colours["background"])
    same = {"accent": colours["primary"], "boost": colours["panel"]}
    return Theme(f"rlplay-{name}", dark=dark, variables=variables, **colours, **same)  # type: ignore[arg-type]


DARK = _theme(0, "dark", True)
THEMES = (
    DARK, _theme(1, "light", False), _theme(2, "contrast", True), _theme(3, "dusk", True), _theme(4, "paper", False)
)  # fmt: skip

_GREY = ("border", "text-muted", "scrollbar", "scrollbar-hover", "scrollbar-active")
_WORDS = ("primary", "secondary", "accent", "success", "warning", "error")
"""The colours of text."""


def quiet(variables: dict[str, str]) -> dict[str, str]:
    """A foreign theme's CSS variables with chrome as muted as ours.

    Colours should have a meaning, and text should be readable on the background and on the bars above and below.
    """
    background, foreground = Color.parse(variables["background"]), Color.parse(variables["foreground"])
    panel = background.blend(foreground, 0.07)
    muted = readable(panel, background.blend(foreground, 0.55))
    words = {name: readable(panel, Color.parse(variables[name])).hex for name in _WORDS if name in variables}
    chrome = {name: background.blend(foreground, 0.2).hex for name in _GREY} | dict.fromkeys(_BARE, background.hex)
    # The cursor and the border of what has the focus have one colour.
    one = {"accent": words.get("primary", foreground.hex)}
    return {**variables, **words, **one, **chrome, "panel": panel.hex, "text-muted": muted.hex}


def borrowed(variables: dict[str, str], dark: bool) -> dict[str, str]:
    """The CSS variables of a theme of the terminal's colours, with grey chrome and one accent.

    The terminal's actual colours are unknown, so shades are mixed from "ground" and "ink".
    """
    chrome = dict.fromkeys(_GREY, "ansi_bright_black") | dict.fromkeys(_BARE, "ansi_default")
    ends = ("#000000", "#ffffff") if dark else ("#ffffff", "#000000")
    return {**variables, **chrome, "primary": variables["accent"], "ground": ends[0], "ink": ends[1]}

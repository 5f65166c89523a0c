"""The themes that come with rlplay. Chrome is nearly colourless; `colours.py` draws with the scales.

The greys of the chrome have so little saturation that a terminal with 256 colours shows them as greys.
"""

from __future__ import annotations

from math import dist

from textual.color import Color
from textual.theme import Theme

from rlplay.ui.theme.colours import readable

DARK = Theme(
    name="rlplay-dark",
    primary="#b79cf7",
    secondary="#4fc1b0",
    accent="#b79cf7",
    foreground="#d5d9e0",
    background="#0e1015",
    surface="#12151b",
    panel="#1b1f27",
    boost="#1b1f27",
    success="#4fc1b0",
    warning="#e0b350",
    error="#ef7d6c",
    dark=True,
    variables={
        "border": "#303643",
        "text-muted": "#868e9b",
        "scrollbar": "#2c2f36",
        "scrollbar-hover": "#45484f",
        "scrollbar-background": "#0e1015",
        "scrollbar-background-hover": "#0e1015",
        "scrollbar-background-active": "#0e1015",
        "scale-up": "#3f8fe8",
        "scale-down": "#e8812e",
        "scale-amount": "#2fa592",
    },
)

LIGHT = Theme(
    name="rlplay-light",
    primary="#6b46c1",
    secondary="#0f7c6e",
    accent="#6b46c1",
    foreground="#23272f",
    background="#fbfaf8",
    surface="#f5f5f4",
    panel="#eeeeee",
    boost="#eeeeee",
    success="#0f7c6e",
    warning="#946200",
    error="#b3372a",
    dark=False,
    variables={
        "border": "#cfcbc3",
        "text-muted": "#6d6a64",
        "scrollbar": "#d8d4cc",
        "scrollbar-hover": "#bdb8ae",
        "scrollbar-background": "#fbfaf8",
        "scrollbar-background-hover": "#fbfaf8",
        "scrollbar-background-active": "#fbfaf8",
        "scale-up": "#4a92e6",
        "scale-down": "#ee8a3c",
        "scale-amount": "#3fb3a1",
    },
)

CONTRAST = Theme(
    name="rlplay-contrast",
    primary="#ffd75f",
    secondary="#5fd7ff",
    accent="#ffd75f",
    foreground="#ffffff",
    background="#000000",
    surface="#121212",
    panel="#1c1c1c",
    boost="#1c1c1c",
    success="#5fffaf",
    warning="#ffaf5f",
    error="#ff8787",
    dark=True,
    variables={
        "border": "#6c6c6c",
        "text-muted": "#bcbcbc",
        "scrollbar": "#585858",
        "scrollbar-hover": "#808080",
        "scrollbar-background": "#000000",
        "scrollbar-background-hover": "#000000",
        "scrollbar-background-active": "#000000",
        "scale-up": "#4fa3ff",
        "scale-down": "#ff8c2a",
        "scale-amount": "#2fc2ab",
    },
)

DUSK = Theme(
    name="rlplay-dusk",
    primary="#88c0d0",
    secondary="#ebcb8b",
    accent="#88c0d0",
    foreground="#e3e6ea",
    background="#252932",
    surface="#2a2e37",
    panel="#2f343e",
    boost="#2f343e",
    success="#a3be8c",
    warning="#ebcb8b",
    error="#e08a93",
    dark=True,
    variables={
        "border": "#454c59",
        "text-muted": "#9aa2b0",
        "scrollbar": "#454c59",
        "scrollbar-hover": "#5f6776",
        "scrollbar-background": "#252932",
        "scrollbar-background-hover": "#252932",
        "scrollbar-background-active": "#252932",
        "scale-up": "#5e9fe8",
        "scale-down": "#e08a4a",
        "scale-amount": "#4fb3a2",
    },
)

PAPER = Theme(
    name="rlplay-paper",
    primary="#8b3a62",
    secondary="#2f6f5e",
    accent="#8b3a62",
    foreground="#37322d",
    background="#f6efdf",
    surface="#efe6d2",
    panel="#ebe3d1",
    boost="#ebe3d1",
    success="#2f6f5e",
    warning="#8a5a00",
    error="#a6352a",
    dark=False,
    variables={
        "border": "#c8c1b5",
        "text-muted": "#6a6257",
        "scrollbar": "#d0cbc2",
        "scrollbar-hover": "#b5afa5",
        "scrollbar-background": "#f6efdf",
        "scrollbar-background-hover": "#f6efdf",
        "scrollbar-background-active": "#f6efdf",
        "scale-up": "#5a95d8",
        "scale-down": "#e08a42",
        "scale-amount": "#4ba894",
    },
)

THEMES = (DARK, LIGHT, CONTRAST, DUSK, PAPER)


_GREY = ("border", "text-muted", "scrollbar", "scrollbar-hover", "scrollbar-active")
_BARE = ("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active")
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
    return {**variables, **words, **chrome, "panel": panel.hex, "text-muted": muted.hex}


RUNS = {letter: f"run-{letter.lower()}" for letter in "CDEFGH"}
"""The CSS variables with the colours of compared runs from the third on; the first two use the theme's colours."""
_HUES = ("#e8a200", "#f0553c", "#3d95f5", "#6cc22e", "#e85ab8", "#14b8a6", "#9a72ff", "#9aa3b2", "#b87333")
_ANSI_HUES = ("ansi_yellow", "ansi_red", "ansi_green", "ansi_magenta", "ansi_cyan", "ansi_bright_red")


def run_inks(variables: dict[str, str], ansi: bool) -> dict[str, str]:
    """Colours for `RUNS`: each readable on the background, and as different as possible from those before it."""
    if ansi:
        return dict(zip(RUNS.values(), _ANSI_HUES, strict=True))
    panel = Color.parse(variables["panel"])
    inks = [readable(panel, Color.parse(hue)) for hue in _HUES]
    taken = [Color.parse(variables[name]) for name in ("primary", "secondary")]
    for _ in RUNS:
        taken.append(max(inks, key=lambda ink: min(dist(ink.rgb, other.rgb) for other in taken)))
    return {name: ink.hex for name, ink in zip(RUNS.values(), taken[2:], strict=True)}


def borrowed(variables: dict[str, str], dark: bool) -> dict[str, str]:
    """The CSS variables of a theme of the terminal's colours, with grey chrome and one accent.

    The terminal's actual colours are unknown, so shades are mixed from "ground" and "ink".
    """
    chrome = dict.fromkeys(_GREY, "ansi_bright_black") | dict.fromkeys(_BARE, "ansi_default")
    ends = ("#000000", "#ffffff") if dark else ("#ffffff", "#000000")
    return {**variables, **chrome, "primary": variables["accent"], "ground": ends[0], "ink": ends[1]}

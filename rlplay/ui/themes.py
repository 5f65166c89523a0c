"""The themes that come with rlplay. Chrome is nearly colourless; the scales are what `theme.py` draws with.

Chrome's greys are so little saturated that a terminal with 256 colours shows them as greys.
"""

from __future__ import annotations

from textual.color import Color
from textual.theme import Theme

from rlplay.ui.theme import contrast

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
        "text-muted": "#70685c",
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


def quiet(variables: dict[str, str]) -> dict[str, str]:
    """A foreign theme's CSS variables with chrome as quiet as ours: what is coloured should mean something."""
    background, foreground = Color.parse(variables["background"]), Color.parse(variables["foreground"])
    muted = next(
        shade
        for share in (0.55, 0.65, 0.75, 0.85, 1.0)
        if contrast(background, shade := background.blend(foreground, share)) >= 4.5 or share == 1.0
    )
    return {**variables, "border": background.blend(foreground, 0.2).hex, "text-muted": muted.hex}

"""The colours with a meaning, derived from the current theme.

Chrome is nearly colourless. Two scales have a meaning: blue for up and orange for down (distinct in every common kind
of colour blindness), and teal for the size of a quantity without a sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from rich.style import Style
from textual.color import Color

from rlplay.trace.lenses import Lens
from rlplay.trace.records import Array

STEPS = 4
"""Shades on each side of the middle: few enough to stay distinct with 256 and with 16 colours."""

READABLE = 4.5
"""WCAG's minimum contrast between text and background."""

_STRONG = (0.0, 0.22, 0.42, 0.66, 0.95)
_SOFT = (0.0, 0.1, 0.22, 0.36, 0.52)
FALLBACK = {"scale-up": "#3f8fe8", "scale-down": "#e8812e", "scale-amount": "#2fa592"}
_SIXTEEN = {
    "scale-up": ("#00aaaa", "#0000aa"),
    "scale-down": ("#aa5500", "#aa0000"),
    "scale-amount": ("#00aaaa", "#00aa00"),
}
"""Weak and strong shades in 16 colours, with values that terminals have exactly. Black on weak, white on strong."""
_CUBE = {
    ("scale-up", True): ("#00005f", "#005f87", "#005faf", "#0087ff"),
    ("scale-down", True): ("#5f0000", "#875f00", "#af5f00", "#ff8700"),
    ("scale-amount", True): ("#262626", "#005f5f", "#00875f", "#00af87"),
    ("scale-up", False): ("#d7d7ff", "#afd7ff", "#5fafff", "#0087ff"),
    ("scale-down", False): ("#ffd7af", "#ffaf5f", "#ff8700", "#d75f00"),
    ("scale-amount", False): ("#d7ffd7", "#afd7d7", "#87d7af", "#5faf87"),
}
"""Shades in 256 colours, by scale and darkness of the theme: the colour nearest to a blend would have another hue."""


_LADDER = (Style(), Style(), Style(underline=True), Style(underline=True, bold=True),
           Style(underline=True, bold=True, italic=True))  # fmt: skip
"""Shades of an amount by level without any colour."""
_UP_LADDER, _DOWN_LADDER = (
    (Style(), mark, mark + Style(italic=True), mark + Style(bold=True), mark + Style(bold=True, italic=True))
    for mark in (Style(underline=True), Style(strike=True))
)
"""Up is underlined, down is struck through, and the smallest change that has a colour has a mark, too."""


@dataclass(frozen=True)
class Palette:
    """Styles for drawing. The index of a shade is its level: 0 is neutral, `STEPS` the end of the scale."""

    text: Style
    strong: Style
    muted: Style
    faint: Style
    mark: Style
    """The sign beside the line under the cursor."""
    warning: Style
    error: Style
    good: Style
    up: tuple[Style, ...]
    down: tuple[Style, ...]
    amount: tuple[Style, ...]
    up_text: Style
    down_text: Style
    cursor: Style
    found: Style

    @property
    def coloured(self) -> bool:
        """Whether there are colours at all."""
        return self.up[-1].bgcolor is not None

    def shade(self, level: int, diverging: bool) -> Style:
        """The style of a token at `level`, a value of `levels`."""
        if not diverging:
            return self.amount[level]
        return self.up[level] if level >= 0 else self.down[-level]


def palette(variables: dict[str, str], colours: int = 1 << 24) -> Palette:
    """The palette of a theme from its CSS variables, for a terminal with `colours` colours; 2 means none."""
    # A theme of terminal colours has only their names: `borrowed` adds colours to mix shades from.
    background = Color.parse(variables.get("ground", variables["background"]))
    foreground = Color.parse(variables.get("ink", variables["foreground"]))
    words = Color.parse(variables["foreground"])

    def written(color: Color, bold: bool | None = None) -> Style:
        return Style(color=color.rich_color, bold=bold)

    def scale(name: str, strengths: tuple[float, ...], cue: Style) -> tuple[Style, ...]:
        end = Color.parse(variables.get(name, FALLBACK[name]))
        shades = [Style()]
        for level in range(1, STEPS + 1):
            strong = level > STEPS // 2
            if colours <= 16:
                ground, ink = Color.parse(_SIXTEEN[name][strong]), Color.parse("#ffffff" if strong else "#000000")
            else:
                ground = background.blend(end, strengths[level])
                if colours <= 256:
                    ground = Color.parse(_CUBE[name, background.brightness < 0.5][level - 1])
                ink = _readable(ground, foreground)
            shade = Style(color=ink.rich_color, bgcolor=ground.rich_color)
            shades.append(shade + cue if level >= STEPS // 2 else shade)
        return tuple(shades)

    # Underlining also distinguishes up from down in grey; with few colours, down is struck through.
    few = Style() if colours > 16 else Style(strike=True)
    accent, muted = Color.parse(variables["primary"]), variables["text-muted"]
    up, down = (Color.parse(variables.get(name, FALLBACK[name])) for name in ("scale-up", "scale-down"))
    return Palette(
        text=written(words),
        strong=written(words, bold=True),
        muted=written(Color.parse(muted) if "auto" not in muted else background.blend(foreground, 0.58)),
        faint=written(background.blend(foreground, 0.22)),
        mark=written(accent, bold=True),
        warning=written(Color.parse(variables["warning"])),
        error=written(Color.parse(variables["error"])),
        good=written(Color.parse(variables["success"])),
        up=scale("scale-up", _STRONG, Style(underline=True)) if colours > 2 else _UP_LADDER,
        down=scale("scale-down", _STRONG, few) if colours > 2 else _DOWN_LADDER,
        amount=scale("scale-amount", _SOFT, Style()) if colours > 2 else _LADDER,
        up_text=written(readable(background, up.blend(_clearest(background), 0.25))),
        down_text=written(readable(background, down.blend(_clearest(background), 0.25))),
        cursor=Style(color=background.rich_color, bgcolor=accent.rich_color, bold=True),
        found=Style()
        if colours > 2
        else Style(reverse=True),  # with colours, matches keep theirs and other tokens lose theirs
    )


@lru_cache(4096)
def blended(old: Style, new: Style, share: float, palette: Palette) -> Style:
    """A style between two on their way from `old` (0) to `new` (1): the background moves, the text is that of `new`."""
    if old == new or share >= 1 or (old.bgcolor is None and new.bgcolor is None):
        return new
    ground = palette.cursor.color  # the letters of a cursor are cut out of it
    one, other = (Color.from_rich_color(style.bgcolor or ground) for style in (old, new))
    between = one.blend(other, share)
    ink = _readable(between, Color.from_rich_color(new.color or palette.text.color))
    return new + Style(bgcolor=between.rich_color, color=ink.rich_color)


_UNSEEN = 0.02
"""The share of a scale from which on a value has a shade; NaN has none."""


def levels(lens: Lens, values: Array) -> Array:
    """The shade of each value on the lens's fixed scale: int8, −STEPS to STEPS (sequential: 0 to STEPS); NaN is 0."""
    unit = np.minimum(np.maximum(lens.share(values), -1.0 if lens.two_sided else 0.0), 1.0)
    size, least = np.abs(unit), _UNSEEN
    if lens.finest:
        least = float(lens.share(np.array(lens.low + _UNSEEN * (lens.high - lens.low))))
    seen = size >= least  # also says no to NaN
    return np.where(seen, np.copysign(np.ceil(np.where(seen, size, 0.0) * STEPS - 1e-6), unit), 0).astype(np.int8)


def off_scale(lens: Lens, values: Array) -> tuple[bool, bool]:
    """Whether some values lie below the lens's scale, and whether some lie above it."""
    rounding = 1e-4 * (lens.high - lens.low)
    return bool((values < lens.low - rounding).any()), bool((values > lens.high + rounding).any())


def contrast(one: Color, other: Color) -> float:
    """WCAG's contrast ratio of two colours, 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def readable(ground: Color, ink: Color) -> Color:
    """`ink`, blended towards black or white only as far as needed for readable text on `ground`."""
    end = _clearest(ground)
    shades = (ink.blend(end, share / 20) for share in range(21))
    return next((shade for shade in shades if contrast(ground, shade) >= READABLE), end)


def _clearest(ground: Color) -> Color:
    return max(Color.parse("#000000"), Color.parse("#ffffff"), key=lambda ink: contrast(ground, ink))


def _luminance(color: Color) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color.normalized]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _readable(ground: Color, preferred: Color) -> Color:
    return preferred if contrast(ground, preferred) >= READABLE else _clearest(ground)

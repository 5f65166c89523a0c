"""How keys are written, and the keys of its own that a panel shows in the footer."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding

KEY_NAMES = {
    "full_stop": ".",
    "question_mark": "?",
    "slash": "/",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "equals_sign": "=",
    "asterisk": "*",
    "at": "@",
    "comma": ",",
    "semicolon": ";",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "number_sign": "#",
    "exclamation_mark": "!",
    "plus": "+",
    "minus": "-",
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
    "escape": "esc",
    "delete": "del",
    "f12": "F12",
    "f1": "F1",
}


LIST_KEYS = (
    Binding("j", "app.simulate_key('down')", "down", show=False),
    Binding("k", "app.simulate_key('up')", "up", show=False),
    Binding("G", "app.simulate_key('end')", "last", show=False),
)
"""What vi's keys do in a dialogue with one list or text, whose letters are free."""


def written(key: str) -> str:
    """A Textual key name as it is written on a keyboard."""
    return KEY_NAMES.get(key, key)


@dataclass(frozen=True)
class Shortcut:
    """Keys of the focused panel, in Textual's names, and what they do, in a word.

    In a short footer, `early` ones come before most verbs, the others after them.
    """

    keys: tuple[str, ...]
    title: str
    early: bool = True

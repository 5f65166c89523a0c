"""How keys are written, and the keys of its own that a panel shows in the footer."""

from __future__ import annotations

from dataclasses import dataclass

KEY_NAMES = {
    "full_stop": ".",
    "question_mark": "?",
    "slash": "/",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "equals_sign": "=",
    "asterisk": "*",
    "comma": ",",
    "semicolon": ";",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
    "escape": "esc",
    "delete": "del",
    "f12": "F12",
    "f1": "F1",
}


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

"""The rooms of the screen, for whoever looks into all of them: idle tasks, checks of keys, tests."""

from __future__ import annotations

from pathlib import Path

WITHOUT_WIDGETS = ("screenshot", "terminal")
"""Rooms that may need what is not installed, such as pillow, and that have neither panel nor dialogue."""


def modules() -> list[str]:
    """The full names of all modules in rooms that may have panels or dialogues; none is imported."""
    files = sorted(Path(__file__).parent.glob("[a-z]*/[a-z]*.py"))
    return [f"rlplay.ui.{file.parent.name}.{file.stem}" for file in files if file.parent.name not in WITHOUT_WIDGETS]

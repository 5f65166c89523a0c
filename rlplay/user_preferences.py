"""What is kept between starts: the theme and how far each lesson was played, in a small file of rlplay's own folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from rlplay import paths


class LessonProgress(msgspec.Struct, frozen=True):
    """How far a lesson was played."""

    steps: int
    of: int
    right: int = 0  # predictions that came true
    predicted: int = 0

    @property
    def whole(self) -> bool:
        """Whether it was played to its end."""
        return self.steps >= self.of


def file() -> Path:
    """Where it is kept; it need not exist yet."""
    return paths.home() / "preferences.json"


def theme() -> str | None:
    """The name of the theme chosen last; None if none was, or if the file cannot be read."""
    name = _read().get("theme")
    return name if isinstance(name, str) else None


def keep_theme(name: str) -> None:
    """Start with this theme from now on. Raises OSError if that cannot be written down."""
    _write({"theme": name})


def lessons() -> dict[str, LessonProgress]:
    """What was played of each lesson, by its scenario's name; none if the file cannot be read."""
    try:
        return msgspec.convert(_read().get("lessons", {}), dict[str, LessonProgress])
    except msgspec.ValidationError:
        return {}


def keep_lesson(name: str, played: LessonProgress) -> None:
    """Remember how far the lesson of scenario `name` was played, unless it was played further once.

    Raises OSError if that cannot be written down.
    """
    known = lessons()
    before = known.get(name)
    if before is None or played.steps >= before.steps or played.of != before.of:
        _write({"lessons": msgspec.to_builtins(known | {name: played})})


def _read() -> dict[str, Any]:
    try:
        content = json.loads(file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(changes: dict[str, Any]) -> None:
    file().parent.mkdir(parents=True, exist_ok=True)
    file().write_text(json.dumps(_read() | changes) + "\n", encoding="utf-8")

"""What rlplay remembers between starts: the theme, and the progress in each lesson."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from rlplay import paths


class LessonProgress(msgspec.Struct, frozen=True):
    """How far the user played a lesson."""

    steps: int
    of: int
    right: int = 0  # predictions that came true
    predicted: int = 0

    @property
    def whole(self) -> bool:
        """Whether the user played it to its end."""
        return self.steps >= self.of


def file() -> Path:
    """The file of the preferences; it may not exist yet."""
    return paths.home() / "preferences.json"


def theme() -> str | None:
    """The name of the theme that the user chose last; None if there is none or the file cannot be read."""
    name = _read().get("theme")
    return name if isinstance(name, str) else None


def keep_theme(name: str) -> None:
    """Remember the theme for the next start. Raises OSError if the file cannot be written."""
    _write({"theme": name})


def lessons() -> dict[str, LessonProgress]:
    """The progress in each lesson, by its scenario's name; empty if the file cannot be read."""
    try:
        return msgspec.convert(_read().get("lessons", {}), dict[str, LessonProgress])
    except msgspec.ValidationError:
        return {}


def keep_lesson(name: str, played: LessonProgress) -> None:
    """Remember the progress in the lesson of scenario `name`, unless the user has played it further before.

    Raises OSError if the file cannot be written.
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

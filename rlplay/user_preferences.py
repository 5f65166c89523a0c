"""What rlplay remembers between starts: theme, way on from the opening, progress in lessons, what was written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from rlplay import paths


class LessonProgress(msgspec.Struct, frozen=True):
    """How far the user played a lesson, and the choice that the user made at each question, by the question's text."""

    steps: int
    of: int
    answers: dict[str, str] = {}

    @property
    def whole(self) -> bool:
        """Whether the user played it to its end."""
        return self.steps >= self.of


class Written(msgspec.Struct, frozen=True):
    """What the user wrote last for an exercise, and whether it was ever right."""

    text: str
    solved: bool = False


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


def reduced_motion() -> bool:
    """Whether the user wants nothing to move."""
    return _read().get("reduced_motion") is True


def keep_reduced_motion(reduced: bool) -> None:
    """Remember whether things may move. Raises OSError if the file cannot be written."""
    _write({"reduced_motion": reduced})


def opening() -> str | None:
    """The verb of the way that the user took last from the opening; None if there is none."""
    verb = _read().get("opening")
    return verb if isinstance(verb, str) else None


def keep_opening(verb: str) -> None:
    """Remember the way from the opening. Raises OSError if the file cannot be written."""
    _write({"opening": verb})


def lessons() -> dict[str, LessonProgress]:
    """The progress in each lesson, by its scenario's name, without lessons whose progress cannot be read."""
    found = {}
    for name, entry in _lessons().items():
        try:
            found[name] = msgspec.convert(entry, LessonProgress)
        except msgspec.ValidationError:
            continue
    return found


def keep_lesson(name: str, played: LessonProgress) -> None:
    """Remember the progress in the lesson of scenario `name`, and its answers; newer answers replace older ones.

    A lesson that the user played further before stays that far, unless its number of steps has changed since. Raises
    OSError if the file cannot be written.
    """
    before = lessons().get(name)
    if before is not None:
        steps = max(before.steps, played.steps) if before.of == played.of else played.steps
        played = LessonProgress(steps, played.of, before.answers | played.answers)
    _write({"lessons": _lessons() | {name: msgspec.to_builtins(played)}})


def forget_lessons(names: Iterable[str]) -> None:
    """Forget the progress and the answers in the lessons of these scenarios.

    Raises OSError if the file cannot be written.
    """
    forgotten = set(names)
    _write({"lessons": {name: entry for name, entry in _lessons().items() if name not in forgotten}})


def written(exercise: str) -> Written | None:
    """What the user wrote for `exercise`; None if there is nothing that can be read."""
    try:
        return msgspec.convert(_part("written")[exercise], Written)
    except (KeyError, msgspec.ValidationError):
        return None


def keep_written(exercise: str, text: str, solved: bool) -> None:
    """Remember what the user wrote for `exercise`; once solved, it stays so. Raises OSError as above."""
    before = written(exercise)
    entry = Written(text, solved or (before is not None and before.solved))
    if entry != before:
        _write({"written": _part("written") | {exercise: msgspec.to_builtins(entry)}})


def _lessons() -> dict[str, Any]:
    """The lessons as they are in the file, those that cannot be read among them."""
    return _part("lessons")


def _part(name: str) -> dict[str, Any]:
    known = _read().get(name)
    return known if isinstance(known, dict) else {}


def _read() -> dict[str, Any]:
    try:
        content = json.loads(file().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(changes: dict[str, Any]) -> None:
    """Write the whole file beside the old one and put it in its place: a crash in between leaves the old one."""
    file().parent.mkdir(parents=True, exist_ok=True)
    partial = file().with_name(f"{file().name}.{os.getpid()}")
    try:
        partial.write_text(json.dumps(_read() | changes) + "\n", encoding="utf-8")
        partial.replace(file())
    finally:
        partial.unlink(missing_ok=True)

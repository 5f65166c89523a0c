"""The course: the bundled lessons in chapters, in the order in which they build on one another."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from rlplay.scenario.names import COURSE, bundled, folder


class Chapter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lessons that belong together, by name; `about` says in a few words what for, or is empty."""

    title: str
    lessons: list[str]
    about: str = ""


class _Course(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    chapters: list[Chapter]
    tour: list[str]


@lru_cache(maxsize=1)
def _course() -> _Course:
    return msgspec.yaml.decode((folder() / f"{COURSE}.yaml").read_text(encoding="utf-8"), type=_Course)


def tour() -> list[str]:
    """The lessons that show the most in the shortest time, for a stage."""
    return _course().tour


@lru_cache(maxsize=1)
def chapters() -> tuple[Chapter, ...]:
    """The chapters; bundled scenarios that none of them names are in a last one."""
    named = _course().chapters
    others = [name for name in bundled() if not any(name in chapter.lessons for chapter in named)]
    return (*named, *([Chapter("More", others)] if others else []))


def order() -> list[str]:
    """All lessons in the order of the course."""
    return [name for chapter in chapters() for name in chapter.lessons]


def following(name: str) -> str | None:
    """The lesson after the one called `name`; None after the last, and for a scenario that is not bundled."""
    lessons = order()
    return lessons[lessons.index(name) + 1] if name in lessons[:-1] else None

"""The three ways on from the opening, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlplay import user_preferences
from rlplay.scenario.course import order
from rlplay.ui.opening.picture import Now, Way

WAYS = ("tour", "lessons", "run")
"""The verbs that the ways are remembered by, and whose keys take them."""
KEYS = ("t", "l", "space")
"""Their keys, as they are written, unless the user has others."""


def next_lesson() -> str | None:
    """The first lesson of the course that was not played to its end; None if all were."""
    played = user_preferences.lessons()
    return next((name for name in order() if name not in played or not played[name].whole), None)


def beginning(title: str = "", keys: Sequence[str] = KEYS) -> Now:
    """The opening as it begins: the way that was taken last is chosen. `title` is that of the next lesson, if known."""
    lessons, lesson, last = order(), next_lesson(), user_preferences.opening()
    if lesson is None:
        where = "You played all of them to the end. Here is the list."
    else:
        begins = "Begin with" if lesson == lessons[0] else "Continue with"
        called = f": {title}." if title else "."
        where = f"{begins} lesson {lessons.index(lesson) + 1}{called} There, {keys[1]} lists them all."
    ways = (
        Way(keys[0], "watch it learn", "The lesson of this run. It stops where you predict what comes next."),
        Way(keys[1], f"learn: {len(lessons)} lessons", where),
        Way(keys[2], "just run", f"The model trains until you press {keys[2]} again."),
    )
    if last not in WAYS:
        return Now(ways)
    at = WAYS.index(last)
    again = replace(ways[at], detail=f"As last time. {ways[at].detail}")
    return Now((*ways[:at], again, *ways[at + 1 :]), at)

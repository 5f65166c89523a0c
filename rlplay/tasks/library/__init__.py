"""Environments that other libraries bring: `reasoning-gym:NAME`, `textarena:NAME`, `openenv:ADDRESS`, `verifiers:NAME`.

Each is a task: the library's prompts, its own score as the reward, and where an answer takes several turns, its replies
between them. A library's module is imported, and an address is asked, only as `rlplay/trusted.py` allows, and only once
the task is loaded: what is here reads names and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module

from rlplay.containment import OwnError
from rlplay.tasks.library.entry import KINDS, Entry, is_of_library, read_entry
from rlplay.tasks.task import Task
from rlplay.trace.text import quote
from rlplay.trusted import place

__all__ = [
    "has_turns",
    "is_of_library",
    "library_code",
    "library_problem",
    "library_speaker",
    "library_stage",
    "library_task",
    "with_files",
]


def library_task(entry: str) -> Task:
    """The task that `entry` names. Raises OwnError, one line, if the library is missing, fails or has no such name."""
    found = read_entry(entry)
    task: Task = import_module(f"rlplay.tasks.library.{KINDS[found.kind].module}").task(found)
    return task


def library_problem(entry: str) -> str | None:
    """Why `entry` cannot be loaded, as far as one can see without running anything; one line."""
    try:
        found = read_entry(entry)
        found.check_installed()
    except OwnError as error:
        return str(error)
    if found.kind == "openenv" and not found.name.startswith(("http://", "https://")):
        example = f"openenv:{KINDS['openenv'].names}"
        return f"environment {quote(entry)}: name the address of a server that runs, as in {example}"
    return None


def library_code(entry: str) -> list[str]:
    """The modules that run for `entry`, and the address that is asked, as `rlplay/trusted.py` names them.

    None for a name that cannot be read, which nothing is loaded by.
    """
    try:
        found = read_entry(entry)
    except OwnError:
        return []
    return [KINDS[found.kind].package, *_further(found)]


def library_stage(entry: str) -> str:
    """What the screen gives its room to for such a task, one of `verbs.STAGES`."""
    return "conversation" if has_turns(entry) else "answers"


def library_speaker(entry: str) -> str:
    """What answers the model between its turns; "" where nothing does, or in another task."""
    return KINDS[entry.partition(":")[0]].speaker if is_of_library(entry) else ""


def has_turns(entry: str) -> bool:
    """Whether an answer takes several turns there."""
    return bool(library_speaker(entry))


def with_files(entry: str, beside: Callable[[str], str]) -> str:
    """`entry` with the opponent's file where `beside` finds it."""
    return re.sub(r"(?<=[?&]opponent=)[^&:]+(?=:)", lambda name: beside(name[0]), entry)


def _further(found: Entry) -> list[str]:
    if found.kind == "openenv":
        return [found.name]
    if "opponent" in found.options:
        return [place(str(found.options["opponent"]))]
    return [found.module] if found.kind == "verifiers" else []

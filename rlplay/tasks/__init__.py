"""What to learn: prompts, and the rewards that score answers to them.

A task is data (`task.py`): examples to train on, held-out examples, reward functions with TRL's signature, and gold
scorers, which are only tracked. A task knows nothing about models, so this room never imports torch or the screen.

Start with `arithmetic.py`, the smallest task. To add one, write such a file and a row in the table below.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from rlplay.tasks.arithmetic import arithmetic
from rlplay.tasks.calculator import calculator
from rlplay.tasks.guess import guess
from rlplay.tasks.library import is_of_library, library_speaker, library_stage, library_task
from rlplay.tasks.open_questions import questions
from rlplay.tasks.own_task import make_task
from rlplay.tasks.task import Example, RewardFunction, Task, completion_text
from rlplay.tasks.word_problems import word_problems
from rlplay.trace.plugins import load, names
from rlplay.trace.text import quote
from rlplay.trusted import follow, place
from rlplay.user_code import names_function

__all__ = [
    "Example", "RewardFunction", "Task", "completion_text", "is_own_task", "load_task", "speaker_of", "stage_of",
    "task_names",
]  # fmt: skip

_GROUP = "rlplay.tasks"
_TASKS: dict[str, Callable[[], Task]] = {
    "arithmetic": arithmetic,
    "word_problems": word_problems,
    "questions": questions,
    "guess": guess,
    "calculator": calculator,
}


def task_names() -> list[str]:
    """The names that `load_task` takes, simplest first, those of other packages last."""
    return [*_TASKS, *(name for name in names(_GROUP) if name not in _TASKS)]


def stage_of(name: str | None) -> str:
    """What a bundled task is about, or one of a library, one of `verbs.STAGES`; "all" for any other name."""
    if name is not None and is_of_library(name):
        return library_stage(name)
    return _TASKS[name]().stage if name in _TASKS else "all"


def speaker_of(name: str | None) -> str:
    """What answers the model between its turns, such as "calculator"; "" in a task of the user's own."""
    if name is not None and is_of_library(name):
        return library_speaker(name)
    return _TASKS[name]().speaker if name in _TASKS else ""


def is_own_task(name: str | None) -> bool:
    """Whether a task is a function of the user's, `FILE.py:FUNCTION` or `MODULE:FUNCTION`."""
    return name is not None and names_function(name) and not is_of_library(name)


def load_task(name: str) -> Task:
    """The task called `name`, or of a library. Raises ValueError, naming the known tasks, for any other name.

    One of another package is a function that returns a task. Where it fails, the ValueError names the package.
    """
    if is_of_library(name):
        return library_task(name)
    if name in _TASKS:
        return _TASKS[name]()
    if name not in names(_GROUP):
        raise ValueError(f"unknown task {quote(name)}: choose one of {', '.join(task_names())}")
    entry = names(_GROUP)[name]
    load(_GROUP, name, light=False)
    follow([place(entry.value)])  # the user has installed it
    return msgspec.structs.replace(make_task(entry.value), name=name)

"""The user's own task: a function, in a file or an installed module, that returns a `Task`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from rlplay.algorithms.settings import REWARD_MODEL
from rlplay.containment import OwnError, contained
from rlplay.tasks.dataset_row import read_row
from rlplay.tasks.own_prompts import check_same_answers
from rlplay.tasks.own_rewards import as_environment, as_reward, named_function
from rlplay.tasks.task import Example, Task
from rlplay.trace.text import quote
from rlplay.user_code import UserCode


def make_task(entry: str) -> Task:
    """The task that the function `FILE.py:FUNCTION` or `MODULE:FUNCTION` returns, called without arguments.

    Its prompts are those of the first call. Its rewards, gold scores and environment come from a new call whenever the
    file has changed. Raises OwnError, one line, if the function fails or what it returns is not a task.
    """
    made = _Made(named_function("task", entry))
    task = made.task()
    rewards = {name: as_reward(_Part(made, "rewards", name)) for name in task.rewards}
    # A gold score that is also a reward stays the same function, which may then have weight 0.
    gold = {
        name: rewards[name] if task.rewards.get(name) is function else as_reward(_Part(made, "gold", name))
        for name, function in task.gold.items()
    }
    environment = as_environment(_Part(made, "environment", "environment")) if task.environment else None
    return msgspec.structs.replace(task, rewards=rewards, gold=gold, environment=environment)


class _Made:
    """The task as the user's function makes it now."""

    def __init__(self, function: UserCode) -> None:
        self.function = function
        self._maker: Callable[..., Any] | None = None
        self._task: Task | None = None

    def task(self) -> Task:
        """The task, made again if the file has changed."""
        maker = self.function.current()
        if self._task is None or maker is not self._maker:
            with contained(f"{self.function.place}: {self.function.name}", self.function.failed):
                found = maker()
            self._task, self._maker = _checked(found, self.function), maker
        return self._task


class _Part:
    """One function of a task that is made anew when its file changes."""

    def __init__(self, made: _Made, field: str, name: str) -> None:
        self._made, self._field, self.name = made, field, name
        self.place = made.function.place

    def current(self) -> Callable[..., Any]:
        """The function of that name in the task as its file makes it now."""
        found = getattr(self._made.task(), self._field)
        part: Callable[..., Any] | None = found.get(self.name) if isinstance(found, dict) else found
        if part is None:
            raise OwnError(f"{self.place}: the task no longer has {quote(self.name)} in its {self._field}")
        return part

    def failed(self, error: BaseException) -> OwnError:
        """The error that the function raised, in one line with the place in the user's file."""
        return self._made.function.failed(error)


def _checked(task: Any, function: UserCode) -> Task:
    """The task with its rows as examples. Raises OwnError if it is not a task that can be recorded and scored."""
    place = f"{function.place}: {function.name}"
    if not isinstance(task, Task):
        raise OwnError(f"{place} returned {type(task).__name__}; it returns a Task (from rlplay.tasks import Task)")
    examples = {part: list(_examples(place, part, getattr(task, part))) for part in ("train", "held_out")}
    if not examples["train"]:
        raise OwnError(f"{place}: the task's train has no prompts")
    check_same_answers(f"{place}: train", examples["train"])
    for part in ("rewards", "gold"):
        _check_functions(f"{place}: {part}", getattr(task, part))
    if task.environment is not None and not callable(task.environment):
        raise OwnError(f"{place}: environment is a function, as in environment=answer; got {quote(task.environment)}")
    return msgspec.structs.replace(task, name=task.name or function.name, **examples)


def _examples(place: str, part: str, rows: Any) -> Iterable[Example]:
    if not isinstance(rows, (list, tuple)):
        raise OwnError(f"{place}: {part} is a list of prompts; got {type(rows).__name__}")
    for number, row in enumerate(rows, start=1):
        try:
            read = read_row(_columns(row) if isinstance(row, Example) else row)
        except ValueError as error:
            raise OwnError(f"{place}: {part}: row {number} {error}") from None
        yield row if isinstance(row, Example) else read


def _columns(example: Example) -> dict[str, Any]:
    """An example as a row of a dataset."""
    answers = {"chosen": example.chosen, "rejected": example.rejected}
    return example.columns | {"prompt": example.prompt} | {k: v for k, v in answers.items() if v is not None}


def _check_functions(place: str, functions: Any) -> None:
    if not isinstance(functions, dict) or not all(
        isinstance(name, str) and callable(f) for name, f in functions.items()
    ):
        raise OwnError(f"{place} takes names with functions, as in {{'right': right}}; got {quote(functions)}")
    if REWARD_MODEL in functions:
        raise OwnError(f"{place}: {REWARD_MODEL!r} is the name of a trained reward model's score; take another name")

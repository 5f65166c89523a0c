"""The user's own reward functions and environments, from a file or an installed module."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rlplay.algorithms.settings import REWARD_MODEL
from rlplay.containment import OwnError, contained
from rlplay.tasks.remote.served_file import Ask, Served, ServedFile, is_served
from rlplay.tasks.task import Environment, RewardFunction, Task
from rlplay.tasks.tools import Tools
from rlplay.trace.text import quote
from rlplay.trusted import is_module
from rlplay.user_code import ImportedFunction, UserCode, UserFunction


def own_rewards(entries: Sequence[str]) -> dict[str, RewardFunction]:
    """The functions that `entries` name, by name. Raises OwnError as `load_reward` does, and if two have one name."""
    chosen: dict[str, str] = {}
    for entry in entries:
        name = reward_name(entry)
        if name == REWARD_MODEL:
            raise OwnError(f"{entry}: {quote(name)} is the name of a trained reward model's score; rename the function")
        if name in chosen:
            raise OwnError(
                f"two rewards are called {quote(name)}: {chosen[name]} and {entry}; rename one of the functions"
            )
        chosen[name] = entry
    return {name: load_reward(entry) for name, entry in chosen.items()}


def load_reward(entry: str) -> RewardFunction:
    """The function `FILE.py:FUNCTION` or `MODULE:FUNCTION`, with TRL's signature; it may be an `async def`.

    A file is loaded again whenever it has changed, a module is imported once. An error in it, at import or in a call,
    becomes an OwnError that names the place. A file `NAME.yaml` stands for a judge or a teacher (`remote/`).
    """
    return as_reward(ServedFile(Path(entry), _served) if is_served(entry) else named_function("reward", entry))


def reward_name(entry: str) -> str:
    """The name of the reward that an entry means: the function's, or the file's of a judge or a teacher."""
    return Path(entry).stem if is_served(entry) else entry.rpartition(":")[2]


def _served(place: str, name: str, served: Served) -> Ask:
    if served.judge:
        from rlplay.tasks.remote.judge import judge

        return judge(place, name, served)
    from rlplay.tasks.remote.teacher import teacher

    return teacher(place, name, served)


def load_environment(entry: str) -> Environment:
    """The environment `FILE.py:FUNCTION` or `MODULE:FUNCTION`; files, modules and errors as in `load_reward`."""
    return as_environment(named_function("environment", entry))


def load_function(entry: str) -> Callable[..., Any]:
    """The function or class `FILE.py:NAME` or `MODULE:NAME` itself, as it is now; errors as in `load_reward`."""
    return named_function("function", entry).current()


def load_tools(entries: Sequence[str], factory: str | None) -> Tools:
    """The tools and the factory of environments that the entries name, in the forms of `load_reward`."""
    functions = [named_function("tools", entry) for entry in entries]
    return Tools(functions, None if factory is None else named_function("environment_factory", factory))


def with_tools(task: Task, entries: Sequence[str], factory: str | None) -> Task:
    """`task` with the tools, and with the environments' own reward if they have one.

    Raises OwnError, one line, if the task has an environment itself or another reward has that name.
    """
    if task.environment is not None:
        raise OwnError(f"the task {task.name} has an environment that replies to every turn; it takes no tools")
    tools = load_tools(entries, factory)
    own = tools.rewards()
    if twice := [name for name in own if name in task.rewards]:
        raise OwnError(
            f"two rewards are called {quote(twice[0])}: a function, and the environment's get_reward; rename one"
        )
    return msgspec.structs.replace(task, environment=tools, rewards=task.rewards | own)


def as_reward(function: UserCode) -> RewardFunction:
    """A user's reward function as it is at each call, called with the columns that it takes."""
    # TRL asks the callable itself whether it is asynchronous.
    return _AsyncReward(function) if inspect.iscoroutinefunction(function.current()) else _Reward(function)


def as_environment(function: UserCode) -> Environment:
    """A user's environment as it is at each call."""
    function.current()

    def answer(**given: Any) -> Any:
        current = function.current()
        with contained(function.place, function.failed):
            return current(**accepted(current, given))

    return answer


def named_function(kind: str, entry: str) -> UserCode:
    """The function `FILE.py:FUNCTION` or `MODULE:FUNCTION`, not yet called; `kind` is what the user gave it as.

    Raises OwnError, one line, if there is no such file or module.
    """
    place, _, name = entry.rpartition(":")
    if place.endswith(".py") and Path(place).is_file():
        return UserFunction(Path(place), name)
    if is_module(place):
        return ImportedFunction(place, name)
    raise OwnError(
        f"{kind} {quote(entry)}: write it as FILE.py:FUNCTION, with a file that exists, or as MODULE:FUNCTION"
    )


_GIVEN = {"prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric"}
"""What every reward function may take besides the columns of the data, as in TRL."""


def check_columns(task: Task) -> None:
    """Raise OwnError, one line, if a score needs a column that no prompt of `task` has."""
    given = _GIVEN | task.columns
    if task.environment is not None:
        given |= {"states"}
    if isinstance(task.environment, Tools) and task.environment.makes_environments:
        given |= {"environments"}
    for function in (*task.rewards.values(), *task.gold.values()):
        if isinstance(function, _Reward):
            function.check(given)


class _Reward:
    """A user's reward function, called with the columns that it takes."""

    def __init__(self, function: UserCode) -> None:
        self._function = function
        self.__name__ = function.name
        function.current()

    def __call__(self, /, **columns: Any) -> Any:
        """The scores of the completions, or an awaitable that gives them if the function has become asynchronous."""
        found = self._begun(columns)
        return self._awaited(found) if inspect.isawaitable(found) else found

    def check(self, given: Collection[str]) -> None:
        """Raise OwnError, one line, if the function needs an argument that is not among the columns `given`."""
        if missing := _missing(self._function.current(), given):
            own = ", ".join(sorted(name for name in given if name not in _GIVEN)) or "none"
            raise OwnError(
                f"{self._function.place}: {self.__name__} takes {quote(missing)}, which is not a column of the data; "
                f"the columns are: {own}"
            )

    def _begun(self, columns: dict[str, Any]) -> Any:
        self.check(columns)
        function = self._function.current()
        with contained(self._function.place, self._function.failed):
            return function(**accepted(function, columns))

    async def _awaited(self, found: Awaitable[Any]) -> Any:
        try:
            return await found
        except (asyncio.CancelledError, OwnError):
            raise
        except BaseException as error:
            raise self._function.failed(error) from error


class _AsyncReward(_Reward):
    """The same of an `async def`."""

    async def __call__(self, /, **columns: Any) -> Any:
        """The scores of the completions."""
        found = self._begun(columns)
        return await self._awaited(found) if inspect.isawaitable(found) else found


def accepted(function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of `given` that `function` takes."""
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return given
    return {name: value for name, value in given.items() if name in parameters}


def _missing(function: Callable[..., Any], given: Collection[str]) -> str | None:
    """The first required parameter of `function` that is not in `given`."""
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    needed = [
        p.name for p in inspect.signature(function).parameters.values() if p.kind in by_name and p.default is p.empty
    ]
    return next((name for name in needed if name not in given), None)

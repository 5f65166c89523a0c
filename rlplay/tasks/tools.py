"""What a model may call in its answers: TRL 1.16's `tools` and `environment_factory`.

A tool is a function with type hints and a Google-style docstring, from which transformers makes the schema in the
prompt. A factory makes one environment per answer: `reset(**row)` begins it, and its other public methods are tools.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rlplay.containment import OwnError, contained
from rlplay.tasks.example import Example, Message, RewardFunction
from rlplay.trace.text import quote
from rlplay.user_code import UserCode

_OWN_METHODS = ("reset", "get_reward")


class Observed(Example, frozen=True):
    """A prompt that ends with what an environment's `reset` says about its `row`."""

    row: Example | None = None
    observation: str | None = None


class Call(msgspec.Struct, frozen=True):
    """A call that the model has written."""

    name: str
    arguments: dict[str, Any]


Tool = tuple[UserCode, Callable[..., Any]]
"""Where a tool comes from, and the function or method."""


class Answering:
    """The calls of one answer, turn by turn: its environment if there is a factory, how many were made and failed."""

    def __init__(self, tools: dict[str, Tool], environment: Any, rounds: int | None = None) -> None:
        self._tools = tools
        self._rounds = rounds
        self.environment = environment
        self.calls = self.failures = 0
        self.turns: list[Sequence[Call]] = []

    def replies(self, calls: Sequence[Call]) -> list[Message]:
        """The message of each call's result. As in TRL, an exception in a tool is a result that the model reads, and
        nothing answers a turn after the last round.

        Raises OwnError, one line, if a tool ends the program or takes longer than a user's function may.
        """
        if self._rounds is not None and len(self.turns) >= self._rounds:
            return []
        self.turns.append(calls)
        return [{"role": "tool", "name": call.name, "content": self._result(call)} for call in calls]

    def _result(self, call: Call) -> str:
        self.calls += 1
        if call.name not in self._tools:
            return self._failure(f"Tool {call.name} not found.")
        code, function = self._tools[call.name]
        with contained(f"{code.place}: {call.name}", code.failed):
            try:
                return str(_awaited(function(**call.arguments)))
            except Exception as error:
                return self._failure(str(error))

    def _failure(self, words: str) -> str:
        self.failures += 1
        return str({"error": words})


def _awaited(found: Any) -> Any:
    return asyncio.run(found) if inspect.iscoroutine(found) else found


class Tools:
    """The user's tools and environments; their files are loaded again whenever they have changed."""

    def __init__(self, functions: Sequence[UserCode], factory: UserCode | None = None) -> None:
        """Raises OwnError, one line, if two tools have one name or an environment cannot be made or has no `reset`."""
        self._functions = functions
        self._factory = factory
        self._rounds: int | None = None
        names = [function.__name__ for function in self.offered()]
        if twice := [name for name in names if names.count(name) > 1]:
            raise OwnError(f"two tools are called {quote(twice[0])}; rename one of them")

    @property
    def makes_environments(self) -> bool:
        """Whether each answer has an environment of its own."""
        return self._factory is not None

    def within(self, rounds: int | None) -> Tools:
        """The same tools, which answer only so many turns of an episode; None: all."""
        limited = copy.copy(self)
        limited._rounds = rounds
        return limited

    def offered(self) -> list[Callable[..., Any]]:
        """What the model may call, as transformers takes it for the prompt."""
        functions = [function.current() for function in self._functions]
        return functions if self._factory is None else [*functions, *_methods(self._made(self._factory))]

    def rewards(self) -> dict[str, RewardFunction]:
        """The environment's own reward, by the name of its class; empty if it has no `get_reward`."""
        if self._factory is None:
            return {}
        kind = type(self._made(self._factory))
        return {kind.__name__: self._own_reward} if hasattr(kind, "get_reward") else {}

    def asked(self, example: Example) -> Example:
        """The prompt with what `reset` says at its end. Raises OwnError, one line, if `reset` fails."""
        if self._factory is None:
            return example
        said = self._reset(self._factory, self._made(self._factory), example)
        if said is None:
            return example
        if isinstance(example.prompt, str):
            raise OwnError(f"{self._factory.place}: what reset says needs prompts that are chat messages")
        last = example.prompt[-1]
        prompt = [*example.prompt[:-1], {**last, "content": last["content"] + said}]
        return Observed(prompt, example.columns, example.chosen, example.rejected, example, said)

    def begin(self, example: Example) -> Answering:
        """An answer to a prompt that `asked` gave, with an environment for it alone.

        Raises OwnError, one line, if `reset` fails, or says something else than when the prompt was made.
        """
        tools: dict[str, Tool] = {}
        for code in self._functions:
            function = code.current()
            tools[function.__name__] = code, function
        environment = None
        if self._factory is not None:
            environment = self._made(self._factory)
            row = example.row if isinstance(example, Observed) and example.row is not None else example
            said = self._reset(self._factory, environment, row)
            if said != (example.observation if isinstance(example, Observed) else None):
                raise OwnError(
                    f"{self._factory.place}: reset says something else for the same row each time; the answers to a "
                    "prompt are compared, so let it depend on the row alone"
                )
            tools |= {method.__name__: (self._factory, method) for method in _methods(environment)}
        return Answering(tools, environment, self._rounds)

    def _made(self, factory: UserCode) -> Any:
        make = factory.current()
        with contained(factory.place, factory.failed):
            environment = make()
        if not callable(getattr(environment, "reset", None)):
            raise OwnError(f"{factory.place}: {factory.name} makes environments without a method reset(self, **row)")
        return environment

    def _reset(self, factory: UserCode, environment: Any, row: Example) -> str | None:
        with contained(f"{factory.place}: reset", factory.failed):
            said = environment.reset(prompt=row.prompt, **row.columns)
        if not (said is None or isinstance(said, str)):
            raise OwnError(f"{factory.place}: reset returned {type(said).__name__}; it returns text or None")
        return said

    def _own_reward(self, environments: list[Any], **_columns: Any) -> list[Any]:
        assert self._factory is not None
        with contained(f"{self._factory.place}: get_reward", self._factory.failed):
            return [_awaited(environment.get_reward()) for environment in environments]


def _methods(environment: Any) -> list[Callable[..., Any]]:
    """The public methods of an environment but `reset` and `get_reward`; found on its class, as properties may act."""
    named = inspect.getmembers(type(environment), predicate=inspect.isfunction)
    names = [name for name, _ in named if name not in _OWN_METHODS and not name.startswith("_")]
    return [getattr(environment, name) for name in names]

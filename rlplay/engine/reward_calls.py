"""Reward functions, called the way TRL 1.16 calls them, and their answers checked."""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import TrainerState

from rlplay.containment import OwnError, contained
from rlplay.engine.logged import Logged
from rlplay.engine.state import Halt, State
from rlplay.tasks.own_rewards import accepted
from rlplay.tasks.task import Completion, Example, Message, RewardFunction, Steps, total
from rlplay.trace.numbers import compact
from rlplay.trace.text import quote

Answer = float | Steps
"""One completion's score, NaN for None; or for each step the characters it reaches and its score."""

LARGEST = 1e15
"""The largest reward. Gradients are up to some thousand times as large, and float32 cannot square more than 1.8e19."""

TOO_LARGE, _SMALLER = (
    f"more than the {compact(LARGEST)} that training in float32 has room for",
    "scale it down, then go on",
)


@dataclass(frozen=True)
class Completions:
    """What reward functions see: the examples that are answered, the answers' token ids and their texts."""

    examples: list[Example]
    ids: list[list[int]]
    texts: list[str]
    turns: list[list[Message]] | None = None  # of episodes with an environment
    states: list[list[str]] | None = None  # the environment's, after each turn
    environments: Sequence[Any] = ()  # each answer's own, if a factory makes them

    @property
    def handed(self) -> Sequence[Completion]:
        """Each answer the way TRL hands it over: as messages if its prompt was messages."""
        if self.turns is not None:
            return self.turns
        both = zip(self.examples, self.texts, strict=True)
        return [t if isinstance(e.prompt, str) else [{"role": "assistant", "content": t}] for e, t in both]


def called(
    functions: dict[str, RewardFunction], given: Completions, state: State, logged: Logged
) -> dict[str, list[Answer]]:
    """What each function answered; `logged` takes what they log. Asynchronous functions run at the same time.

    Raises Halt if one fails, answers the wrong number of scores, or a score is not finite or too large.
    """
    arguments = _arguments(given, state) | {"log_extra": logged.log_extra, "log_metric": logged.log_metric}
    found, waiting = dict[str, Any](), dict[str, Awaitable[Any]]()
    graded = torch.is_grad_enabled()
    for name, function in functions.items():
        try:
            found[name] = function(**accepted(function, arguments))
        except Exception as error:
            raise _failed(name, error) from error
        finally:
            torch.set_grad_enabled(graded)  # a function may have changed it
        if inspect.isawaitable(found[name]):
            waiting[name] = found[name]
    for name, answer in _awaited(waiting).items():
        if isinstance(answer, BaseException):
            raise _failed(name, answer) from answer
        found[name] = answer
    return {name: _checked(name, answers, given.texts) for name, answers in found.items()}


def _arguments(given: Completions, state: State) -> dict[str, Any]:
    examples = given.examples
    columns = state.task.columns | {key for example in examples for key in example.columns}
    arguments: dict[str, Any] = {key: [example.columns.get(key) for example in examples] for key in columns}
    arguments |= {
        "prompts": [example.prompt for example in examples],
        "completions": given.handed,
        "completion_ids": given.ids,
        "trainer_state": _trainer_state(state),
    }
    if any(environment is not None for environment in given.environments):
        arguments["environments"] = list(given.environments)
    return arguments | ({} if given.states is None else {"states": given.states})


def _trainer_state(state: State) -> TrainerState:
    """TRL's `trainer_state`: steps are optimizer steps, an epoch is as many prompts as there are to train on."""
    steps, prompts = state.settings.steps, state.settings.num_prompts / len(state.task.train)
    return TrainerState(
        global_step=state.update * steps, max_steps=state.max_updates * steps, epoch=state.update * prompts,
        num_train_epochs=math.ceil(state.max_updates * prompts),
    )  # fmt: skip


def _failed(name: str, error: BaseException) -> Halt:
    what = str(error) if isinstance(error, OwnError) else f"{type(error).__name__}: {error}"
    return Halt(f"reward function {quote(name)} failed: {what}; fix it, then go on")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """One loop for the whole run: a client that a function keeps, of an HTTP library say, belongs to its loop."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="asynchronous rewards", daemon=True).start()
    return loop


def _awaited(waiting: dict[str, Awaitable[Any]]) -> dict[str, Any]:
    """What each of them gives, or the exception that it raises."""
    if not waiting:
        return {}

    async def together() -> list[Any]:
        return await asyncio.gather(*waiting.values(), return_exceptions=True)

    future = asyncio.run_coroutine_threadsafe(together(), _loop())
    try:
        what = f"reward function {', '.join(map(repr, waiting))}"
        with contained(what, lambda error: OwnError(f"{what}: {type(error).__name__}")):
            return dict(zip(waiting, future.result(), strict=True))
    except BaseException:  # the user has interrupted
        future.cancel()
        raise


def _checked(name: str, answers: Any, texts: list[str]) -> list[Answer]:
    if isinstance(answers, (np.ndarray, Tensor)):
        answers = answers.tolist()
    if not isinstance(answers, (list, tuple)) or len(answers) != len(texts):
        found = type(answers).__name__
        if hasattr(answers, "__len__"):
            found = "1 score" if len(answers) == 1 else f"{len(answers)} scores"
        raise Halt(f"reward function {quote(name)} gave {found}; it must give a list of {len(texts)} numbers")
    try:
        read = [_read(answer) for answer in answers]
    except (TypeError, ValueError):
        raise Halt(
            f"reward function {quote(name)} gave something that is not a number, None or a list of (end, score) pairs"
        ) from None
    except OverflowError:
        raise Halt(f"reward function {quote(name)} gave a number too large to compute with; {_SMALLER}") from None
    for i, (answer, value) in enumerate(zip(answers, read, strict=True)):
        if answer is None:
            continue
        scores = [score for _, score in value] if isinstance(value, list) else [value]
        where = f"for completion {i}, {quote(texts[i])}"
        if not all(map(math.isfinite, scores)):
            raise Halt(f"reward function {quote(name)} gave {value} {where}; fix it, then go on")
        if (largest := max(map(abs, [*scores, total(value)]), default=0.0)) > LARGEST:
            raise Halt(f"reward function {quote(name)} gave {compact(largest)} {where}, {TOO_LARGE}; {_SMALLER}")
    return read


def _read(answer: Any) -> Answer:
    if isinstance(answer, (list, tuple)):
        return [(int(end), float(value)) for end, value in answer]
    return math.nan if answer is None else float(answer)

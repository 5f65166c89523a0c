"""verifiers 0.4: tasksets of installed packages, each task with its prompt and the functions that score an answer.

Their environments may give an agent tools, a container or another agent. rlplay plays those of one answer.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np

from rlplay.containment import OwnError, contained
from rlplay.tasks.library import verifiers_before
from rlplay.tasks.library.entry import Entry, LibraryFunction
from rlplay.tasks.library.prompts import divided
from rlplay.tasks.own_rewards import as_reward
from rlplay.tasks.task import Completion, Example, Message, Task, completion_text
from rlplay.user_code import imported


def task(entry: Entry) -> Task:
    """The first `size` tasks of a taskset, shuffled by `seed` unless it is 0; other options are its configuration's."""
    if hasattr(imported(entry.module), "load_environment"):
        if not hasattr(entry.library(), "load_environment"):
            raise OwnError(f"{entry.text} is written for verifiers before 0.4: pip install 'verifiers<0.4'")
        return verifiers_before.task(entry, entry.library())
    library, loaders = entry.library("v1"), entry.library("v1.utils.loaders")
    with contained(entry.text, entry.failed):
        config = loaders.taskset_config_type(entry.name)(id=entry.name, **entry.options)
        taskset = loaders.load_taskset(config)
        if loaders.environment_class(entry.name) is not library.SingleAgentEnv or type(taskset).toolsets(config):
            raise _several_turns(entry)
        found = list(islice(taskset.shuffle(entry.seed) if entry.seed else taskset, entry.size))
        for each in found[:1]:
            _check(entry, each)
        train, held_out = divided(_example(entry, number, each.data) for number, each in enumerate(found))
    if not train:
        raise OwnError(f"{entry.text}: the taskset has no tasks")
    reward = as_reward(LibraryFunction(entry, "rubric", _rubric(library, entry, found)))
    return Task(
        name=entry.name,
        summary=f"{len(train)} tasks of the taskset {entry.name} for verifiers",
        train=train,
        held_out=held_out,
        rewards={"rubric": reward},
        gold={"rubric": reward},
    )


def _several_turns(entry: Entry) -> OwnError:
    return OwnError(f"{entry.text} plays with tools, a container or another agent; rlplay plays tasksets of one answer")


def _check(entry: Entry, task: Any) -> None:
    """Raises OwnError, one line, if an answer's text is not enough to score it."""
    if task.NEEDS_CONTAINER or type(task).toolsets(task.config):
        raise _several_turns(entry)
    if task.plugged_judges():
        raise entry.judged()
    for function in task.hooks("reward"):
        needed = inspect.signature(function).parameters.get("runtime")
        if needed is not None and needed.default is inspect.Parameter.empty:
            raise OwnError(f"{entry.text}: its reward {function.__name__} looks into a container, which rlplay has not")


def _example(entry: Entry, number: int, data: Any) -> Example:
    if data.prompt is None:
        raise OwnError(f"{entry.text}: task {number} has no prompt; rlplay plays tasksets of one answer")
    before: list[Message] = [{"role": "system", "content": data.system_prompt}] if data.system_prompt else []
    answer = getattr(data, "answer", None)
    columns = {"task_number": number} | ({"answer": str(answer)} if isinstance(answer, (str, int, float)) else {})
    return Example(prompt=[*before, *_messages(data)], columns=columns)


def _messages(data: Any) -> list[Message]:
    """The prompt as chat messages of text alone."""
    if isinstance(data.prompt, str):
        return [{"role": "user", "content": data.prompt}]
    return [{"role": each.role, "content": _text(each.content)} for each in data.prompt]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(getattr(part, "text", "") for part in content or [])


def _rubric(library: ModuleType, entry: Entry, tasks: list[Any]) -> Callable[..., Any]:
    """The weighted sum of a task's rewards; each of them, and its metrics, is logged beside it."""

    async def rubric(
        completions: list[Completion], task_number: list[int], log_metric: Callable[[str, float], None]
    ) -> list[float]:
        both = zip(completions, task_number, strict=True)
        traces = [_trace(library, tasks[number], completion_text(completion)) for completion, number in both]
        await asyncio.gather(*(tasks[number].score(trace) for trace, number in zip(traces, task_number, strict=True)))
        values = dict[str, list[float]]()
        for trace in traces:
            parts = {name: each and each.score for name, each in trace.rewards.items()} | dict(trace.metrics)
            for name, value in parts.items():
                values.setdefault(name, []).extend([] if value is None else [float(value)])
        for name, found in values.items():
            log_metric(f"{entry.module}/{name}", float(np.mean(found)) if found else float("nan"))
        return [float(trace.reward) for trace in traces]

    return rubric


def _trace(library: ModuleType, task: Any, answer: str) -> Any:
    """What the scoring functions look at: the prompt's messages and the answer."""
    said = [
        *([library.SystemMessage(content=task.data.system_prompt)] if task.data.system_prompt else []),
        *([library.UserMessage(content=task.data.prompt)] if isinstance(task.data.prompt, str) else task.data.prompt),
    ]
    nodes = [library.MessageNode(message=each, parent=at - 1 if at else None) for at, each in enumerate(said)]
    reply = library.AssistantMessage(content=answer)
    nodes.append(library.MessageNode(message=reply, parent=len(said) - 1, sampled=True))
    return library.Trace(
        task=library.TraceTask(type=type(task).__name__, data=task.data),
        agent=library.AgentInfo(config=library.AgentConfig()),
        nodes=nodes,
        is_completed=True,
        ok=True,
    )

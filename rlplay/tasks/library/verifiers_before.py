"""verifiers before 0.4: environments that a package's `load_environment` makes, with a dataset and a rubric.

rlplay plays those of one answer, `SingleTurnEnv`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from rlplay.containment import OwnError, contained
from rlplay.tasks.library.entry import Entry, LibraryFunction
from rlplay.tasks.library.prompts import divided
from rlplay.tasks.own_rewards import as_reward
from rlplay.tasks.task import Completion, Example, Task, chat, completion_text


def task(entry: Entry, library: ModuleType) -> Task:
    """The first `size` rows of an environment's dataset, shuffled by `seed` unless it is 0.

    Other options go to its `load_environment`.
    """
    with contained(entry.text, entry.failed):
        import_module("datasets").disable_progress_bars()  # the terminal belongs to the screen
        environment = library.load_environment(entry.name, **entry.options)
        if not isinstance(environment, library.SingleTurnEnv):
            raise OwnError(f"{entry.text} takes several turns; of verifiers before 0.4 rlplay plays SingleTurnEnv")
        rubrics = [environment.rubric, *getattr(environment.rubric, "rubrics", ())]
        if any(isinstance(each, library.JudgeRubric) for each in rubrics):
            raise entry.judged()
        rows = environment.get_dataset(n=entry.size, seed=entry.seed or None).to_list()
    train, held_out = divided(_example(number, row) for number, row in enumerate(rows))
    if not train:
        raise OwnError(f"{entry.text}: the dataset has no rows")
    reward = as_reward(LibraryFunction(entry, "rubric", _rubric(library, entry, environment, rows)))
    return Task(
        name=entry.name,
        summary=f"{len(train)} rows of the environment {entry.name} for verifiers",
        train=train,
        held_out=held_out,
        rewards={"rubric": reward},
        gold={"rubric": reward},
    )


def _example(number: int, row: dict[str, Any]) -> Example:
    prompt = row["prompt"]
    messages = (
        chat(prompt)
        if isinstance(prompt, str)
        else [{"role": each["role"], "content": str(each["content"])} for each in prompt]
    )
    return Example(messages, {"row_number": number, "answer": str(row.get("answer", ""))})


def _rubric(library: ModuleType, entry: Entry, environment: Any, rows: list[dict[str, Any]]) -> Callable[..., Any]:
    """The rubric's weighted sum; each of its functions is logged beside it."""

    async def rubric(
        completions: list[Completion], row_number: list[int], log_metric: Callable[[str, float], None]
    ) -> list[float]:
        both = zip(completions, row_number, strict=True)
        states = [_state(library, rows[number], completion_text(completion)) for completion, number in both]
        await asyncio.gather(*(environment.rubric.score_rollout(state) for state in states))
        for name in dict.fromkeys(name for state in states for name in state["metrics"]):
            log_metric(f"{entry.module}/{name}", float(np.mean([state["metrics"].get(name, 0.0) for state in states])))
        return [float(state["reward"]) for state in states]

    return rubric


def _state(library: ModuleType, row: dict[str, Any], answer: str) -> Any:
    """An answered row as the rubric takes it."""
    state = library.State(input=dict(row))
    completion = [{"role": "assistant", "content": answer}]
    state["prompt"], state["completion"], state["task"] = row["prompt"], completion, row.get("task", "default")
    state["answer"], state["info"] = row.get("answer", ""), row.get("info") or {}
    state["trajectory"] = [{"prompt": row["prompt"], "completion": completion}]
    state["is_completed"], state["is_truncated"] = True, False
    return state

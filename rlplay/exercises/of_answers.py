"""Checks of functions that rate answers: rewards, advantages, returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlplay.algorithms import baselines, returns, scales
from rlplay.algorithms.arrays import NumpyArrays
from rlplay.exercises.check import Case, Check, Material, Place
from rlplay.tasks.verifiers import correct
from rlplay.trace.records import Array
from rlplay.trace.text import quote

_TEXTS = ("The answer is 4.", "4", "14", "2+2=4", "5", "I don't know", "4 or 5", "40", "5 or 4")


# A reward for an answer


def _reward(_xp: Any, answer: str, right: int) -> float:
    (found,) = correct([""], [answer], [right])
    assert found is not None
    return found


def _reward_cases(batch: Material) -> list[Case]:
    given = batch.parts.get("correct")
    if given is None or not all("answer" in row for row in batch.columns):
        raise ValueError("this exercise needs a task whose answers are numbers, and the reward correct")
    places = batch.of_answers()
    return [
        Case({"answer": text, "right": int(row["answer"])}, [place], answers=np.array([value]))
        for text, row, place, value in zip(batch.texts, batch.columns, places, given, strict=True)
    ]


def _reward_made_up() -> list[Case]:
    return [Case({"answer": text, "right": 4}, [Place(quote(text))], made_up=True) for text in _TEXTS]


# The advantage over the batch's mean


def _less_mean(_xp: Any, rewards: list[float]) -> Array:
    outcomes = np.array(rewards)
    return np.asarray(outcomes - baselines.batch_mean(NumpyArrays, outcomes, np.zeros(len(outcomes), dtype=np.int64)))


def _baseline_cases(batch: Material) -> list[Case]:
    rewards: Array = batch.need("rewards", "rewards")
    return [Case({"rewards": rewards.tolist()}, batch.of_answers(), rewards.shape)]


def _listed(rewards: list[float], **more: Any) -> Case:
    """A made-up call with a list of rewards; a place for each."""
    shown = ", ".join(f"{reward:g}" for reward in rewards)
    places = [Place(f"reward {i + 1} of [{shown}]") for i in range(len(rewards))]
    return Case({"rewards": rewards, **more}, places, (len(rewards),), made_up=True)


# The advantage within a group


def _normalised(xp: Any, rewards: Any) -> Any:
    prompts, answers = rewards.shape
    outcomes = rewards.reshape(-1)
    group = xp.places(outcomes[None]) // answers
    raw = outcomes - baselines.mean_of_group(xp, outcomes, group)
    return scales.group(xp, raw[:, None], outcomes, group).reshape(prompts, answers)


def _advantage_cases(batch: Material) -> list[Case]:
    rewards: Array = batch.need("rewards", "rewards")
    order = np.argsort(batch.group, kind="stable")
    sizes = np.unique(batch.group, return_counts=True)[1]
    if len(set(sizes)) != 1 or sizes[0] == 1:
        raise ValueError("this exercise needs several answers to each prompt, as many to all")
    places = batch.of_answers()
    shape = len(sizes), int(sizes[0])
    return [Case({"rewards": rewards[order].reshape(shape)}, [places[i] for i in order], shape)]


def _advantage_made_up() -> list[Case]:
    rewards = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 4.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
    places = [Place(f"answer {j + 1} of rewards {row.tolist()}") for row in rewards for j in range(4)]
    return [Case({"rewards": rewards}, places, rewards.shape, made_up=True)]


# Returns


def _to_go(_xp: Any, rewards: list[float], gamma: float) -> Array:
    row = np.array([rewards])
    found: Array = returns.to_go(NumpyArrays, row, np.ones_like(row, dtype=bool), gamma)[0]
    return found


def _walks(batch: Material, **more: Any) -> list[Case]:
    """A call for each answer, with the rewards of its tokens, and its part of the quantities `more`."""
    stream: Array = batch.need("stream", "rewards")
    numbers = {"gamma": batch.settings.gamma} | {k: v for k, v in more.items() if not isinstance(v, np.ndarray)}
    return [
        Case(
            {"rewards": stream[i][inside].tolist()}
            | {name: v[i][inside].tolist() for name, v in more.items() if isinstance(v, np.ndarray)}
            | numbers,
            batch.of_tokens(i),
            (int(inside.sum()),),
        )
        for i, inside in enumerate(batch.mask)
    ]


# Generalised advantage estimation


def _gae(_xp: Any, rewards: list[float], values: list[float], gamma: float, lam: float) -> Array:
    row = np.array([rewards])
    inside = np.ones_like(row, dtype=bool)
    found: Array = returns.gae(NumpyArrays, row, np.array([values]), inside, gamma, lam)[0]
    return found


ANSWER_CHECKS: dict[str, Check] = {
    "reward": Check("reward", "answers", _reward_cases, _reward_made_up, _reward),
    "baseline": Check(
        "advantages", "answers", _baseline_cases,
        lambda: [_listed([1.0, 0.0, 0.0, 0.0]), _listed([2.0, 4.0, 6.0])], _less_mean,
    ),
    "advantage": Check("advantages", "answers", _advantage_cases, _advantage_made_up, _normalised),
    "returns": Check(
        "returns", "returns", _walks, lambda: [_listed([1.0, 2.0, 3.0, -1.0], gamma=0.5)], _to_go
    ),
    "gae": Check(
        "advantages", "advantages",
        lambda batch: _walks(batch, values=batch.need("values", "values of a critic"), lam=batch.settings.lam),
        lambda: [_listed([1.0, 2.0, 3.0], values=[0.5, -1.0, 2.0], gamma=0.5, lam=0.8)], _gae,
    ),
}  # fmt: skip

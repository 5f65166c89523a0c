"""Phase 2, scoring: reward functions called the way TRL calls them, and their answers checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from rlplay.engine.batch import Batch
from rlplay.engine.state import Halt, State
from rlplay.tasks.own import OwnError, accepted
from rlplay.tasks.task import RewardFunction
from rlplay.trace.records import Array, Scored


def score(batch: Batch, state: State) -> Scored:
    """Reward every completion; `batch.rewards` [N] is the weighted sum of the parts that answered.

    Functions of weight 0 are not called.

    Raises Halt if a reward function fails, answers the wrong number of scores, or a score is not finite.
    """
    rows = zip(batch.ids.tolist(), batch.lengths.tolist(), strict=True)
    batch.completions = [state.lm.decode(ids[:n]) for ids, n in rows]
    wanted = state.settings.reward_weights or dict.fromkeys(state.task.rewards, 1.0)
    weights = {name: float(wanted[name]) for name in state.task.rewards if wanted.get(name)}
    parts = {name: _call(name, state.task.rewards[name], batch) for name in weights}
    gold = {name: _call(name, f, batch) for name, f in state.task.gold.items()}
    total = np.zeros(len(batch.completions), dtype=np.float32)
    for name, values in parts.items():
        total += weights[name] * np.nan_to_num(values, nan=0.0)
    batch.rewards = torch.from_numpy(total).to(batch.ids.device)
    return Scored(update=batch.update, rewards=total, parts=parts, weights=weights, gold=gold)


def _call(name: str, function: RewardFunction, batch: Batch) -> Array:
    examples = [batch.prompts.examples[g] for g in batch.group.tolist()]
    chat = [not isinstance(example.prompt, str) for example in examples]
    keys = {key for example in examples for key in example.columns}
    given: dict[str, Any] = {key: [example.columns.get(key) for example in examples] for key in keys}
    rows = zip(batch.ids.tolist(), batch.lengths.tolist(), strict=True)
    given |= {
        "prompts": [example.prompt for example in examples],
        "completions": [
            [{"role": "assistant", "content": text}] if messages else text
            for text, messages in zip(batch.completions, chat, strict=True)
        ],
        "completion_ids": [ids[:n] for ids, n in rows],
    }
    try:
        answers = function(**accepted(function, given))
    except Exception as error:
        what = str(error) if isinstance(error, OwnError) else f"{type(error).__name__}: {error}"
        raise Halt(f"reward function {name!r} failed: {what}; mend it, then go on") from error
    return _checked(name, answers, batch)


def _checked(name: str, answers: Any, batch: Batch) -> Array:
    if not isinstance(answers, (list, tuple, np.ndarray)) or len(answers) != len(batch.completions):
        found = f"{len(answers)} scores" if hasattr(answers, "__len__") else type(answers).__name__
        raise Halt(f"reward function {name!r} gave {found}; it must give a list of {len(batch.completions)} numbers")
    try:
        values = [math.nan if a is None else float(a) for a in answers]
    except (TypeError, ValueError):
        raise Halt(f"reward function {name!r} gave something that is not a number or None") from None
    for i, (answer, value) in enumerate(zip(answers, values, strict=True)):
        if answer is not None and not math.isfinite(value):
            raise Halt(f"reward function {name!r} gave {value} for completion {i}: {batch.completions[i][:60]!r}")
    return np.array(values, dtype=np.float32)

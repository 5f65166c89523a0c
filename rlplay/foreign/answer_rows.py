"""What the rows of other trainers' files say, as the answers of an update.

TRL (`log_completions`, a Parquet file for each step): step, prompt, completion, a column for each reward function,
advantage. verl (`rollout_data_dir`, N.jsonl): input, output, gts, score, step.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlplay.foreign.token_rows import numbers_of
from rlplay.record.format import Rollouts
from rlplay.trace.records import Array

Row = dict[str, Any]
_PIECE = re.compile(r"\s*\S+|\s+")
_TRL = {"step", "prompt", "completion", "advantage", "image"}
_VERL = {"input", "output", "step", "score", "uid", "request_id"}


def trl(update: int, found: Sequence[Row]) -> Rollouts:
    """TRL's table; a column of numbers is a reward. The weights of several are unknown: they count as 1 each."""
    names = [name for name in found[0] if name not in _TRL and all(is_number(row.get(name)) for row in found)]
    rewards = {name: [row[name] for row in found] for name in names}
    answers = [
        TextAnswer(row["prompt"], [(text_of(row["completion"]), True)],
               {k: v for k, v in row.items() if k not in _TRL and k not in rewards})
        for row in found
    ]  # fmt: skip
    return worded(update, answers, rewards, advantages=[row["advantage"] for row in found])


def verl(update: int, found: Sequence[Row]) -> Rollouts:
    """verl's rows; `score` is the reward, and other numbers are only tracked.

    In verl 0.9 `uid` is "{prompt}_{rollout}_{output}".
    """
    extra = [name for name in found[0] if name not in _VERL and all(is_number(row.get(name)) for row in found)]
    rewards = {name: [row[name] for row in found] for name in ("score", *extra)}
    answers = [
        TextAnswer(row["input"], [(str(row["output"]), True)],
               {k: v for k, v in row.items() if k not in _VERL and k not in extra and v is not None},
               group=str(row["uid"]).rsplit("_", 2)[0] if "uid" in row else None)
        for row in found
    ]  # fmt: skip
    return worded(update, answers, rewards, {name: float(name == "score") for name in rewards})


def metrics(rollouts: Rollouts) -> dict[str, float]:
    """The numbers of the update that follow from its answers, under TRL's names."""
    found = {f"completions/{name}_length": float(getattr(rollouts.lengths, name)()) for name in ("mean", "min", "max")}
    if rollouts.truncated is not None:
        found["completions/clipped_ratio"] = float(rollouts.truncated.mean())
    if math.isfinite(entropy := mean_inside(rollouts.entropy, rollouts.mask)):
        found["entropy"] = entropy
    weighted = [rollouts.reward_weights[name] * values for name, values in rollouts.rewards.items()]
    for name, values in rollouts.rewards.items():
        kind = "rewards" if rollouts.reward_weights[name] else "gold"
        found[f"{kind}/{name}/mean"] = float(np.nanmean(values)) if not np.isnan(values).all() else math.nan
    if weighted:
        total = np.nansum(weighted, axis=0)
        found["reward_p10"], found["reward_p90"] = np.quantile(total, (0.1, 0.9)).tolist()
        found |= {"reward": float(total.mean()), "reward_std": float(total.std(ddof=1)) if len(total) > 1 else 0.0}
        groups = [total[rollouts.group == g] for g in range(len(rollouts.prompts))]
        if flat := [np.ptp(each) == 0 for each in groups if len(each) > 1]:
            found["frac_reward_zero_std"] = float(np.mean(flat))
    return found


def mean_inside(values: Array | None, inside: Array | None) -> float:
    """The mean over the tokens in the loss that have a number; NaN without any. `inside` None: all are."""
    if values is None:
        return math.nan
    known = values[np.isfinite(values) & (True if inside is None else inside == 1)]
    return float(known.mean()) if len(known) else math.nan


@dataclass(frozen=True)
class TextAnswer:
    """An answer of which only the text is known."""

    prompt: Any
    """A text, or messages."""
    turns: Sequence[tuple[str, bool]]
    """Its texts, each with whether the model wrote it, and not an environment."""
    column: Row
    truncated: bool | None = None
    group: Any = None
    """What answers to the same prompt share; None: the prompt."""


def worded(
    update: int, answers: Sequence[TextAnswer], rewards: dict[str, list[Any]], weights: dict[str, float] | None = None,
    advantages: Sequence[Any] | None = None,
) -> Rollouts:  # fmt: skip
    """Answers of which only the text is known: their words stand for tokens."""
    keys = [json.dumps(each.prompt if each.group is None else each.group, default=str) for each in answers]
    ids = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    firsts = [answers[keys.index(key)] for key in ids]
    pieces = [[(word, own) for text, own in each.turns for word in _PIECE.findall(text)] for each in answers]
    pieces = [words or [("", True)] for words in pieces]
    lengths = np.array([len(words) for words in pieces])
    mask = np.array([own for words in pieces for _, own in words], dtype=np.uint8)
    cut = [each.truncated for each in answers]
    return Rollouts(
        update=update, prompts=[heading(each.prompt) for each in firsts], columns=[each.column for each in firsts],
        group=np.array([ids[key] for key in keys], dtype=np.int32), lengths=lengths,
        texts=[word for words in pieces for word, _ in words], mask=None if mask.all() else mask,
        truncated=None if None in cut else np.array(cut, dtype=np.uint8),
        rewards={name: numbers_of(values) for name, values in rewards.items()},
        reward_weights=weights or dict.fromkeys(rewards, 1.0),
        advantages=None if advantages is None else np.repeat(numbers_of(advantages), lengths).astype(np.float32),
    )  # fmt: skip


def is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def text_of(said: Any) -> str:
    """The text of a completion: as it is, or of its messages, each a text or a list of parts."""
    return said if isinstance(said, str) else "\n".join(_content(turn.get("content")) for turn in said)


def _content(content: Any) -> str:
    parts = content if isinstance(content, list) else [content or ""]
    return "".join(str(each.get(each.get("type"), "")) if isinstance(each, dict) else str(each) for each in parts)


def heading(prompt: Any) -> str:
    """The text of a prompt: as it is, or of its last user turn."""
    if isinstance(prompt, str):
        return prompt
    said = [_content(turn.get("content")) for turn in prompt if turn.get("role") == "user"]
    return said[-1] if said else text_of(prompt)

"""What the rows of other trainers' files say, as the answers of an update.

TRL (`log_completions`, a Parquet file for each step): step, prompt, completion, a column for each reward function,
advantage. verl (`rollout_data_dir`, N.jsonl): input, output, gts, score, step. prime-rl (token exports,
step_N/rank_R.jsonl): arrays aligned with token_ids, `rewards` among them; `rlplay export --format jsonl` writes them
with texts, and with `rewards` by name.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlplay.record.format import Rollouts, Step
from rlplay.trace.records import Array

Row = dict[str, Any]
_PIECE = re.compile(r"\s*\S+|\s+")
_TRL, _VERL = {"step", "prompt", "completion", "advantage", "image"}, {"input", "output", "step", "score"}


def trl(update: int, found: Sequence[Row]) -> Rollouts:
    """TRL's table; a column of numbers is a reward. The weights of several are unknown: they count as 1 each."""
    names = [name for name in found[0] if name not in _TRL and all(_is_number(row.get(name)) for row in found)]
    rewards = {name: [row[name] for row in found] for name in names}
    answers = [
        TextAnswer(row["prompt"], [(text_of(row["completion"]), True)],
               {k: v for k, v in row.items() if k not in _TRL and k not in rewards})
        for row in found
    ]  # fmt: skip
    return worded(update, answers, rewards, advantages=[row["advantage"] for row in found])


def verl(update: int, found: Sequence[Row]) -> Rollouts:
    """verl's rows; `score` is the reward, and other numbers are only tracked."""
    extra = [name for name in found[0] if name not in _VERL and all(_is_number(row.get(name)) for row in found)]
    rewards = {name: [row[name] for row in found] for name in ("score", *extra)}
    answers = [
        TextAnswer(row["input"], [(str(row["output"]), True)],
               {k: v for k, v in row.items() if k not in _VERL and k not in extra})
        for row in found
    ]  # fmt: skip
    return worded(update, answers, rewards, {name: float(name == "score") for name in rewards})


def prime_rl(update: int, found: Sequence[Row]) -> Rollouts:
    """Rows with arrays over the tokens. The prompt ends at `prompt_len`, else where the loss begins."""
    begins = _begins(found)
    keys = [row.get("group_id", tuple(row["token_ids"][:begin])) for row, begin in zip(found, begins, strict=True)]
    ids = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    group = np.array([ids[key] for key in keys], dtype=np.int32)
    firsts = [keys.index(key) for key in ids]
    texts = [[str(x) for x in row.get("token_text") or [f"⟨{i}⟩" for i in row["token_ids"]]] for row in found]
    asked = [texts[i][: begins[i]] for i in firsts]
    total, first = _numbers([_reward(row) for row in found]), found[0].get("rewards")
    names = first if isinstance(first, dict) else {}
    rewards = {name: _numbers([row["rewards"][name] for row in found]) for name in names}
    known = ~np.isnan(total)
    if rewards and not np.allclose(np.nansum([*rewards.values()], axis=0)[known], total[known]):
        rewards = {}  # the total is what was trained, and the weights that lead to it are not in the file
    return Rollouts(
        update=update,
        prompts=[str(found[i].get("prompt") or "".join(text)) for i, text in zip(firsts, asked, strict=True)],
        columns=[{} for _ in firsts],
        prompt_ids=np.array([t for i in firsts for t in found[i]["token_ids"][: begins[i]]], dtype=np.int32),
        prompt_lengths=np.array([begins[i] for i in firsts], dtype=np.int64),
        prompt_texts=[text for piece in asked for text in piece],
        group=group,
        lengths=np.array([len(row["token_ids"]) - begin for row, begin in zip(found, begins, strict=True)]),
        token_ids=_flat(found, begins, "token_ids", np.int32),
        texts=[text for row, begin in zip(texts, begins, strict=True) for text in row[begin:]],
        mask=_flat(found, begins, "loss_mask", np.uint8),
        truncated=np.array([bool(row.get("truncated")) for row in found], dtype=np.uint8),
        # prime-rl's ratio is that of the policy to the sampler, which may be some updates behind.
        old_logprobs=_flat(found, begins, "inference_logprobs", np.float32),
        sampling_logprobs=None if _own(found) else _flat(found, begins, "inference_logprobs", np.float32),
        entropy=_flat(found, begins, "entropy", np.float32),
        ref_logprobs=_flat(found, begins, "ref_logprobs", np.float32),
        rewards=rewards or ({"reward": total} if known.any() else {}),
        reward_weights=dict.fromkeys(rewards, 1.0) or {"reward": 1.0},
        advantages=_flat(found, begins, "advantages", np.float32),
    )


def prime_rl_step(update: int, found: Sequence[Row]) -> Step | None:
    """What prime-rl's training pass computed of these rows; None if they have none of it.

    Clip state 1 is `is_masked_high`, -1 another token with `is_masked`. None, too, of rlplay's own exports, whose
    numbers are those of an update's last optimizer step.
    """
    begins, kl = _begins(found), "mismatch_kl"
    logprobs = _flat(found, begins, "trainer_logprobs", np.float32)
    if logprobs is None or _own(found):
        return None
    inside = _flat(found, begins, "loss_mask", np.uint8)
    flat = {name: _flat(found, begins, name, np.float32) for name in (kl, "is_masked", "is_masked_high")}
    masked, high, clips = flat["is_masked"], flat["is_masked_high"], None
    if masked is not None and high is not None and not np.isnan(masked).all():
        clips = np.where(high == 1, 1, np.where(masked == 1, -1, 0)).astype(np.int8)
    means = {f"{name}/mean": _mean(flat[name], inside) for name in (kl, "is_masked")}
    return Step(
        update=update, step=0, steps=1, rows=np.arange(len(found), dtype=np.int32), logprobs=logprobs,
        importance_ratio=_flat(found, begins, "importance_ratio", np.float32), clip_state=clips,
        metrics={name: mean for name, mean in means.items() if math.isfinite(mean)},
    )  # fmt: skip


def _own(found: Sequence[Row]) -> bool:
    """Whether rlplay has written the rows."""
    return "dloss_dlogp" in found[0]


def _begins(found: Sequence[Row]) -> list[int]:
    return [row["prompt_len"] if "prompt_len" in row else _first(row["loss_mask"]) for row in found]


def _reward(row: Row) -> Any:
    """An answer's reward: one number, or the same at each of its tokens."""
    found = row.get("rewards")
    return next((x for x in reversed(found) if x is not None), None) if isinstance(found, list) else row.get("reward")


def _mean(values: Array | None, inside: Array | None) -> float:
    known = np.zeros(0) if values is None or inside is None else values[(inside == 1) & np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan


def metrics(rollouts: Rollouts) -> dict[str, float]:
    """The numbers of the update that follow from its answers, under TRL's names."""
    found = {"completions/mean_length": float(rollouts.lengths.mean())}
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
        update=update, prompts=[_heading(each.prompt) for each in firsts], columns=[each.column for each in firsts],
        group=np.array([ids[key] for key in keys], dtype=np.int32), lengths=lengths,
        texts=[word for words in pieces for word, _ in words], mask=None if mask.all() else mask,
        truncated=None if None in cut else np.array(cut, dtype=np.uint8),
        rewards={name: _numbers(values) for name, values in rewards.items()},
        reward_weights=weights or dict.fromkeys(rewards, 1.0),
        advantages=None if advantages is None else np.repeat(_numbers(advantages), lengths).astype(np.float32),
    )  # fmt: skip


def _flat(found: Sequence[Row], begins: Sequence[int], name: str, dtype: Any) -> Array | None:
    """An array of the rows over their answers' tokens, flat; None if a row lacks it."""
    if any(row.get(name) is None for row in found):
        return None
    for row in found:
        if len(row[name]) != len(row["token_ids"]):
            raise ValueError(f"{name} has {len(row[name])} values for {len(row['token_ids'])} tokens")
    pieces = [[np.nan if x is None else x for x in row[name][begin:]] for row, begin in zip(found, begins, strict=True)]
    return np.array([x for piece in pieces for x in piece]).astype(dtype)


def _first(mask: Sequence[Any]) -> int:
    return next((place for place, inside in enumerate(mask) if inside), len(mask))


def _numbers(values: Sequence[Any]) -> Array:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def text_of(said: Any) -> str:
    """The text of a completion: as it is, or of its messages, each a text or a list of parts."""
    return said if isinstance(said, str) else "\n".join(_content(turn.get("content")) for turn in said)


def _content(content: Any) -> str:
    parts = content if isinstance(content, list) else [content or ""]
    return "".join(str(each.get(each.get("type"), "")) if isinstance(each, dict) else str(each) for each in parts)


def _heading(prompt: Any) -> str:
    """The text of a prompt: as it is, or of its last user turn."""
    if isinstance(prompt, str):
        return prompt
    said = [_content(turn.get("content")) for turn in prompt if turn.get("role") == "user"]
    return said[-1] if said else text_of(prompt)

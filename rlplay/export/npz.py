"""One update as named arrays: enough to compute its loss again with numpy alone.

Rectangles are padded on the right: 0 for ids, masks and clip states, NaN for numbers. N completions, P positions of
the longest prompt, C of the longest completion, R completions in a step. What was not computed is left out.

    token_ids              [N, ≤P + C]  prompt and completion
    prompt_ids, prompt_mask           [N, P]
    completion_ids, completion_mask   [N, C]  mask 1 = sampled by the policy, 0 = environment or padding
    completion_lengths, group_id, rewards, truncated  [N]
    sampler_version                   [N]  updates that the weights had had which sampled the answer
    rewards/NAME, gold/NAME           [N]  the parts of the reward, scores that are not trained on
    columns                JSON string, for each prompt the dataset's other columns by name; group_id counts them
    roles                             [N]  where answers are compared: chosen, rejected or empty
    old_logprobs, sampling_logprobs, ref_logprobs, new_logprobs, entropy, advantages, returns, baseline, values,
    token_rewards, implicit_rewards, correction, teacher_logprobs  [N, C]
    step_I/rows            [R]     the completions of optimizer step I
    step_I/logprobs, …/importance_ratio, …/clip_state, …/dloss_dlogp, …/dkl_dlogp, …/weights, …/left_out, …/kl,
    …/values               [R, C]
    step_I/margins         [R/2]   of pairs: the reward of a chosen completion less that of the rejected one
    trainer_steps          [2]     another trainer's numbers of the first and the last optimizer step
    search                 JSON string, the records of the search for a step (TRPO)
    step_I/metrics, metrics, settings, reward_weights  JSON strings
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import OF_TOKENS, Array, Stepped
from rlplay.trace.update import Update

_CREDITED = (
    "ref_logprobs", "advantages", "returns", "baseline", "values", "token_rewards", "implicit_rewards", "correction",
    "teacher_logprobs",
)  # fmt: skip


def arrays(update: Update, settings: SomeSettings) -> dict[str, Array]:
    """The arrays of an update that has been sampled; `settings` are those that held in its optimizer steps."""
    sampled = update.sampled
    assert sampled is not None
    lengths = np.diff(sampled.offsets)
    prompt = _padded(sampled.prompt_ids, np.diff(sampled.prompt_offsets))[sampled.group]
    prompt_lengths = np.diff(sampled.prompt_offsets)[sampled.group]
    completion = _padded(sampled.token_ids, lengths)
    out: dict[str, Array] = {
        "token_ids": _joined(prompt, prompt_lengths, completion, lengths),
        "prompt_ids": prompt,
        "prompt_mask": (np.arange(prompt.shape[1]) < prompt_lengths[:, None]).astype(np.uint8),
        "completion_ids": completion,
        "completion_mask": _padded(sampled.mask, lengths),
        "completion_lengths": lengths,
        "group_id": sampled.group,
        "truncated": sampled.truncated,
        "old_logprobs": _padded(sampled.old_logprobs, lengths),
        "entropy": _padded(sampled.entropy, lengths),
        "settings": _json(settings),
        "columns": _json(sampled.columns),
    }
    if sampled.sampling_logprobs is not None:
        out["sampling_logprobs"] = _padded(sampled.sampling_logprobs, lengths)
    if sampled.versions is not None:
        out["sampler_version"] = sampled.versions
    if update.scored is not None:
        out["rewards"] = update.scored.rewards
        out["reward_weights"] = _json(update.scored.weights)
        out |= {f"rewards/{name}": part for name, part in update.scored.parts.items()}
        out |= {f"gold/{name}": score for name, score in update.scored.gold.items()}
        if update.scored.roles:
            out["roles"] = np.array(update.scored.roles)
    for name in _CREDITED if update.credited is not None else ():
        values = getattr(update.credited, name)
        if values is not None:
            out[name] = _padded(values, lengths)
    if update.finished is not None and update.finished.trainer_steps is not None:
        out["trainer_steps"] = np.array(update.finished.trainer_steps, dtype=np.int64)
    if update.searched:
        out["search"] = _json(update.searched)
    for step in update.steps:
        out |= {f"step_{step.step}/{name}": array for name, array in _step(step, lengths).items()}
    new = update.new_logprobs()
    if new is not None and update.finished is not None:
        out["new_logprobs"] = _padded(new, lengths)
        out["metrics"] = _json(update.finished.metrics)
    return out


def write_npz(path: Path, named: Iterable[tuple[str, Array]]) -> None:
    """Write arrays one after the other, so that memory does not grow with the run; `numpy.load` reads the file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in named:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def _step(step: Stepped, lengths: Array) -> dict[str, Array]:
    found = {name: getattr(step, name) for name in OF_TOKENS[Stepped]}
    width = int(lengths.max(initial=0))
    out = {name: _padded(flat, lengths[step.rows], width) for name, flat in found.items() if flat is not None}
    if step.margins is not None:
        out["margins"] = step.margins
    return {"rows": step.rows, "metrics": _json(step.metrics), **out}


def _padded(flat: Array, lengths: Array, width: int | None = None) -> Array:
    """Flat values of sequences with these lengths as a rectangle [sequences, width, ...]."""
    width = int(lengths.max(initial=0)) if width is None else width
    filler = np.nan if flat.dtype.kind == "f" else 0
    out = np.full((len(lengths), width, *flat.shape[1:]), filler, dtype=flat.dtype)
    out[np.arange(width) < lengths[:, None]] = flat
    return out


def _joined(prompt: Array, prompt_lengths: Array, completion: Array, lengths: Array) -> Array:
    rows = [
        np.concatenate([p[:n], c[:m]]) for p, n, c, m in zip(prompt, prompt_lengths, completion, lengths, strict=True)
    ]
    return _padded(np.concatenate(rows), prompt_lengths + lengths) if rows else prompt


def _json(value: Any) -> Array:
    return np.array(msgspec.json.encode(value).decode())

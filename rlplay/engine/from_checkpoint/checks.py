"""What a rebuilt state makes of the answers that the trainer sampled next, beside what the trainer made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.logged import Logged
from rlplay.engine.model import LanguageModel
from rlplay.engine.passes import token_logprobs
from rlplay.engine.reward_calls import Completions, called
from rlplay.engine.reward_model import rewards_of
from rlplay.engine.state import Halt, State
from rlplay.foreign.from_checkpoint.plan import reads_reference
from rlplay.tasks.task import Example, total
from rlplay.trace.numbers import compact
from rlplay.trace.records import Array, Sampled
from rlplay.trace.update import Update

_ANOTHER_MODEL = 0.25
"""Mean difference in nats above which it is another model: arithmetic in bfloat16 makes some hundredths."""


def recorded_batch(lm: LanguageModel, sampled: Sampled, examples: Sequence[Example]) -> Batch:
    """The recorded answers as a batch that the policy has not seen yet; example g stands for prompt g."""
    asked = [sampled.prompt_ids[a:b].tolist() for a, b in _spans(sampled.prompt_offsets)]
    rows = [sampled.token_ids[a:b].tolist() for a, b in _spans(sampled.offsets)]
    lengths = torch.tensor([len(row) for row in rows], device=lm.device)
    width = max(1, int(lengths.max()))
    ids = torch.tensor([row + [lm.pad_id] * (width - len(row)) for row in rows], device=lm.device)
    unseen = torch.zeros(len(rows), width, device=lm.device)
    return Batch(
        update=sampled.update, prompts=Prompts.padded(lm, list(examples), asked),
        group=torch.from_numpy(sampled.group.astype(np.int64)).to(lm.device), ids=ids, lengths=lengths,
        old_logprobs=unseen, entropy=unseen, top_ids=ids[..., None], top_logprobs=unseen[..., None],
        truncated=torch.from_numpy(sampled.truncated.astype(bool)).to(lm.device),
        environment=torch.zeros_like(ids, dtype=torch.bool), temperature=sampled.temperature,
    )  # fmt: skip


def compared(state: State, update: Update, examples: Sequence[Example] | None) -> tuple[list[str], list[str]]:
    """What agrees with the recorded `update`, whose answers the rebuilt weights sampled, and what does not, in lines.

    `examples` are its prompts with their columns; None if not all could be rebuilt, and rewards are not compared.
    Raises ValueError, one line, if the log-probabilities are another model's, or a reward function fails.
    """
    sampled, credited = update.sampled, update.credited
    if sampled is None:
        return [], []
    lm = state.lm
    batch = recorded_batch(lm, sampled, examples or [Example(text, {}) for text in sampled.prompts])
    agree, differ = list[str](), list[str]()
    known = sampled.mask.astype(bool)
    policy, count = (
        _logprobs(lm, lm.policy, batch),
        f"{len(sampled.group)} recorded answers of update {update.number:,}",
    )
    if (gap := _gap(policy, sampled.old_logprobs, known, count)) is not None:
        agree.append(f"log-probabilities of {count} within {compact(gap, 1)}")
    reference = None if credited is None or not reads_reference(state.settings) else credited.ref_logprobs
    if reference is not None:
        theirs = _logprobs(lm, lm.reference, batch)
        if (gap := _gap(theirs, reference, known, f"{count} under the reference")) is not None:
            agree.append(f"the reference's within {compact(gap, 1)}")
    if examples is not None and state.settings.rewarded:
        for name, wrong in _rewards(state, update, examples):
            what = f"reward {name} of {count}"
            (differ if wrong else agree).append(f"{what}: {wrong} differ" if wrong else f"{what}: the recorded ones")
    return agree, differ


@torch.no_grad()
def _logprobs(lm: LanguageModel, model: object, batch: Batch) -> Array:
    return batch.flat(token_logprobs(lm, model, batch.tokens(), batch.temperature))


def _gap(own: Array, recorded: Array, known: Array, what: str) -> float | None:
    """The largest difference in nats where the recording has a number; None if it has none."""
    there = known & np.isfinite(recorded)
    if not there.any():
        return None
    gap = np.abs(own[there].astype(np.float64) - recorded[there])
    if (mean := float(gap.mean())) > _ANOTHER_MODEL:
        raise ValueError(
            f"the log-probabilities of {what} differ by {compact(mean)} nats on average: the checkpoint, or the model "
            "that stands for the reference, is not the one of this run"
        )
    return float(gap.max())


def _rewards(state: State, update: Update, examples: Sequence[Example]) -> Iterator[tuple[str, int]]:
    """The names of the rewards, each with how many of its scores are not those that were recorded."""
    assert update.sampled is not None
    if update.scored is None:
        return
    ids = [update.sampled.token_ids[a:b].tolist() for a, b in _spans(update.sampled.offsets)]
    given = Completions([examples[g] for g in update.sampled.group], ids, [state.lm.decode(row) for row in ids])
    functions = {name: each for name, each in rewards_of(state).items() if name in update.scored.parts}
    try:
        answers = called(functions, given, state, Logged(len(ids)))
    except Halt as error:
        raise ValueError(str(error)) from error
    for name, scores in answers.items():
        recorded = update.scored.parts[name]
        same = np.isclose([total(score) for score in scores], recorded, rtol=1e-5, atol=1e-6, equal_nan=True)
        yield name, int((~same).sum())


def _spans(offsets: Array) -> Iterator[tuple[int, int]]:
    return zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)

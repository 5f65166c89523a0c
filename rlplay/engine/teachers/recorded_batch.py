"""The batch of an earlier update as it is on record: its optimizer steps can be taken again, and nothing is sampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.correct import correct
from rlplay.engine.credit_phase import keep_exact
from rlplay.engine.learn_from_answers import pair_gradients
from rlplay.engine.optimize import TrainedMinibatch
from rlplay.engine.pair_loss import with_reference
from rlplay.engine.policy_gradient import gradients
from rlplay.engine.preference_pairs import PairRows
from rlplay.engine.state import State
from rlplay.engine.withheld import withhold
from rlplay.trace.records import Array, Sampled
from rlplay.trace.update import Update


def recorded_batch(update: Update, state: State) -> Batch:
    """The batch that an update trained on; `state` is before its first step, with the settings that gave credit."""
    sampled, settings = update.sampled, state.settings
    assert sampled is not None
    lengths = torch.from_numpy(np.diff(sampled.offsets))
    batch = Batch(
        update=update.number,
        prompts=Prompts.padded(state.lm, [], _cut(sampled.prompt_ids, sampled.prompt_offsets)),
        group=_there(torch.from_numpy(sampled.group.astype(np.int64)), state),
        ids=_padded(sampled.token_ids.astype(np.int64), sampled, state),
        lengths=_there(lengths, state),
        old_logprobs=_padded(sampled.old_logprobs, sampled, state),
        entropy=_padded(sampled.entropy, sampled, state),
        top_ids=_there(torch.zeros(len(lengths), int(lengths.max()), 0, dtype=torch.long), state),
        top_logprobs=_there(torch.zeros(len(lengths), int(lengths.max()), 0), state),
        truncated=_there(torch.from_numpy(sampled.truncated > 0), state),
        environment=_padded(sampled.mask == 0, sampled, state),
        temperature=sampled.temperature,
    )
    if sampled.sampling_logprobs is not None:
        batch.sampling_logprobs = _padded(sampled.sampling_logprobs, sampled, state)
        batch.from_sampler = settings.old_logprobs_of == "sampler"
    if (credited := update.credited) is not None:
        wanted = {"advantages": credited.advantages, "returns": credited.returns, "ref_logprobs": credited.ref_logprobs}
        if settings.loss_type == "policy_gradient" and settings.baseline == "value":
            wanted["values"] = credited.values
        if settings.loss_type != "policy_gradient" and not with_reference(settings.loss_type):
            wanted["ref_logprobs"] = None
        for name, values in wanted.items():
            if values is not None:
                setattr(batch, name, _padded(values, sampled, state))
        if (teachers := credited.teacher_logprobs) is not None:
            batch.teacher_logprobs = _padded(np.nan_to_num(teachers), sampled, state)
            batch.taught = ~torch.from_numpy(np.isnan(teachers)[sampled.offsets[:-1]])
    correct(batch, settings)
    withhold(batch, state)
    correct(batch, settings)
    if settings.loss_type == "policy_gradient":
        keep_exact(batch, state)
    return batch


@dataclass(frozen=True)
class Training:
    """How an update learned from its batch: `items` (completions or pairs), and what fills the gradients of some."""

    items: int
    gradients: Callable[[Tensor], TrainedMinibatch]


def training(update: Update, batch: Batch, state: State) -> Training:
    """The steps of a policy gradient, or those of pairs and demonstrations."""
    if state.settings.loss_type == "policy_gradient":
        return Training(len(batch.group), lambda rows: gradients(batch, rows, state))
    roles = np.array([] if update.scored is None else update.scored.roles)
    pairs = PairRows(*(torch.from_numpy(np.flatnonzero(roles == role)) for role in ("chosen", "rejected")))
    batch.pairs = (pairs.chosen, pairs.rejected) if len(pairs.rejected) else None
    return Training(len(pairs.chosen), lambda part: pair_gradients(batch, pairs, part, state))


def unflattened(values: Array, rows: Array, sampled: Sampled) -> Tensor:
    """Values of the tokens of the completions `rows`, flat in that order, as [R, L] with 0 on padding; on the CPU."""
    lengths = np.diff(sampled.offsets)
    found = np.zeros((len(rows), int(lengths.max())), dtype=values.dtype)
    found[np.arange(found.shape[1]) < lengths[rows, None]] = values
    return torch.from_numpy(found)


def _padded(values: Array, sampled: Sampled, state: State) -> Tensor:
    return _there(unflattened(values, np.arange(len(sampled.group)), sampled), state)


def _there(values: Tensor, state: State) -> Tensor:
    return values.to(state.lm.device)


def _cut(flat: Array, offsets: Array) -> list[list[int]]:
    return [flat[a:b].tolist() for a, b in pairwise(offsets)]

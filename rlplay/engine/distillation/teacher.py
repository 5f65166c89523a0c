"""The teacher's passes over a batch: the credit phase records them, the loss compares with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rlplay.algorithms import distillation
from rlplay.algorithms.settings import Settings
from rlplay.engine.batch import Batch, TokenBatch
from rlplay.engine.distillation.average import new_average
from rlplay.engine.distillation.context import teacher_reads
from rlplay.engine.model import LanguageModel, same_weights
from rlplay.engine.passes import distributions, score_tokens
from rlplay.engine.state import State
from rlplay.engine.stopwatch import spent_on
from rlplay.engine.tensors import Tensors
from rlplay.engine.transfer import to_device


def teacher(state: State) -> tuple[LanguageModel, Any]:
    """How the teacher is run, and its model: what `passes.forward` takes."""
    lm = state.lm
    match state.settings.teacher_model_kind:
        case "live":
            return lm, lm.policy
        case "ema":
            return replace(lm, policy=state.average), state.average
        case _:
            own = state.teaching.model
            return (lm, lm.reference) if own is None else (own, own.policy)


def consult(batch: Batch, state: State) -> Tensor | None:
    """Ask the teacher about a scored batch; returns its log-probabilities of the candidates [N, L, K].

    Those of the tokens are then `batch.teacher_logprobs`. Both are None where nobody looks and the loss reads whole
    distributions. Begins a moving average where the settings ask for one.
    """
    settings = state.settings
    if not (settings.distils and settings.teacher_model_kind == "ema"):
        state.average = None
    elif state.average is None:
        state.average = new_average(state.lm.policy)
    return _consulted(batch, state) if settings.distils else None


@spent_on("teacher")
def _consulted(batch: Batch, state: State) -> Tensor | None:
    settings = state.settings
    reads = teacher_reads(batch, state)
    batch.teacher_tokens, batch.taught = (None, None) if reads is None else (reads.tokens, reads.taught)
    if settings.observe != "full" and settings.mode_row.whole:
        return None
    if at_policy(state):
        batch.teacher_logprobs = batch.old_logprobs
        return batch.top_logprobs
    lm, model = teacher(state)
    lm.run_as(settings)
    batch.teacher_logprobs, top = score_tokens(lm, model, _tokens(batch), batch.top_ids, batch.temperature)
    return top


def at_policy(state: State) -> bool:
    """Whether the teacher reads what the policy reads, with the very same weights.

    Then both are one function, and every divergence is exactly 0: see `LanguageModel.is_reference`.
    """
    model = teacher(state)[1]
    alike = state.settings.teacher_context == "none" and model is not None
    return alike and same_weights(state.lm.policy, model, state.lm.device)


@spent_on("teacher")
def teacher_distributions(batch: Batch, rows: Tensor, state: State) -> Tensor:
    """The teacher's next-token distributions before the tokens of the completions `rows`: [R, L, V]."""
    lm, model = teacher(state)
    lm.run_as(state.settings)
    return distributions(lm, model, _tokens(batch).select(rows), batch.temperature)


def _tokens(batch: Batch) -> TokenBatch:
    return batch.tokens() if batch.teacher_tokens is None else batch.teacher_tokens


def recorded(batch: Batch, top: Tensor | None) -> dict[str, Tensor | None]:
    """What the record of the credit phase says of the teacher; NaN where an answer has none."""
    values = {"teacher_logprobs": batch.teacher_logprobs, "teacher_top_logprobs": top}
    if batch.taught is None:
        return values
    (there,) = to_device([batch.taught], batch.ids.device)
    return {name: None if each is None else _nan_outside(each, there) for name, each in values.items()}


def _nan_outside(values: Tensor, there: Tensor) -> Tensor:
    return values.masked_fill(~there.view(-1, *[1] * (values.dim() - 1)), torch.nan)


def mixed(advantages: Tensor, batch: Batch, settings: Settings) -> Tensor:
    """Advantages [N, L], float64 on the CPU, with the teacher's share where it acts through them; else as they are."""
    if not settings.distils or settings.distils_in_loss:
        return advantages
    old, teachers = (each.double() for each in batch.on_host("old_logprobs", "teacher_logprobs"))
    mask = batch.known_masks[0]
    if batch.taught is not None:
        mask = mask & batch.taught[:, None]
    found: Tensor = distillation.credit(Tensors(old), old, teachers, mask, settings.iw_opd_gamma)
    share = settings.distillation_weight
    return (1 - share) * advantages + share * found


def teacher_metrics(batch: Batch) -> dict[str, float]:
    """The reverse KL to the teacher, estimated at the sampled tokens, and the share of the answers that have one."""
    found = dict[str, float]()
    if batch.taught is not None:
        found["self_distillation/reprompt_sample_fraction"] = float(batch.taught.float().mean())
    if batch.teacher_logprobs is not None:
        old, teachers = batch.on_host("old_logprobs", "teacher_logprobs")
        mask = batch.known_masks[0] if batch.taught is None else batch.known_masks[0] & batch.taught[:, None]
        if bool(mask.any()):
            found["teacher_kl"] = float((old - teachers)[mask].double().mean())
    return found

"""The correction for a sampler that is not quite the policy: computed once per update, before its first step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlplay.algorithms.choice import call_choice
from rlplay.algorithms.settings import Settings, row
from rlplay.engine.batch import Batch
from rlplay.engine.tensors import Tensors
from rlplay.trace.records import CorrectionRule


def correct(batch: Batch, settings: Settings) -> None:
    """Give a batch its factors, `correction` [N, L], and the tokens that are left out, `rejected` bool [N, L].

    Computed in float64 on the CPU, where `rejected` stays. Each is None where the settings ask for none, or where the
    policy itself has sampled.
    """
    batch.correction = batch.rejected = None
    if batch.sampling_logprobs is None or settings.loss_type != "policy_gradient":
        return
    (old, sampling), mask = batch.on_host("old_logprobs", "sampling_logprobs"), batch.known_masks[0]
    # A token that nobody sampled, as its text was tokenized again, is not corrected for.
    log_ratio = torch.where(mask & ~sampling.isnan(), old.double() - sampling.double(), 0.0)
    known = {"sampler_log_ratio": log_ratio, "mask": mask}

    def computed(name: str) -> Tensor | None:
        compute = row(settings, name).compute
        return None if compute is None else call_choice(compute, Tensors(log_ratio), known, settings).expand_as(mask)

    if (factor := computed("importance_sampling_mode")) is not None:
        batch.put(correction=torch.where(mask, factor, 1.0).to(old.dtype))
    if (kept := computed("rollout_rs")) is not None:
        batch.rejected = mask & ~kept


def rule_of(batch: Batch, settings: Settings) -> CorrectionRule | None:
    """How the factors of a batch were computed; None if it has none."""
    chosen = settings.correction_row
    if batch.correction is None:
        return None
    low, high = settings.importance_sampling_clip_min, settings.importance_sampling_clip_max
    return CorrectionRule(chosen.level, chosen.outside, low, high)


def correction_metrics(batch: Batch, settings: Settings) -> dict[str, float]:
    """TRL's statistics of the factors, where an answer's own factor counts once, and the share of tokens without
    any part in the loss."""
    mask, left_out, found = batch.known_masks[0], batch.rejected, dict[str, Any]()
    if batch.correction is not None:
        (factor,) = batch.on_host("correction")
        of_answers = settings.correction_row.level != "token"
        each = factor.gather(1, mask.int().argmax(1, keepdim=True)) if of_answers else factor[mask]
        found = {name: getattr(each, name)() for name in ("min", "mean", "max")}
        if settings.correction_row.outside == "mask":
            left_out = factor == 0 if left_out is None else left_out | (factor == 0)
    if left_out is not None:
        found["masked"] = left_out[mask].float().mean()
    return {f"sampling/importance_sampling_ratio/{name}": float(value) for name, value in found.items()}

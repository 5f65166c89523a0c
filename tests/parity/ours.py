"""rlplay's side: from the rewards to the gradient, by the engine's own functions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlplay.engine.axes import aggregation
from rlplay.engine.credit import advantages, token_rewards
from rlplay.engine.objective import objective
from rlplay.scenario.presets import resolve
from tests.parity.fixed import GENERATIONS, MAX_LENGTH, PROMPTS, Fixed


def run(batch: Fixed, **given: Any) -> dict[str, Tensor]:
    """What the settings `given` make of the batch; the names are those of `trl_policy.run`, advantages [N, L]."""
    sizes = {"num_prompts": PROMPTS, "num_generations": GENERATIONS, "max_completion_length": MAX_LENGTH}
    settings = resolve(sizes | given)
    stream = token_rewards(batch.rewards.sum(-1), batch.old, batch.ref, batch.lengths, batch.mask, settings)
    _, _, credited = advantages(stream, None, batch.group, batch.mask, settings)
    weights = aggregation.weights(settings.aggregation, batch.mask, settings.max_completion_length)
    now = batch.logprobs.clone().requires_grad_()
    terms = objective(now, batch.old, batch.ref, credited, weights, settings)
    (gradient,) = torch.autograd.grad(terms.loss, now)
    clipped = terms.clip_state[batch.mask]
    found = {
        "advantages": credited,
        "loss": terms.loss.detach(),
        "dloss_dlogp": gradient,
        "clip_ratio/low_mean": (clipped < 0).double().mean(),
        "clip_ratio/high_mean": (clipped > 0).double().mean(),
        "clip_ratio/region_mean": (clipped != 0).double().mean(),
    }
    return found if terms.kl is None else found | {"kl": terms.kl[batch.mask].mean().detach()}

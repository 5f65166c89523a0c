"""rlplay's side: from the rewards to the gradient and the metrics, by the engine's own functions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlplay.algorithms.apply import resolve
from rlplay.engine import policy_gradient
from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.correct import correct, correction_metrics
from rlplay.engine.credit_phase import assigned
from rlplay.engine.objective import Inputs, objective
from rlplay.engine.optimize import brought
from tests.parity.fixed import GENERATIONS, MAX_LENGTH, PROMPTS, Fixed

SIZES = {"num_prompts": PROMPTS, "num_generations": GENERATIONS, "max_completion_length": MAX_LENGTH}


def run(given: Fixed, **settings: Any) -> dict[str, Tensor]:
    """What the settings make of the batch; the names are those of `trl_policy.run`, advantages [N, L]."""
    knobs, batch, rows = resolve(SIZES | settings), as_batch(given), torch.arange(len(given.group))
    batch.advantages = assigned(batch, knobs, knobs.beta).advantages
    correct(batch, knobs)
    share = policy_gradient.share_of(batch, rows, knobs)
    now = given.logprobs.clone().requires_grad_()
    entropy = given.entropy if knobs.entropy_coef else None
    inputs = Inputs(
        now, given.old, given.ref, batch.advantages, None, None, entropy, False,
        *policy_gradient.corrected(batch, rows, knobs),
    )  # fmt: skip
    terms = objective(inputs, share.weights, knobs, knobs.beta, share.keep, share.bonus)
    (gradient,) = torch.autograd.grad(terms.loss, now)
    (seen,) = brought([policy_gradient.seen_of(rows, now, terms, share, gradient, None)])
    metrics = policy_gradient.step_metrics(batch, seen, knobs) | correction_metrics(batch, knobs)
    return (
        {"advantages": batch.advantages, "loss": terms.loss.detach(), "dloss_dlogp": gradient}
        | {
            "clip_state": terms.clip_state,
        }
        | {name: torch.tensor(value, dtype=torch.double) for name, value in metrics.items() if name != "loss"}
    )


def as_batch(given: Fixed) -> Batch:
    """The fixed tensors as the engine holds them after sampling, scoring and the passes that credit needs."""
    nothing = torch.zeros(*given.mask.shape, 0)
    ids = torch.zeros(given.mask.shape, dtype=torch.long)
    prompts = Prompts([], torch.zeros(PROMPTS, 1), torch.ones(PROMPTS, 1))
    last = torch.arange(given.mask.shape[1]) == given.lengths[:, None] - 1
    steps, unscored = (given.stream * given.ends).double(), given.rewards.isnan().all(-1)
    rewards = given.rewards.double().nansum(-1).masked_fill(unscored, torch.nan)
    return Batch(
        update=1, prompts=prompts, group=given.group, ids=ids, lengths=given.lengths, truncated=given.truncated,
        old_logprobs=given.old, ref_logprobs=given.ref, entropy=given.entropy, temperature=1.0,
        top_ids=nothing.long(), top_logprobs=nothing,
        rewards=rewards, outcomes=rewards - steps.sum(-1),
        parts={f"reward{i}": part.numpy() for i, part in enumerate(given.rewards.T)},
        weights={f"reward{i}": 1.0 for i in range(given.rewards.shape[1])},
        environment=given.environment, greedy_rewards=given.greedy[::GENERATIONS].double(), values=given.values,
        step_scores=steps, step_ends=given.ends,
        vine_values=given.values, vine_ends=given.ends | last, sampling_logprobs=given.sampling,
    )  # fmt: skip

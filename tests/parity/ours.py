"""rlplay's side: from the rewards to the gradient and the metrics, by the engine's own functions."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.entropy_control import EntropyControl
from rlplay.algorithms.settings import Settings
from rlplay.engine import policy_gradient
from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.correct import correct, correction_metrics
from rlplay.engine.covariance import chosen
from rlplay.engine.credit_phase import assigned
from rlplay.engine.entropy_bonus import adapt
from rlplay.engine.objective import Inputs, Terms, objective
from rlplay.engine.optimize import brought
from rlplay.engine.token_shares import share_of
from tests.parity.fixed import GENERATIONS, MAX_LENGTH, PROMPTS, Fixed

SIZES = {"num_prompts": PROMPTS, "num_generations": GENERATIONS, "max_completion_length": MAX_LENGTH}


def run(given: Fixed, **settings: Any) -> dict[str, Tensor]:
    """What the settings make of the batch; the names are those of `trl_policy.run`, advantages [N, L]."""
    knobs, batch, rows = resolve(SIZES | settings), as_batch(given), torch.arange(len(given.group))
    batch.advantages = assigned(batch, knobs, knobs.beta).advantages
    correct(batch, knobs)
    now = given.logprobs.clone().requires_grad_()
    terms, share = loss_of(given, batch, now, knobs, knobs.entropy_coef)
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


def loss_of(
    given: Fixed, batch: Batch, now: Tensor, knobs: Settings, entropy_coef: float
) -> tuple[Terms, policy_gradient.Share]:
    """What the loss of the whole batch consists of, and what each token counts for in it."""
    rows = torch.arange(len(given.group))
    share = share_of(batch, rows, knobs)
    if knobs.reads_covariance:
        share = chosen(batch, rows, share, knobs, now.detach(), (0, 1, 0))
    assert batch.advantages is not None
    inputs = Inputs(
        now, given.old, given.ref, batch.advantages, None, None, given.entropy, False,
        batch.sampling_logprobs, policy_gradient.log_correction(batch.correction, knobs),
    )  # fmt: skip
    return objective(inputs, share.weights, knobs, knobs.beta, share.keep, share.bonus, entropy_coef, share.held), share


def adapting(batches: list[Fixed], **settings: Any) -> dict[str, Tensor]:
    """The losses of some batches, a step each, and what each step makes of the weight of the entropy bonus."""
    knobs, control, found = resolve(SIZES | settings), EntropyControl(), defaultdict[str, list[Tensor]](list)
    for given in batches:
        batch, state = as_batch(given), SimpleNamespace(settings=knobs, entropy=control)
        batch.advantages = assigned(batch, knobs, knobs.beta).advantages
        terms, share = loss_of(given, batch, given.logprobs, knobs, control.used(knobs))
        state.entropy_coef = control.used(knobs)
        seen = policy_gradient.seen_of(torch.arange(len(given.group)), given.logprobs, terms, share, None, None)
        metrics = adapt(state, given.entropy, seen.weights, seen.left_out)  # type: ignore[arg-type]
        control = state.entropy
        found["losses"].append(terms.loss)
        found["entropy_coef"].append(torch.tensor(metrics["entropy_coef"], dtype=torch.double))
    return {name: torch.stack(values) for name, values in found.items()}


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

"""What a loss reads of the policy: log-probabilities of tokens, and what it has besides them."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from rlplay.algorithms import divergences
from rlplay.engine.batch import Batch
from rlplay.engine.objective import value_loss
from rlplay.engine.passes import token_logprobs
from rlplay.engine.policy_gradient import inputs_of
from rlplay.engine.state import State
from rlplay.engine.tensors import Tensors
from rlplay.engine.token_shares import share_of

KL = "KL"
"""What a KL in the loss adds, among the other terms."""


@dataclass
class Reading:
    """Of some completions, in float64 on the CPU: log-probabilities [R, L], and the other terms of the loss by name."""

    logprobs: Tensor
    others: dict[str, Tensor] = field(default_factory=dict)


def has_others(state: State, batch: Batch) -> bool:
    """Whether a loss reads more of the policy than the log-probabilities of the tokens."""
    if state.settings.loss_type != "policy_gradient":
        return False
    return state.settings.entropy_in_loss or batch.values is not None or batch.anchor is not None


def reading(state: State, batch: Batch, rows: Tensor) -> Reading:
    """Of the completions `rows`, by the policy as it is now."""
    if state.settings.loss_type != "policy_gradient":
        logprobs = token_logprobs(state.lm, state.lm.policy, batch.tokens(rows), batch.temperature)
        return Reading(logprobs.cpu().double())
    there = rows.to(batch.ids.device)
    inputs, values = inputs_of(batch, rows, there, state)
    found, settings = Reading(inputs.logprobs.cpu().double()), state.settings
    share = share_of(batch, rows, settings)
    weights, bonus = share.weights.to(there.device), share.bonus.to(there.device)
    if inputs.entropy is not None:
        found.others["entropy bonus"] = -state.entropy_coef * (bonus * inputs.entropy).cpu().double().sum()
    if inputs.anchor is not None and inputs.distribution is not None and not inputs.at_anchor:
        pair = inputs.distribution, inputs.anchor
        exact = divergences.full(Tensors, *(reversed(pair) if settings.kl_anchor == "old" else pair))
        found.others[KL] = state.kl_coef * (weights * exact).cpu().double().sum()
    if values is not None and batch.values is not None and batch.returns is not None:
        new, old, returns = (each.cpu().double() for each in (values, batch.values[there], batch.returns[there]))
        inside, clip = share.weights > 0, settings.cliprange_value
        error = value_loss(new, old, returns, inside, clip, share.tokens)
        found.others["value loss"] = settings.vf_coef * error
    return found

"""What came of each token: the return, from the stream of token rewards."""

from __future__ import annotations

import torch
from torch import Tensor


def broadcast(token_rewards: Tensor, mask: Tensor) -> Tensor:
    """Every token gets its completion's whole reward Σ_s r_s. [N, L] -> [N, L], 0 outside the mask."""
    total = (token_rewards * mask).sum(-1, keepdim=True)
    return total * mask


def to_go(token_rewards: Tensor, mask: Tensor, gamma: float) -> Tensor:
    """G_t = Σ_{s≥t} γ^(s−t) r_s over sampled tokens (Williams 1992). [N, L] -> [N, L], 0 outside the mask."""
    returns = token_rewards.new_zeros(token_rewards.shape)
    running = token_rewards.new_zeros(len(token_rewards))
    for t in reversed(range(token_rewards.shape[1])):
        running = running.where(~mask[:, t], token_rewards[:, t] + gamma * running)
        returns[:, t] = running
    return returns * mask


def gae(token_rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    """Generalised advantage estimation (Schulman et al. 2015, arXiv:1506.02438): the advantages, not the returns.

    δ_t = r_t + γ V_{t+1} − V_t and A_t = δ_t + γ λ A_{t+1}, where t + 1 is the next *sampled* token and V after the
    last is 0. All [N, L]; 0 outside the mask. The return a value head learns is A + V.
    """
    advantages = token_rewards.new_zeros(token_rewards.shape)
    running = token_rewards.new_zeros(len(token_rewards))
    following = running.clone()
    for t in reversed(range(token_rewards.shape[1])):
        here = mask[:, t]
        delta = token_rewards[:, t] + gamma * following - values[:, t]
        running = running.where(~here, delta + gamma * lam * running)
        following = following.where(~here, values[:, t])
        advantages[:, t] = running
    return advantages * mask


def vine(token_rewards: Tensor, values: Tensor, step_ends: Tensor, mask: Tensor, gamma: float) -> Tensor:
    """VinePPO's advantages of reasoning steps (Kazemnejad et al. 2024, arXiv:2410.01679), alike for a step's tokens.

    A = Σ_j γ^j r_{b+j} + γ^n V' − V for a step of n sampled tokens from b on, where V, `values`, is the value of the
    state it began in and V' that of the next step, 0 after the last. `step_ends` is True on each step's last token.
    All [N, L]; 0 outside the mask. The paper's case is γ = 1.
    """
    advantages = token_rewards.new_zeros(token_rewards.shape)
    running = token_rewards.new_zeros(len(token_rewards))
    following = running.clone()
    for t in reversed(range(token_rewards.shape[1])):
        here = mask[:, t]
        ahead = torch.where(step_ends[:, t], following, running)
        running = running.where(~here, token_rewards[:, t] + gamma * ahead)
        following = following.where(~here, values[:, t])
        advantages[:, t] = running - values[:, t]
    begins, current = torch.ones_like(mask[:, 0]), running
    for t in range(token_rewards.shape[1]):
        here = mask[:, t]
        current = torch.where(here & begins, advantages[:, t], current)
        begins = torch.where(here, step_ends[:, t], begins)
        advantages[:, t] = current
    return advantages * mask

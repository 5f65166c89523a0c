"""What came of each token: the return, from the stream of token rewards."""

from __future__ import annotations

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

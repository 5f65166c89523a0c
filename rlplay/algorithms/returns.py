"""The return of each token, from the stream of token rewards. A row at the end for each.

All arrays are [N, L] and 0 outside `mask`: `token_rewards` r_t, `values` V before each token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlplay.algorithms.choice import Choice, Chosen
from rlplay.trace.numbers import compact


def broadcast(xp: Any, token_rewards: Any, mask: Any) -> Any:
    """Every token gets its completion's whole reward Σ_s r_s."""
    return xp.sum_over(token_rewards, mask) * mask


def to_go(xp: Any, token_rewards: Any, mask: Any, gamma: float) -> Any:
    """G_t = Σ_{s≥t} γ^(s−t) r_s over sampled tokens (Williams 1992)."""
    returns = xp.zeros_like(token_rewards)
    running = xp.zeros_like(token_rewards[:, 0])
    for t in reversed(range(token_rewards.shape[1])):
        running = xp.where(mask[:, t], token_rewards[:, t] + gamma * running, running)
        returns[:, t] = running
    return returns * mask


def gae(xp: Any, token_rewards: Any, values: Any, mask: Any, gamma: float, lam: float) -> Any:
    """Generalised advantage estimation (Schulman et al. 2015, arXiv:1506.02438): the advantages, not the returns.

    δ_t = r_t + γ V_{t+1} − V_t and A_t = δ_t + γ λ A_{t+1}, where t + 1 is the next *sampled* token and V after the
    last is 0. The return a value head learns is A + V.
    """
    advantages = xp.zeros_like(token_rewards)
    running = xp.zeros_like(token_rewards[:, 0])
    following = running
    for t in reversed(range(token_rewards.shape[1])):
        here = mask[:, t]
        delta = token_rewards[:, t] + gamma * following - values[:, t]
        running = xp.where(here, delta + gamma * lam * running, running)
        following = xp.where(here, values[:, t], following)
        advantages[:, t] = running
    return advantages * mask


def vine(xp: Any, token_rewards: Any, values: Any, step_ends: Any, mask: Any, gamma: float) -> Any:
    """VinePPO's advantages of reasoning steps (Kazemnejad et al. 2024, arXiv:2410.01679), or of turns, one per step.

    A = Σ_j γ^j r_{b+j} + γ^n V' − V for a step of n sampled tokens from b on, where V is the value of the state
    at its start and V' that of the next step, 0 after the last. `step_ends` is True on each step's last token. The
    paper's case is γ = 1.
    """
    advantages = xp.zeros_like(token_rewards)
    running = xp.zeros_like(token_rewards[:, 0])
    following = running
    for t in reversed(range(token_rewards.shape[1])):
        here = mask[:, t]
        ahead = xp.where(step_ends[:, t], following, running)
        running = xp.where(here, token_rewards[:, t] + gamma * ahead, running)
        following = xp.where(here, values[:, t], following)
        advantages[:, t] = running - values[:, t]
    begins, current = xp.ones_like(mask[:, 0]), running
    for t in range(token_rewards.shape[1]):
        here = mask[:, t]
        current = xp.where(here & begins, advantages[:, t], current)
        begins = xp.where(here, step_ends[:, t], begins)
        advantages[:, t] = current
    return advantages * mask


@dataclass(frozen=True)
class Return(Choice):
    """A return. With `relative`, its computation gives advantages over the values; the return is that plus V."""

    equation: Callable[[Chosen], str] = lambda _settings: ""
    relative: bool = False


RETURNS: dict[str, Return] = {
    row.name: row
    for row in (
        Return("broadcast", broadcast, "every token gets the sum.", equation=lambda _: "Σ r over the answer"),
        Return(
            "to_go", to_go, "what follows the token, discounted.",
            equation=lambda s: "Σ r from here on" if s.gamma == 1 else f"r + {compact(s.gamma)}·G′",
        ),
        Return(
            "vine", vine, "values each reasoning step, or turn of an episode, by answers sampled from its start.",
            "arXiv:2410.01679", relative=True,
            equation=lambda s: (
                "Σ r of the step or turn + V′" if s.gamma == 1
                else f"Σ γᵗ·r of the step or turn + γⁿ·V′, γ = {compact(s.gamma)}"
            ),
        ),
        Return(
            "gae", gae, "estimated with the value head.", "arXiv:1506.02438", relative=True,
            equation=lambda s: (
                f"V + Σₖ {compact(s.gamma * s.lam)}ᵏ·δₖ, δ = r + {'' if s.gamma == 1 else f'{compact(s.gamma)}·'}V′ − V"
            ),
        ),
    )
}  # fmt: skip

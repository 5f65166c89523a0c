"""Checks of functions of tokens: the REINFORCE loss, PPO's clip, an estimate of the KL."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlplay.algorithms import baselines, divergences, surrogates
from rlplay.algorithms.aggregation import token_weights
from rlplay.exercises.check import Case, Check, Material, Place

_LOG_P = np.array([[-0.4, -1.2, -0.7], [-2.0, -0.1, 0.0]])
_INSIDE = np.array([[True, True, True], [True, True, False]])


# The loss of REINFORCE with the batch's mean as baseline


def _reinforce(xp: Any, logprobs: Any, rewards: Any, mask: Any) -> Any:
    advantages = rewards - baselines.batch_mean(xp, rewards, xp.indices_like(rewards))
    weights = token_weights(xp, "seq_mean_token_sum", mask > 0, mask, 0)
    return (weights * surrogates.logp(xp, logprobs, advantages[:, None])).sum()


def _reinforce_cases(batch: Material) -> list[Case]:
    given = {"logprobs": np.where(batch.mask, batch.old_logprobs, 0.0), "rewards": batch.need("rewards", "rewards")}
    places = [*batch.of_tokens(), Place("the loss")]
    return [Case(given | {"mask": batch.mask.astype(float)}, places, (), batch.mask)]


def _made_up_tokens() -> list[Place]:
    return [Place(f"token {t + 1} of the made-up answer {i + 1}") for i, t in zip(*_INSIDE.nonzero(), strict=True)]


def _reinforce_made_up() -> list[Case]:
    # The last place is padding, and what is there must not matter.
    logprobs = np.where(_INSIDE, _LOG_P, -5.0)
    given = {"logprobs": logprobs, "rewards": np.array([1.0, 0.25]), "mask": _INSIDE.astype(float)}
    return [Case(given, [*_made_up_tokens(), Place("the loss")], (), _INSIDE, made_up=True)]


# PPO's clipped surrogate


def _clipped(xp: Any, ratio: Any, advantages: Any, epsilon: float) -> Any:
    return surrogates.ppo(xp, ratio, advantages, epsilon, epsilon, None)


def _clip_cases(batch: Material) -> list[Case]:
    advantages = batch.need("advantages", "advantages")
    ratio = np.exp(np.where(batch.mask, batch.logprobs - batch.old_logprobs, 0.0))
    given = {"ratio": ratio, "advantages": advantages, "epsilon": batch.settings.clip_range[0]}
    return [Case(given, batch.of_tokens(), batch.mask.shape, batch.mask)]


def _clip_made_up() -> list[Case]:
    ratio = np.array([[0.5, 0.5, 1.0, 1.0, 1.5, 1.5]])
    advantages = np.array([[1.0, -1.0, 2.0, -2.0, 1.0, -1.0]])
    places = [Place(f"ratio {r:g}, advantage {a:+g}, ε 0.2") for r, a in zip(ratio[0], advantages[0], strict=True)]
    given = {"ratio": ratio, "advantages": advantages, "epsilon": 0.2}
    return [Case(given, places, ratio.shape, np.ones_like(ratio, dtype=bool), made_up=True)]


# The estimator k3 of the KL to the reference


def _k3(xp: Any, logprobs: Any, ref_logprobs: Any) -> Any:
    return divergences.k3(xp, ref_logprobs - logprobs)


def _kl_cases(batch: Material) -> list[Case]:
    reference = batch.need("ref_logprobs", "log-probabilities of the reference")
    given = {name: np.where(batch.mask, each, 0.0) for name, each in
             (("logprobs", batch.old_logprobs), ("ref_logprobs", reference))}  # fmt: skip
    return [Case(given, batch.of_tokens(), batch.mask.shape, batch.mask)]


def _kl_made_up() -> list[Case]:
    given = {"logprobs": _LOG_P, "ref_logprobs": np.array([[-1.0, -0.2, -0.7], [-1.5, -0.6, 0.0]])}
    return [Case(given, _made_up_tokens(), _LOG_P.shape, _INSIDE, made_up=True)]


TOKEN_CHECKS: dict[str, Check] = {
    "reinforce": Check("loss", "tokens", _reinforce_cases, _reinforce_made_up, _reinforce, gradient_of="logprobs"),
    "clip": Check("surrogate", "tokens", _clip_cases, _clip_made_up, _clipped),
    "kl": Check("kl", "tokens", _kl_cases, _kl_made_up, _k3),
}

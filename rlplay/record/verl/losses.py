"""verl's loss as the axes of rlplay's, where these are the same for certain: verl 0.9.1's `trainer/ppo/core_algos.py`.

Which functions agree to the last digits, `tests/parity` says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rlplay.record.verl.option import option
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import CorrectionRule

_ACTOR, _CORRECTION = "actor_rollout_ref.actor.", "algorithm.rollout_correction."
_AGGREGATIONS = {
    "token-mean": "token_mean", "seq-mean-token-sum": "seq_mean_token_sum",
    "seq-mean-token-mean": "seq_mean_token_mean",
}  # fmt: skip
"""How `agg_loss` aggregates tokens, by loss_agg_mode."""
_BY_ANSWER = {"sapo": "seq_mean_token_mean", "geo_mean": "seq_mean_token_mean"}
"""What loss modes aggregate as whatever loss_agg_mode is."""
_ESTIMATORS = {"kl": "k1", "k1": "k1", "mse": "k2", "k2": "k2", "low_var_kl": "k3", "k3": "k3"}
"""The estimators of `kl_penalty`, by kl_loss_type."""
_ADVANTAGES: Mapping[str, SomeSettings] = {
    "grpo": {"baseline": "group_mean", "scale_rewards": "group"},
    "rloo": {"baseline": "leave_one_out", "scale_rewards": "none"},
    "rloo_vectorized": {"baseline": "leave_one_out", "scale_rewards": "none"},
}
"""By adv_estimator."""
_PRESETS = {
    "vanilla": "grpo", "dppo_tv": "dppo", "dppo_kl": "dppo", "gspo": "gspo", "sapo": "sapo", "gpg": "grpo",
    "clip_cov": "clip-cov", "kl_cov": "kl-cov", "geo_mean": "gmpo", "dro": "grpo", "cispo": "cispo",
}  # fmt: skip
"""What rlplay calls the losses of verl's loss_mode; all of their axes that matter are set apart."""
_WHERE_CLIPPED = ("vanilla", "dppo_tv", "dppo_kl")
"""The loss modes that read clip_ratio_c."""


def loss_of(config: Any, older: bool) -> SomeSettings:
    """The axes of the loss, with an `algorithm`; empty if rlplay does not have this loss for certain.

    `older`: it is that of `RayPPOTrainer`, which chooses another loss mode with bypass_mode.
    """
    try:
        parts = [_credit(config), _surrogate(config, older), _penalties(config), _corrected(config)]
    except (TypeError, ValueError):  # a value that verl would refuse, too
        return {}
    if any(part is None for part in parts):
        return {}
    found = {name: value for part in parts for name, value in (part or {}).items()}
    # Without a KL of its own a loss may have the one to the reference; with both, rlplay has no such sum.
    return {} if found.get("kl_anchor") == "old" and _kl(config) else found


def _credit(config: Any) -> SomeSettings | None:
    estimator = option(config, "algorithm.adv_estimator")
    if estimator not in _ADVANTAGES or option(config, "algorithm.use_kl_in_reward"):
        return None
    plain = estimator == "grpo" and not option(config, "algorithm.norm_adv_by_std_in_grpo", True)
    return {**_ADVANTAGES[estimator]} | ({"scale_rewards": "none"} if plain else {})


def _surrogate(config: Any, older: bool) -> SomeSettings | None:
    """What the loss makes of each token's ratio."""
    mode, bypass = option(config, f"{_ACTOR}policy_loss.loss_mode", "vanilla"), _bypass(config)
    if bypass and older:  # whatever loss_mode says
        reinforce = option(config, f"{_CORRECTION}loss_type", "ppo_clip") == "reinforce"
        found = _reinforce(config) if reinforce else _of_mode(config, "vanilla")
    else:
        found = _of_mode(config, mode)
    return found if found is None or not bypass else found | {"old_logprobs_of": "sampler"}


def _of_mode(config: Any, mode: str) -> SomeSettings | None:
    aggregation = _BY_ANSWER.get(mode) or _AGGREGATIONS.get(option(config, f"{_ACTOR}loss_agg_mode", "token-mean"))
    clip = option(config, f"{_ACTOR}clip_ratio", 0.2)
    low, high = (option(config, f"{_ACTOR}clip_ratio_{side}", clip) for side in ("low", "high"))
    # CISPO's ratio has a lower bound in verl, too, which does nothing from 1 on.
    if mode not in _PRESETS or aggregation is None or (mode == "cispo" and low < 1):
        return None
    return {
        "algorithm": _PRESETS[mode], "aggregation": aggregation, "epsilon": low,
        "epsilon_high": 1 + high if mode == "cispo" else high,
        "delta": option(config, f"{_ACTOR}clip_ratio_c", 3.0) if mode in _WHERE_CLIPPED else None,
        "kl_placement": "loss", "beta": 0.0, "use_bias_correction_kl": False, **_own(config, mode),
    }  # fmt: skip


def _own(config: Any, mode: str) -> SomeSettings:
    """What only this mode has, by its options."""
    if mode == "kl_cov":
        read = {"kl_cov_ratio": ("policy_loss.kl_cov_ratio", 2e-4), "beta": ("policy_loss.ppo_kl_coef", 0.1)}
    elif mode == "clip_cov":
        bounds = {"ratio": 2e-4, "lb": 1.0, "ub": 5.0}
        read = {f"clip_cov_{name}": (f"policy_loss.clip_cov_{name}", value) for name, value in bounds.items()}
    elif mode == "sapo":
        read = {f"sapo_temperature_{side}": (f"tau_{side}", tau) for side, tau in (("pos", 1.0), ("neg", 1.05))}
    elif mode == "dro":
        read = {"dro_beta": ("policy_loss.dro_beta", 0.0)}
    else:
        read = {}
    fixed: dict[str, SomeSettings] = {
        "kl_cov": {"kl_anchor": "old", "kl_estimator": "abs"}, "gpg": {"surrogate": "logp"},
        "dro": {"surrogate": "dro"}, "dppo_tv": {"surrogate": "dppo_tv"}, "dppo_kl": {"surrogate": "dppo_kl"},
    }  # fmt: skip
    return fixed.get(mode, {}) | {name: option(config, _ACTOR + path, value) for name, (path, value) in read.items()}


def _reinforce(config: Any) -> SomeSettings | None:
    """That of bypass_mode and loss_type reinforce: the log-probability, weighted by the capped ratio to the sampler."""
    level = option(config, f"{_CORRECTION}rollout_is")
    bounds = _bounds(option(config, f"{_CORRECTION}rollout_is_threshold", 2.0))
    found = _of_mode(config, "gpg")
    if found is None or level is None:
        return found
    if bounds[0] is not None or bounds[1] < 1 or option(config, f"{_CORRECTION}rollout_is_batch_normalize"):
        return None
    # Of a whole answer it is no factor that rlplay has: its cap belongs to a token's own ratio.
    return found | {"algorithm": "cispo", "surrogate": "cispo", "epsilon_high": bounds[1]} if level == "token" else None


def _penalties(config: Any) -> SomeSettings | None:
    """The KL to the reference and the entropy bonus."""
    coefficient = option(config, f"{_ACTOR}entropy_coeff", 0) or 0
    aggregation = option(config, f"{_ACTOR}loss_agg_mode", "token-mean")
    if (coefficient and aggregation != "token-mean") or option(config, "distillation.enabled"):
        return None
    beta = _kl(config)
    estimator = _ESTIMATORS.get(option(config, f"{_ACTOR}kl_loss_type", "low_var_kl"))
    if beta and estimator is None:
        return None
    bonus = {"entropy_coef": coefficient} if coefficient else {}
    return bonus | ({"beta": beta, "kl_estimator": estimator} if beta else {})


def _kl(config: Any) -> float:
    used = option(config, f"{_ACTOR}use_kl_loss")
    return float(option(config, f"{_ACTOR}kl_loss_coef", 0.001)) if used else 0.0


def _corrected(config: Any) -> SomeSettings | None:
    """How it corrects for the sampler: a factor, and what is left out."""
    level, rejects = (option(config, _CORRECTION + name) for name in ("rollout_is", "rollout_rs"))
    if _bypass(config):  # the ratio itself corrects, and what is left out follows the policy from step to step
        return None if rejects is not None else {}
    if level is None and rejects is None:
        return {}
    geometric = option(config, f"{_ACTOR}policy_loss.loss_mode", "vanilla") == "geo_mean"
    if not option(config, "actor_rollout_ref.rollout.calculate_log_probs") or (level is not None and geometric):
        return None
    found: SomeSettings = {}
    if level is not None:
        rule = correction_rule(config)
        if rule is None:
            return None
        found |= {
            "importance_sampling_mode": f"{rule.level}_{rule.outside}", "importance_sampling_clip_min": rule.low,
            "importance_sampling_clip_max": rule.high,
        }  # fmt: skip
    if rejects is not None:
        threshold = _rejection(str(rejects), option(config, f"{_CORRECTION}rollout_rs_threshold"))
        if threshold is None:
            return None
        found |= {"rollout_rs": rejects, "rollout_rs_threshold": threshold}
    return found


def rejects(config: Any) -> bool:
    """Whether verl's batches leave tokens out of their masks that the sampler was too far from."""
    return option(config, f"{_CORRECTION}rollout_rs") is not None and not _bypass(config)


def correction_rule(config: Any) -> CorrectionRule | None:
    """How the weights in verl's batches are computed; None if they are divided by their mean afterwards, too."""
    level = option(config, f"{_CORRECTION}rollout_is")
    if level is None or option(config, f"{_CORRECTION}rollout_is_batch_normalize"):
        return None
    low, high = _bounds(option(config, f"{_CORRECTION}rollout_is_threshold", 2.0))
    return CorrectionRule(str(level), "truncate" if low is None else "mask", low, high)


def _bypass(config: Any) -> bool:
    return bool(option(config, f"{_CORRECTION}bypass_mode"))


def _bounds(threshold: Any) -> tuple[float | None, float]:
    """The bounds of a factor: one number cuts it from above, "lower_upper" leaves out what is beyond."""
    low, _, high = str(threshold).rpartition("_")
    return float(low) if low else None, float(high)


def _rejection(option_name: str, threshold: Any) -> float | None:
    """rlplay's only threshold of a rejection; None if verl has several, or bounds that are not each other's inverse."""
    if "," in option_name or "," in str(threshold) or threshold is None:
        return None
    low, high = _bounds(threshold)
    if option_name.endswith("k1"):
        return high if low is None or math.isclose(low * high, 1.0, rel_tol=1e-5) else None
    return high if low is None else None

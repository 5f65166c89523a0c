"""Policy gradients against TRL's trainers: each row one algorithm, as both sides spell it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import torch

from tests.parity import ours
from tests.parity.case import Case, Pairs
from tests.parity.fixed import GENERATIONS, MAX_LENGTH, Fixed, fixed, sampled_elsewhere

Given = dict[str, Any]

ROWS: list[tuple[str, str, Given, Given]] = [
    ("GRPO", "grpo", {"algorithm": "grpo"}, {"loss_type": "grpo"}),
    ("GRPO", "grpo", {"algorithm": "grpo", "beta": 0.1}, {"loss_type": "grpo", "beta": 0.1}),
    ("GRPO", "grpo", {"algorithm": "grpo", "beta": 0.1, "use_bias_correction_kl": False},
     {"loss_type": "grpo", "beta": 0.1, "use_bias_correction_kl": False}),
    ("GRPO", "grpo", {"algorithm": "grpo", "delta": 1.3}, {"loss_type": "grpo", "delta": 1.3}),
    ("GRPO", "grpo", {"algorithm": "grpo", "entropy_coef": 0.01}, {"loss_type": "grpo", "entropy_coef": 0.01}),
    ("Dr. GRPO", "grpo", {"algorithm": "dr-grpo"}, {"loss_type": "dr_grpo", "scale_rewards": "none"}),
    ("DAPO's clip and aggregation", "grpo", {"algorithm": "dapo", "overlong_buffer": 0},
     {"loss_type": "dapo", "epsilon_high": 0.28}),
    ("Lite PPO", "grpo", {"algorithm": "lite-ppo"}, {"loss_type": "dapo", "scale_rewards": "batch"}),
    ("GSPO", "grpo", {"algorithm": "gspo"},
     {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4}),
    ("GSPO", "grpo", {"algorithm": "gspo", "epsilon": 0.1, "epsilon_high": 0.1, "kl_placement": "loss", "beta": 0.1},
     {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 0.1, "beta": 0.1}),
    ("LUSPO", "grpo", {"algorithm": "luspo"},
     {"loss_type": "luspo", "importance_sampling_level": "sequence", "epsilon": 2e-3, "epsilon_high": 2.5e-3}),
    ("GMPO", "gmpo", {"algorithm": "gmpo"}, {"epsilon": 0.4}),
    ("CISPO", "grpo", {"algorithm": "cispo", "epsilon_high": 1.2}, {"loss_type": "cispo", "epsilon_high": 1.2}),
    ("SAPO", "grpo", {"algorithm": "sapo"}, {"loss_type": "sapo"}),
    ("VESPO", "grpo", {"algorithm": "vespo"}, {"loss_type": "vespo"}),
    ("GDPO", "grpo", {"algorithm": "gdpo", "beta": 0.1},
     {"loss_type": "grpo", "multi_objective_aggregation": "normalize_then_sum", "beta": 0.1}),
    ("RLOO", "rloo", {"algorithm": "rloo"}, {"beta": 0.05}),
    ("RLOO, normalised advantages", "rloo", {"algorithm": "rloo", "scale_rewards": "answers"},
     {"beta": 0.05, "normalize_advantages": True}),
    ("RLOO, clipped rewards", "rloo", {"algorithm": "rloo", "reward_clip_min": -0.7, "reward_clip_max": 0.5},
     {"beta": 0.05, "reward_clip_range": (-0.7, 0.5)}),
    *(
        ("In three micro-batches", "grpo", {"algorithm": "grpo", "aggregation": aggregation, "beta": 0.1},
         {"loss_type": loss_type, "beta": 0.1, "micro_batches": 3})
        for aggregation, loss_type in (("seq_mean_token_mean", "grpo"), ("token_mean", "dapo"),
                                       ("constant", "dr_grpo"))
    ),
    ("Top-entropy tokens", "grpo", {"algorithm": "dapo", "overlong_buffer": 0, "top_entropy_quantile": 0.3},
     {"loss_type": "dapo", "epsilon_high": 0.28, "top_entropy_quantile": 0.3}),
    ("Top-entropy tokens", "grpo",
     {"algorithm": "grpo", "top_entropy_quantile": 0.3, "entropy_coef": 0.01},
     {"loss_type": "grpo", "top_entropy_quantile": 0.3, "entropy_coef": 0.01}),
    ("Off-policy mask", "grpo", {"algorithm": "grpo", "off_policy_mask_threshold": 0.02, "beta": 0.1},
     {"loss_type": "grpo", "off_policy_mask_threshold": 0.02, "beta": 0.1}),
    *(
        ("Truncated answers masked", "grpo",
         {"algorithm": "grpo", "aggregation": aggregation, "mask_truncated_completions": True, "beta": 0.1},
         {"loss_type": loss_type, "mask_truncated_completions": True, "beta": 0.1})
        for aggregation, loss_type in (("seq_mean_token_mean", "grpo"), ("token_mean", "dapo"),
                                       ("constant", "dr_grpo"), ("seq_mean_token_sum", "luspo"))
    ),
]  # fmt: skip
"""Row of the table, TRL's trainer, rlplay's settings, fields of TRL's config."""


UNSCORED: list[tuple[str, Given, Given]] = [
    ("grpo", {"algorithm": "grpo"}, {"loss_type": "grpo"}),
    ("grpo", {"algorithm": "lite-ppo"}, {"loss_type": "dapo", "scale_rewards": "batch"}),
    ("grpo", {"algorithm": "gdpo"}, {"loss_type": "grpo", "multi_objective_aggregation": "normalize_then_sum"}),
    ("rloo", {"algorithm": "rloo"}, {"beta": 0.05}),
]
"""The same without the row, where some reward functions did not answer."""


def compare(kind: str, mine: Given, theirs: Given, dtype: torch.dtype, seed: int) -> Pairs:
    """Advantages, loss, gradient and every metric that both sides log."""
    return beside(kind, fixed(dtype, seed), mine, theirs)


def beside(kind: str, batch: Fixed, mine: Given, theirs: Given, rewarded: Fixed | None = None) -> Pairs:
    """What both sides make of one batch, by names that both have; TRL's of `rewarded` where its rewards differ."""
    from tests.parity import trl_policy

    own, other = ours.run(batch, **mine), trl_policy.run(kind, rewarded or batch, **theirs)
    other["advantages"] = other["advantages"][:, None] * batch.sampled
    shared = own.keys() & other.keys()
    always = {"advantages", "loss", "dloss_dlogp"}
    assert always <= shared
    if "micro_batches" in theirs:
        shared = always  # TRL averages each metric over micro-batches of any size
    return {name: (own[name], other[name]) for name in shared}


def unscored(kind: str, mine: Given, theirs: Given, dtype: torch.dtype, seed: int) -> Pairs:
    """One reward function is silent on some completions, and all are on one of each prompt's."""
    batch = fixed(dtype, seed)
    rewards = batch.rewards.clone()
    rewards[1::3, 0] = torch.nan
    rewards[2::GENERATIONS] = torch.nan
    return beside(kind, replace(batch, rewards=rewards), mine, theirs)


ENVIRONMENT: list[tuple[Given, Given]] = [
    ({"algorithm": "grpo", "beta": 0.1}, {"loss_type": "grpo", "beta": 0.1}),
    ({"algorithm": "dapo", "overlong_buffer": 0, "top_entropy_quantile": 0.5},
     {"loss_type": "dapo", "epsilon_high": 0.28, "top_entropy_quantile": 0.5}),
    ({"algorithm": "gspo", "epsilon": 0.1, "epsilon_high": 0.1, "kl_placement": "loss", "beta": 0.1},
     {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 0.1, "beta": 0.1}),
    ({"algorithm": "vespo", "off_policy_mask_threshold": 0.02}, {"loss_type": "vespo",
                                                               "off_policy_mask_threshold": 0.02}),
]  # fmt: skip
"""The same without row and trainer, where some tokens were read and not sampled (TRL: the tool mask)."""


def environment(mine: Given, theirs: Given, dtype: torch.dtype, seed: int) -> Pairs:
    """An environment wrote some tokens of the completions."""
    batch = fixed(dtype, seed)
    return beside("grpo", replace(batch, environment=batch.mask & ~batch.holes), mine, theirs)


CORRECTED: list[tuple[Given, Given]] = [
    *(
        (axes | {"importance_sampling_mode": mode, "importance_sampling_clip_max": high,
                 "importance_sampling_clip_min": low},
         options | {"vllm_importance_sampling_mode": mode, "vllm_importance_sampling_clip_max": high,
                    "vllm_importance_sampling_clip_min": low})
        for axes, options in (
            ({"algorithm": "grpo", "beta": 0.1}, {"loss_type": "grpo", "beta": 0.1}),
            ({"algorithm": "gspo", "epsilon": 0.1, "epsilon_high": 0.1},
             {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 0.1}),
            ({"algorithm": "cispo", "epsilon_high": 1.2, "top_entropy_quantile": 0.5},
             {"loss_type": "cispo", "epsilon_high": 1.2, "top_entropy_quantile": 0.5}),
            ({"algorithm": "vespo"}, {"loss_type": "vespo"}),
            ({"algorithm": "grpo", "off_policy_mask_threshold": 0.05},
             {"loss_type": "grpo", "off_policy_mask_threshold": 0.05}),
        )
        for mode in ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask")
        for low, high in ((None, 1.3), (0.8, 1.3), (0.8, None))
        if axes["algorithm"] != "vespo" or mode.startswith("token")
    ),
    ({"algorithm": "grpo", "importance_sampling_mode": "sequence_mask"}, {"loss_type": "grpo"}),
]  # fmt: skip
"""The settings for which another program samples; TRL's own defaults are the last. Without row and trainer."""


def sampler(mine: Given, theirs: Given, holes: bool, dtype: torch.dtype, seed: int) -> Pairs:
    """Another program has sampled, and an environment wrote some tokens if `holes`."""
    batch = sampled_elsewhere(fixed(dtype, seed), seed)
    if holes:
        batch = replace(batch, environment=batch.mask & ~batch.holes)
    pairs = beside("grpo", batch, mine, theirs | {"use_vllm": True})
    assert {f"sampling/importance_sampling_ratio/{name}" for name in ("min", "mean", "max")} <= pairs.keys()
    return pairs


def overlong(buffer: int, dtype: torch.dtype, seed: int) -> Pairs:
    """All of DAPO but its sampling: what long answers pay is in TRL one more reward function."""
    from trl.rewards import get_soft_overlong_punishment

    batch = fixed(dtype, seed)
    penalty = get_soft_overlong_punishment(MAX_LENGTH, buffer)(batch.completions)
    rewards = torch.cat([batch.rewards, torch.tensor(penalty, dtype=dtype)[:, None]], dim=1)
    mine, theirs = {"algorithm": "dapo", "overlong_buffer": buffer}, {"loss_type": "dapo", "epsilon_high": 0.28}
    return beside("grpo", batch, mine, theirs, replace(batch, rewards=rewards))


def token_level(mine: Given, dtype: torch.dtype, seed: int) -> Pairs:
    """PPO's policy loss: TRL's `bnpo` with an advantage of its own for every token."""
    from tests.parity import trl_policy

    batch = fixed(dtype, seed)
    own = ours.run(batch, **mine)
    other = trl_policy.run("grpo", batch, loss_type="bnpo", token_advantages=own.pop("advantages"))
    return {name: (own[name], other[name]) for name in own.keys() & other.keys()}


ADAPTIVE: Given = {"entropy_coef": 0.02, "entropy_target": 0.7, "entropy_coef_delta": 0.015, "entropy_coef_max": 0.04,
                   "entropy_coef_min": 0.01, "top_entropy_quantile": 0.8}  # fmt: skip
UNDECIDED = (0.9, 0.3, 0.2, 0.1, 2.0, 3.0, 2.0, 0.5)
"""What the entropy of each step's tokens is multiplied by: first above the target, then below, until the bounds."""


def adaptive(dtype: torch.dtype, seed: int) -> Pairs:
    """An entropy bonus whose weight adapts, over several steps."""
    from tests.parity import trl_policy

    batches = [replace(b, entropy=b.entropy * by) for b, by in zip([fixed(dtype, seed)] * 8, UNDECIDED, strict=True)]
    own = ours.adapting(batches, algorithm="grpo", use_adaptive_entropy=True, **ADAPTIVE)
    other = trl_policy.adapting(batches, loss_type="grpo", **ADAPTIVE)
    assert {0.01, 0.04} <= {round(x, 6) for x in own["entropy_coef"].tolist()}
    return {name: (own[name], other[name]) for name in own}


def cases() -> list[Case]:
    """All of them."""
    against = "TRL 1.16.0"
    found = [Case(row, against, f"{row} {theirs}", partial(compare, kind, mine, theirs))
             for row, kind, mine, theirs in ROWS]  # fmt: skip
    found += [Case("Unscored answers", against, f"unscored {kind} {theirs}", partial(unscored, kind, mine, theirs))
              for kind, mine, theirs in UNSCORED]  # fmt: skip
    found += [Case("Tokens of an environment", against, f"environment {theirs}", partial(environment, mine, theirs))
              for mine, theirs in ENVIRONMENT]  # fmt: skip
    found += [Case("Sampler corrected (TIS, MIS)", against, f"sampler {i} {holes} {theirs['loss_type']}",
                   partial(sampler, mine, theirs, holes))
              for i, (mine, theirs) in enumerate(CORRECTED) for holes in (False, True)]  # fmt: skip
    found += [Case("DAPO's overlong penalty", against, f"overlong {n}", partial(overlong, n)) for n in (2, 5, 8)]
    found.append(Case("Adaptive entropy bonus", against, "adaptive entropy", adaptive))
    found.append(Case("PPO-clip, policy loss", against, "PPO-clip", partial(token_level, {"algorithm": "ppo"})))
    return found

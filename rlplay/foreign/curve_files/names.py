"""What other trainers call the metrics that TRL has names for.

Each row was read in the source of its trainer at the version named there. What has another definition keeps its own
name: a critic's reward less a KL penalty is no `reward`. Names that are not here stay as they are.
"""

from __future__ import annotations

import re

MISMATCH, MISMATCH_LOGPROBS = "mismatch_kl/mean", "sampling/sampling_logp_difference/mean"
"""A KL, ≥ 0 in expectation, and the mean |difference| of log-probabilities, between the sampler and the trainer."""

_VERL = {  # trainer/ppo/metric_utils.py, core_algos.py, rollout_corr_helper.py; verl 0.9.1
    "critic/score/mean": "reward",
    "response_length/mean": "completions/mean_length",
    "response_length/min": "completions/min_length",
    "response_length/max": "completions/max_length",
    "response_length/clip_ratio": "completions/clipped_ratio",
    "actor/entropy": "entropy",
    "actor/grad_norm": "grad_norm",
    "actor/lr": "learning_rate",
    "actor/loss": "loss",
    "actor/pg_loss": "policy_loss",
    "actor/pg_clipfrac": "clip_ratio/region_mean",
    "actor/kl_loss": "kl",  # before its coefficient
    "actor/kl_coef": "kl_coef",
    "critic/vf_loss": "value_loss",
    "critic/vf_explained_var": "explained_variance",
    "rollout_corr/k3_kl": MISMATCH,
    "timing_s/step": "step_time",
}
_PRIME_RL = {  # src/prime_rl/trainer/rl, src/prime_rl/monitors at 048a6e2
    "train/agg/effective/reward/mean": "reward",
    "reward/all/mean": "reward",
    "train/agg/effective/num_output_tokens/mean": "completions/mean_length",
    "train/agg/effective/is_truncated/mean": "completions/clipped_ratio",
    "entropy/all/mean": "entropy",
    "loss/mean": "loss",
    "optim/grad_norm": "grad_norm",
    "optim/lr": "learning_rate",
    "mismatch_kl/all/mean": MISMATCH,
    "time/step": "step_time",
}
_OPENRLHF = {  # trainer/ray/ppo_actor.py, trainer/sft_trainer.py; openrlhf 0.11.2; "train/" before them
    # Its `acc` and `chosen_reward` are those of DPO and of a reward model alike.
    "response_length": "completions/mean_length",
    "response_clip_ratio": "completions/clipped_ratio",
    "actor_grad_norm": "grad_norm",
    "actor_lr": "learning_rate",
    "ppo_clip_ratio": "clip_ratio/region_mean",
    "entropy_loss": "entropy",  # the mean entropy, before its coefficient
    "critic_loss": "value_loss",
    "gpt_loss": "loss",
    "lr": "learning_rate",
    "timing/step_total": "step_time",
}
_NEMO_RL = {  # nemo_rl/algorithms/grpo.py, loss/loss_functions.py at 006907a; "train/" before them
    "mean_gen_tokens_per_sample": "completions/mean_length",
    "approx_entropy": "entropy",  # its estimate from the sampled tokens
    "kl_penalty": "kl",  # to the reference, divided by its coefficient
    "gen_kl_error": MISMATCH,
    "probs_ratio_max": "ratio_max",
    "timing/train/total_step_time": "step_time",
}
_SKYRL = {  # skyrl/train/trainer.py, backends/skyrl_train/workers/worker.py; skyrl 0.3.0
    "reward/avg_raw_reward": "reward",
    "generate/avg_num_tokens": "completions/mean_length",
    "generate/min_num_tokens": "completions/min_length",
    "generate/max_num_tokens": "completions/max_length",
    "policy/final_loss": "loss",
    "policy/policy_loss": "policy_loss",
    "policy/policy_entropy": "entropy",
    "policy/policy_kl": "kl",
    "policy/grad_norm": "grad_norm",
    "policy/policy_lr": "learning_rate",
    "policy/loss_metrics/clip_ratio": "clip_ratio/region_mean",
    "policy/rollout_train_logprobs_abs_diff_mean": MISMATCH_LOGPROBS,
    "timing/step": "step_time",
}
_TINKER = {  # rl/metric_util.py, rl/metrics.py, rl/train.py; tinker_cookbook 0.6.1
    # Its tokens are per turn, of which an answer may have several.
    "env/all/reward/total": "reward",
    "optim/entropy": "entropy",  # its estimate from the sampled tokens
    "optim/kl_sample_train_v2": MISMATCH,
    "time/total": "step_time",
}
NAMES = _VERL | _PRIME_RL | _OPENRLHF | _NEMO_RL | _SKYRL | _TINKER
"""By the name in a file, TRL's."""
_HELD_OUT = ("eval/", "eval_", "test/", "val-core/", "val-aux/", "val/", "validation/")
_TOTALS = (  # of a whole training: one number at its end
    "train_runtime", "train_samples_per_second", "train_steps_per_second", "train_loss", "total_flos",
)  # fmt: skip
_APART = ("timing", "time", "perf", "performance", "system", "ray", "val", "validation")


def known_as(name: str) -> str:
    """What a logged name is called here; "" for what is no number of a step.

    transformers, NeMo-RL and OpenRLHF write `train/` before each name and `eval/` before those of held-out prompts.
    """
    if name in NAMES:
        return NAMES[name]
    for prefix in _HELD_OUT:
        if name.startswith(prefix):
            rest = name.removeprefix(prefix)
            return f"eval_{NAMES.get(rest, rest)}" if rest else name
    own = name.removeprefix("train/")
    return "" if own in _TOTALS else NAMES.get(own, own)


def is_held_out(name: str) -> bool:
    """Whether a name, as it is called here, is a number of held-out prompts."""
    return name.startswith("eval_")


def tells_of_a_step(name: str) -> bool:
    """Whether only an optimizer step can have led to a number; times are logged before the first one, too."""
    return not is_held_out(name) and re.split("[/_]", name, maxsplit=1)[0] not in _APART

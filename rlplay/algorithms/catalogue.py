"""Algorithms by name: each is a combination of the axes in `settings.py`, nothing more.

Every preset sets every axis, so that a change of algorithm keeps nothing of the previous one.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlplay.algorithms.distillation_catalogue import DISTILLATION_ALGORITHMS
from rlplay.algorithms.pair_losses import IMITATIONS
from rlplay.algorithms.preference_catalogue import PREFERENCE_ALGORITHMS
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.trace.kinds import SomeSettings

FAMILIES = ("from rewards", "from a teacher", "from pairs", "from examples", "values of moves")


@dataclass(frozen=True)
class Preset:
    """A named algorithm: its axes, its paper, and what it changes compared with the preset `after`.

    `differs` says in a sentence where the axes, or a setting that they do not set, differ from the paper.
    """

    name: str
    title: str
    paper: str
    after: str | None
    changes: str
    axes: SomeSettings
    differs: str = ""

    @property
    def family(self) -> str:
        """What it learns from, a word of `FAMILIES`."""
        loss = self.axes["loss_type"]
        if loss == "policy_gradient":
            return "from a teacher" if self.axes["distillation_weight"] else "from rewards"
        return "from examples" if loss in IMITATIONS else "values of moves" if loss in VALUE_LOSSES else "from pairs"

    @property
    def explained(self) -> str:
        """What it changes, and where it differs from the paper."""
        return f"{self.changes} {self.differs}".rstrip()


_NEUTRAL: SomeSettings = {
    "dynamic_sampling": False,
    "reward_stream": "outcome",
    "multi_objective_aggregation": "sum_then_normalize",
    "overlong_buffer": 0,
    "pass_at_k": 1,
    "returns": "broadcast",
    "baseline": "none",
    "scale_rewards": "none",
    "importance_sampling_level": "token",
    "surrogate": "ppo",
    "epsilon": 0.2,
    "epsilon_high": None,
    "delta": None,
    "kl_placement": "none",
    "kl_estimator": "k3",
    "kl_anchor": "ref",
    "beta": 0.0,
    "kl_ctrl": "fixed",
    "aggregation": "token_mean",
    "mask_truncated_completions": False,
    "top_entropy_quantile": 1.0,
    "off_policy_mask_threshold": None,
    "importance_sampling_mode": "none",
    "importance_sampling_clip_max": 3.0,
    "importance_sampling_clip_min": None,
    "rollout_rs": "none",
    "old_logprobs_of": "trainer",
    "entropy_coef": 0.0,
    "use_adaptive_entropy": False,
    "clip_cov_ratio": 0.0,
    "kl_cov_ratio": 1.0,
    "distillation_weight": 0.0,
    "distillation_mode": "full_logits",
    "distillation_alpha": 1.0,
    "distillation_is_clip": None,
    "iw_opd_gamma": 0.0,
    "teacher_model_kind": "base",
    "teacher_context": "none",
    "sync_ref_model": False,
    "num_iterations": 1,
    "num_minibatches": 1,
    "loss_type": "policy_gradient",
    "loss_weights": {},
    "answers_of": "start",
    "label_smoothing": 0.0,
    "f_divergence_type": "reverse_kl",
    "ld_alpha": None,
    "use_weighting": False,
    "cpo_alpha": 1.0,
    "alpha": 0.0,
}
"""Every axis that a preset sets, at its neutral value."""
AXES = tuple(_NEUTRAL)

_PLAIN = _NEUTRAL | {"returns": "to_go", "surrogate": "logp", "aggregation": "seq_mean_token_sum"}
_CRITIC = _NEUTRAL | {"returns": "gae", "baseline": "value"}
_CLIPPED = _CRITIC | {"scale_rewards": "whiten", "num_iterations": 4, "num_minibatches": 2}
_GROUP = _NEUTRAL | {"baseline": "group_mean", "scale_rewards": "group"}
_BY_ANSWER = {"aggregation": "seq_mean_token_mean"}
_TWO_STEPS = {"num_minibatches": 2}
_STEPS = (
    "The step size α is learning_rate, whose default suits Adam: set it to about 0.1. The policy that plays is that of "
    "the update's beginning; in the book it follows every step."
)
_NO_KL = "By default β is 0, as in TRL; in the paper it is 0.04."

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "reinforce", "REINFORCE", "Williams 1992, doi:10.1007/BF00992696", None,
            "Moves the log-probability of every token in proportion to the reward that follows it.",
            _PLAIN,
        ),
        Preset(
            "reinforce-baseline", "REINFORCE with baseline", "Williams 1992, doi:10.1007/BF00992696", "reinforce",
            "Subtracts the batch's mean return, so that below-average answers are pushed down.",
            _PLAIN | {"baseline": "batch_mean"},
        ),
        Preset(
            "remax", "ReMax", "Li et al. 2023, arXiv:2310.10505", "reinforce-baseline",
            "Compares each answer with the greedy answer to the same prompt, not with the batch.",
            _PLAIN | {"returns": "broadcast", "baseline": "greedy"},
        ),
        Preset(
            "opo", "OPO", "Hao et al. 2025, arXiv:2505.23585", "reinforce-baseline",
            "Compares an answer with its group's mean reward weighted by length, which aims at the least variance.",
            _PLAIN | {"returns": "broadcast", "baseline": "length_weighted"},
        ),
        Preset(
            "a2c", "A2C", "Mnih et al. 2016, arXiv:1602.01783", "reinforce-baseline",
            "Learns what to expect: a value head judges every token, so credit need not rest on the outcome alone.",
            _CRITIC | {"surrogate": "logp"},
        ),
        Preset(
            "trpo", "TRPO", "Schulman et al. 2015, arXiv:1502.05477", "a2c",
            "Takes one long step along the natural gradient, as far as a limit on the KL to the old policy allows.",
            _CRITIC | {"surrogate": "trpo", "kl_placement": "constraint", "kl_anchor": "old"},
        ),
        Preset(
            "ppo-penalty", "PPO with KL penalty", "Schulman et al. 2017, arXiv:1707.06347, section 4", "a2c",
            "Takes several steps on each batch, with a KL penalty to the old policy whose weight adapts.",
            _CLIPPED | {"surrogate": "ratio", "kl_placement": "loss", "kl_anchor": "old", "beta": 1.0,
                        "kl_ctrl": "ppo"},
            "By default target_kl is 0.1; the paper's targets are 0.003 to 0.03.",
        ),
        Preset(
            "ppo", "PPO-clip", "Schulman et al. 2017, arXiv:1707.06347", "ppo-penalty",
            "Takes several steps on each batch. A token stops pulling once its ratio has left 1 ± ε in the direction "
            "that its advantage pushes.",
            _CLIPPED,
        ),
        Preset(
            "vineppo", "VinePPO", "Kazemnejad et al. 2024, arXiv:2410.01679", "ppo",
            "Needs no value head: answers sampled from before and after a reasoning step, or a turn, show its worth.",
            _CLIPPED | {"returns": "vine", "baseline": "none", "scale_rewards": "none"},
        ),
        Preset(
            "rlhf-ppo", "PPO for RLHF", "Ziegler et al. 2019, arXiv:1909.08593", "ppo",
            "PPO-clip, with the KL to the reference subtracted from each token's reward.",
            _CLIPPED | {"kl_placement": "reward", "kl_estimator": "k1", "beta": 0.05},
            "By default β stays 0.05; the paper's adapts to a KL target (kl_ctrl=ziegler).",
        ),
        Preset(
            "rloo", "RLOO", "Ahmadian et al. 2024, arXiv:2402.14740", "rlhf-ppo",
            "Takes the whole answer as one action and compares it with the mean of its siblings; needs no value head.",
            _NEUTRAL | _BY_ANSWER | {"baseline": "leave_one_out", "importance_sampling_level": "sequence_sum",
                                     "kl_placement": "reward", "kl_estimator": "k1", "beta": 0.05},
        ),
        Preset(
            "reinforce++", "REINFORCE++", "Hu et al. 2025, arXiv:2501.03262", "rlhf-ppo",
            "PPO without a critic: the KL is subtracted from the reward, and returns are whitened over the batch.",
            _NEUTRAL | _TWO_STEPS | {"returns": "to_go", "scale_rewards": "whiten", "kl_placement": "reward",
                                     "kl_estimator": "k1", "beta": 0.01},
        ),
        Preset(
            "grpo", "GRPO", "Shao et al. 2024, arXiv:2402.03300", "ppo",
            "Needs no value head: the answers to one prompt are compared with each other.",
            _GROUP | _BY_ANSWER | {"kl_placement": "loss"},
            _NO_KL,
        ),
        Preset(
            "grpo-process", "GRPO with process rewards", "Shao et al. 2024, arXiv:2402.03300, section 4.1.3", "grpo",
            "Rewards each reasoning step: a token's advantage is the sum of the normalised scores from its step on.",
            _NEUTRAL | _BY_ANSWER | {"reward_stream": "process_normalized", "returns": "to_go",
                                     "kl_placement": "loss"},
            _NO_KL,
        ),
        Preset(
            "dr-grpo", "Dr. GRPO", "Liu et al. 2025, arXiv:2503.20783", "grpo",
            "GRPO without its two biases: it divides neither by the group's std nor by the answer's length.",
            _GROUP | {"scale_rewards": "none", "aggregation": "constant"},
        ),
        Preset(
            "maxrl", "MaxRL", "Tajwar et al. 2026, arXiv:2602.02710", "dr-grpo",
            "Divides an advantage by the group's mean reward, so a rare success weighs more: the more answers a group "
            "has, the nearer its gradient is to that of the log-likelihood of a right answer.",
            _GROUP | {"scale_rewards": "mean", "aggregation": "constant"},
        ),
        Preset(
            "pass-at-k", "Pass@k training", "Chen et al. 2025, arXiv:2508.10751", "grpo",
            "Pays an answer for the best of k answers that include it, so a prompt that is mostly solved teaches less.",
            _GROUP | {"pass_at_k": 2, "scale_rewards": "pass_rate"},
        ),
        Preset(
            "grpo-passk", "GRPO for pass@k", "Tang et al. 2025, arXiv:2503.19595", "pass-at-k",
            "Only the single best answer of a group has an advantage: what it is ahead of the second best.",
            _GROUP | {"baseline": "best_other"},
        ),
        Preset(
            "dapo", "DAPO", "Yu et al. 2025, arXiv:2503.14476", "grpo",
            "Raises the upper clip, replaces groups without signal, weights all tokens equally and penalises overlong "
            "answers.",
            _GROUP | _TWO_STEPS | {"epsilon_high": 0.28, "dynamic_sampling": True, "overlong_buffer": 8},
        ),
        Preset(
            "clip-cov", "Clip-Cov", "Cui et al. 2025, arXiv:2505.22617", "dapo",
            "Leaves a few tokens out of each step, drawn from those whose advantage and log-probability lie far on the "
            "same side of their means: what pulls on these lowers the entropy.",
            _GROUP | _TWO_STEPS | {"clip_cov_ratio": 2e-4},
        ),
        Preset(
            "kl-cov", "KL-Cov", "Cui et al. 2025, arXiv:2505.22617", "clip-cov",
            "Without a clip: the few tokens that lower the entropy most are held near the probability that they were "
            "sampled with.",
            _GROUP | _TWO_STEPS | {"surrogate": "ratio", "kl_placement": "loss", "kl_anchor": "old",
                                   "kl_estimator": "abs", "beta": 1.0, "kl_cov_ratio": 2e-4},
        ),
        Preset(
            "gspo", "GSPO", "Zheng et al. 2025, arXiv:2507.18071", "grpo",
            "One ratio for the whole answer, the geometric mean of its tokens' ratios: the answer is rewarded as a "
            "whole, so it is clipped as a whole.",
            _GROUP | _BY_ANSWER | _TWO_STEPS | {"importance_sampling_level": "sequence", "epsilon": 3e-4,
                                                "epsilon_high": 4e-4},
        ),
        Preset(
            "luspo", "LUSPO", "Liu et al. 2026, arXiv:2602.05261", "gspo",
            "GSPO with an answer's token losses summed instead of averaged, so that long answers count in full.",
            _GROUP | _TWO_STEPS | {"importance_sampling_level": "sequence", "epsilon": 2e-3, "epsilon_high": 2.5e-3,
                                   "aggregation": "seq_mean_token_sum"},
        ),
        Preset(
            "gmpo", "GMPO", "Zhao et al. 2025, arXiv:2507.20673", "grpo",
            "One ratio for the whole answer: the geometric mean of its tokens' clipped ratios.",
            _GROUP | _BY_ANSWER | _TWO_STEPS | {"importance_sampling_level": "geometric", "surrogate": "ratio",
                                                "epsilon": 0.4},
        ),
        Preset(
            "cispo", "CISPO", "MiniMax 2025, arXiv:2506.13585", "grpo",
            "Caps a token's weight instead of cutting its gradient: every token with a nonzero advantage keeps some.",
            _GROUP | _TWO_STEPS | {"surrogate": "cispo", "epsilon_high": 5.0},
        ),
        Preset(
            "sapo", "SAPO", "Gao et al. 2025, arXiv:2511.20347", "grpo",
            "A soft clip: no hard edge; the further a token's ratio is from 1, the more its pull is damped.",
            _GROUP | _BY_ANSWER | _TWO_STEPS | {"surrogate": "sapo"},
        ),
        Preset(
            "vespo", "VESPO", "Shen et al. 2026, arXiv:2602.10693", "cispo",
            "Weights an answer by a smooth function of its whole ratio W; the weight falls to 0 where W is very small "
            "or very large.",
            _GROUP | _TWO_STEPS | {"surrogate": "vespo"},
        ),
        Preset(
            "dppo", "DPPO", "Qi et al. 2026, arXiv:2602.04879", "grpo",
            "A token stops pulling once its probability, not its ratio, has moved by ε: rare tokens may become many "
            "times likelier, likely ones may not fall far.",
            _GROUP | _TWO_STEPS | {"surrogate": "dppo_tv"},
        ),
        Preset(
            "prime-rl", "prime-rl's loss", "Qi et al. 2026, arXiv:2602.04879; Kimi Team 2026, arXiv:2602.02276",
            "dppo",
            "Measures from the sampler instead of the old policy, and keeps near it by half the square of the "
            "log-ratio; advantages are not divided by the std.",
            _GROUP | {"surrogate": "dppo_tv", "scale_rewards": "none", "old_logprobs_of": "sampler",
                      "kl_placement": "loss", "kl_anchor": "old", "kl_estimator": "k2", "beta": 0.002},
        ),
        Preset(
            "tis", "TIS", "Yao et al. 2025, fengyao.notion.site/off-policy-rl", "grpo",
            "Multiplies each token's loss by how many times likelier the policy finds the token than the sampler did, "
            "at most 2. Where the policy itself samples, this is GRPO.",
            _GROUP | _BY_ANSWER | {"importance_sampling_mode": "token_truncate", "importance_sampling_clip_max": 2.0},
        ),
        Preset(
            "icepop", "IcePop", "Ling Team 2025, arXiv:2510.18855", "tis",
            "Leaves out the tokens that policy and sampler disagree about, where TIS cuts their factor.",
            _GROUP | _BY_ANSWER | {"importance_sampling_mode": "token_mask", "importance_sampling_clip_max": 5.0,
                                   "importance_sampling_clip_min": 0.5},
        ),
        Preset(
            "mis", "MIS", "Liu et al. 2025, richardli.xyz/rl-collapse", "tis",
            "Takes the factor of the whole answer, and leaves out answers whose factor is above 2.",
            _GROUP | _BY_ANSWER | {"importance_sampling_mode": "sequence_mask", "importance_sampling_clip_max": 2.0},
        ),
        Preset(
            "lite-ppo", "Lite PPO", "Liu et al. 2025, arXiv:2508.08221", "grpo",
            "GRPO with two changes: the std is taken over the batch, and every token counts the same.",
            _GROUP | {"scale_rewards": "batch"},
        ),
        Preset(
            "gdpo", "GDPO", "Liu et al. 2026, arXiv:2601.05242", "grpo",
            "Normalises each of several rewards in its group before they are added, so that none drowns the others.",
            _NEUTRAL | _BY_ANSWER | {"multi_objective_aggregation": "normalize_then_sum", "baseline": "batch_mean",
                                     "scale_rewards": "batch", "kl_placement": "loss"},
        ),
        Preset(
            "sarsa", "SARSA", "Rummery & Niranjan 1994; Sutton & Barto 2018, section 6.4", None,
            "Learns what each move on each square is worth, in a table Q. A move's value follows its reward plus the "
            "value of the next move that was made, so it counts what exploring costs.",
            _NEUTRAL | {"loss_type": "sarsa", "reward_stream": "process"},
            _STEPS,
        ),
        Preset(
            "q-learning", "Q-learning", "Watkins & Dayan 1992, doi:10.1007/BF00992698; Sutton & Barto 2018, section "
            "6.5", "sarsa",
            "A move's value follows its reward plus the value of the best next move, so it learns about the greedy "
            "policy while another one explores.",
            _NEUTRAL | {"loss_type": "q_learning", "reward_stream": "process"},
            _STEPS,
        ),
        *(
            Preset(name, title, paper, after, changes, _NEUTRAL | axes, differs)
            for name, title, paper, after, changes, axes, differs in (*DISTILLATION_ALGORITHMS, *PREFERENCE_ALGORITHMS)
        ),
    )
}  # fmt: skip

"""Every setting of a run: its type, default, range and meaning. TRL's names where TRL has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from rlplay.algorithms.aggregation import AGGREGATIONS
from rlplay.algorithms.answer_scores import F_DIVERGENCES
from rlplay.algorithms.baselines import BASELINES
from rlplay.algorithms.choice import Choice
from rlplay.algorithms.corrections import CORRECTIONS, REJECTIONS, Correction
from rlplay.algorithms.distillation import MODES, Mode
from rlplay.algorithms.divergences import ESTIMATORS
from rlplay.algorithms.own_choices import names_file, own_choice
from rlplay.algorithms.pair_losses import IMITATIONS
from rlplay.algorithms.ratios import LEVELS, Level
from rlplay.algorithms.returns import RETURNS
from rlplay.algorithms.scales import SCALES
from rlplay.algorithms.schedules import Schedule
from rlplay.algorithms.surrogates import OWN_SURROGATE, SURROGATES, Surrogate
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.trace.kinds import REWARDED, Kind

ReturnsName = Literal["broadcast", "to_go", "vine", "gae"]
BaselineName = Literal[
    "none", "batch_mean", "group_mean", "leave_one_out", "best_other", "length_weighted", "greedy", "value",
]  # fmt: skip
LevelName = Literal["token", "sequence", "sequence_sum", "geometric"]
CorrectionName = Literal[
    "none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask", "geometric_truncate",
    "geometric_mask",
]  # fmt: skip
RejectionName = Literal[
    "none", "token_k1", "token_k2", "token_k3", "seq_sum_k1", "seq_sum_k2", "seq_sum_k3", "seq_mean_k1", "seq_mean_k2",
    "seq_mean_k3", "seq_max_k2", "seq_max_k3",
]  # fmt: skip
EstimatorName = Literal["k1", "k2", "k3", "abs", "full"]
AggregationName = Literal["seq_mean_token_mean", "token_mean", "constant", "seq_mean_token_sum"]
LossType = Literal[
    "policy_gradient", "sigmoid", "sigmoid_norm", "hinge", "ipo", "robust", "exo_pair", "discopop", "nca_pair",
    "bco_pair", "sppo_hard", "apo_zero", "apo_down", "aot", "aot_unpaired", "kto", "apo_zero_unpaired", "simpo", "cpo",
    "cpo_hinge", "cpo_ipo", "orpo", "sft", "dft", "reward", "q_learning", "sarsa",
]  # fmt: skip
Stream = Literal["outcome", "process", "process_normalized", "shaping"]
Objectives = Literal["sum_then_normalize", "normalize_then_sum"]
Placement = Literal["none", "loss", "reward", "constraint"]
Anchor = Literal["ref", "old"]
Controller = Literal["fixed", "ziegler", "ppo"]
Labeller = Literal["gold", "user"]
FDivergence = Literal["reverse_kl", "forward_kl", "js_divergence", "alpha_divergence"]
AnswersOf = Literal["start", "policy"]
Observing = Literal["full", "light"]
SamplerDtype = Literal["same", "bfloat16", "int8"]
LogprobsMode = Literal["raw_logprobs", "processed_logprobs"]
Side = Literal["trainer", "sampler"]
Distillation = Literal["full_logits", "topk_logits", "sampled_token", "advantage"]
TeacherKind = Literal["base", "live", "ema"]
TeacherContext = Literal["none", "dataset", "group"]

ANY_LOSS = (
    "num_generations", "max_completion_length", "temperature", "top_p", "top_k", "min_p",
    "repetition_penalty", "num_iterations",
    "per_device_train_batch_size", "gradient_checkpointing", "learning_rate", "lr_scheduler_type", "warmup_steps",
    "weight_decay", "max_grad_norm",
)  # fmt: skip
"""Options of TRL's trainers that are settings here and mean the same whatever the loss is."""
CHOICES: dict[str, Mapping[str, Choice]] = {
    "returns": RETURNS,
    "baseline": BASELINES,
    "scale_rewards": SCALES,
    "importance_sampling_level": LEVELS,
    "surrogate": SURROGATES,
    "kl_estimator": ESTIMATORS,
    "distillation_mode": MODES,
    "aggregation": AGGREGATIONS,
    "importance_sampling_mode": CORRECTIONS,
    "rollout_rs": REJECTIONS,
    "f_divergence_type": F_DIVERGENCES,
}
"""The settings whose values are rows of this package, each with its computation.

A name is also a word of the Literal, unless the setting takes the user's functions, too.
"""

REWARD_MODEL = "reward_model"
"""The name in `reward_weights` for the score of a reward model from an earlier stage."""


HEAVIEST = 1e6
"""The largest weight of a reward and the largest reward of a square, by their absolute value."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings. `algorithm` names the preset that last set the axes; every axis may differ from it.

    It is "" in the run of another trainer that does not name it.
    """

    algorithm: str = "grpo"
    num_prompts: int = 8
    num_generations: int = 8
    max_completion_length: int = 32
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    sampler_dtype: SamplerDtype = "same"
    sampler_lag: int = 0
    weight_sync_steps: int = 1
    max_staleness: int = 4
    logprobs_mode: LogprobsMode = "raw_logprobs"
    old_logprobs_of: Side = "trainer"
    exploration_rate: float = 0.1
    max_tool_calling_iterations: int | None = None
    dynamic_sampling: bool = False
    retokenize_turns: bool = False
    candidates: int = 10
    observe: Observing = "full"
    reward_weights: dict[str, float] = {}
    squares: dict[str, float | str] = {}
    reward_stream: Stream = "outcome"
    multi_objective_aggregation: Objectives = "sum_then_normalize"
    overlong_buffer: int = 0
    reward_clip_min: float | None = None
    reward_clip_max: float | None = None
    pass_at_k: int = 1
    returns: ReturnsName = "broadcast"
    baseline: BaselineName = "group_mean"
    scale_rewards: str = "group"
    gamma: float = 1.0
    lam: float = 0.95
    vine_samples: int = 9
    importance_sampling_level: LevelName = "token"
    surrogate: str = "ppo"
    epsilon: float = 0.2
    epsilon_high: float | None = None
    delta: float | None = None
    sapo_temperature_pos: float = 1.0
    sapo_temperature_neg: float = 1.05
    dro_beta: float = 1.0
    vespo_k_pos: float = 2.0
    vespo_lambda_pos: float = 3.0
    vespo_k_neg: float = 3.0
    vespo_lambda_neg: float = 2.0
    kl_placement: Placement = "loss"
    kl_estimator: EstimatorName = "k3"
    kl_anchor: Anchor = "ref"
    beta: float = 0.0
    kl_ctrl: Controller = "fixed"
    target_kl: float = 0.1
    kl_horizon: int = 10000
    use_bias_correction_kl: bool = True
    max_kl: float = 0.01
    cg_iterations: int = 10
    cg_damping: float = 0.1
    line_search_steps: int = 10
    distillation_weight: float = 0.0
    distillation_mode: Distillation = "full_logits"
    distillation_alpha: float = 1.0
    distillation_topk: int = 100
    distillation_add_tail: bool = False
    distillation_is_clip: float | None = None
    iw_opd_gamma: float = 0.0
    teacher_model_kind: TeacherKind = "base"
    teacher_update_rate: float = 0.05
    teacher_sync_steps: int = 1
    teacher_context: TeacherContext = "none"
    success_reward_threshold: float = 1.0
    aggregation: AggregationName = "seq_mean_token_mean"
    mask_truncated_completions: bool = False
    top_entropy_quantile: float = 1.0
    off_policy_mask_threshold: float | None = None
    clip_cov_ratio: float = 0.0
    clip_cov_lb: float = 1.0
    clip_cov_ub: float = 5.0
    kl_cov_ratio: float = 1.0
    importance_sampling_mode: CorrectionName = "none"
    importance_sampling_clip_max: float | None = 3.0
    importance_sampling_clip_min: float | None = None
    rollout_rs: RejectionName = "none"
    rollout_rs_threshold: float = 2.0
    entropy_coef: float = 0.0
    use_adaptive_entropy: bool = False
    entropy_coef_min: float = 0.0
    entropy_coef_max: float = 1.0
    entropy_coef_delta: float = 0.005
    entropy_target: float = 0.2
    router_aux_loss_coef: float = 0.0
    sync_ref_model: bool = False
    ref_model_mixup_alpha: float = 0.6
    ref_model_sync_steps: int = 512
    num_iterations: int = 1
    num_minibatches: int = 1
    per_device_train_batch_size: int = 0
    gradient_checkpointing: bool = False
    learning_rate: float = 4e-4
    lr_scheduler_type: Schedule = "constant"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    vf_coef: float = 0.1
    cliprange_value: float = 0.2
    loss_type: LossType = "policy_gradient"
    loss_weights: dict[str, float] = {}
    answers_of: AnswersOf = "start"
    labeller: Labeller = "gold"
    label_noise: float = 0.0
    label_smoothing: float = 0.0
    f_divergence_type: FDivergence = "reverse_kl"
    f_alpha_divergence_coef: float = 0.5
    ld_alpha: float | None = None
    use_weighting: bool = False
    discopop_tau: float = 0.05
    simpo_gamma: float = 0.5
    alpha: float = 0.0
    cpo_alpha: float = 1.0
    desirable_weight: float = 1.0
    undesirable_weight: float = 1.0
    center_rewards_coefficient: float = 0.0

    @property
    def clip_range(self) -> tuple[float, float]:
        """ε and ε_high, the distances of the clip bounds from 1."""
        return self.epsilon, self.epsilon if self.epsilon_high is None else self.epsilon_high

    @property
    def surrogate_row(self) -> Surrogate:
        """The row of the surrogate; for the user's function `OWN_SURROGATE`, without a computation (`row` has one)."""
        return SURROGATES.get(self.surrogate, OWN_SURROGATE)

    @property
    def level_row(self) -> Level:
        """The row of the ratio's level."""
        return LEVELS[self.importance_sampling_level]

    @property
    def correction_row(self) -> Correction:
        """The row of the factor that corrects for the sampler."""
        return CORRECTIONS[self.importance_sampling_mode]

    @property
    def steps(self) -> int:
        """Optimizer steps of an update."""
        return self.num_iterations * self.num_minibatches

    @property
    def ratio_stays_one(self) -> bool:
        """Whether every ratio that an update trains with is 1: it takes one step, from the policy's own log-probs."""
        return self.steps == 1 and self.old_logprobs_of == "trainer"

    @property
    def samples_apart(self) -> bool:
        """Whether a policy gradient's answers come from a sampler that may have other weights than the policy."""
        apart = self.sampler_dtype != "same" or self.sampler_lag > 0 or self.weight_sync_steps != 1
        return apart and self.loss_type == "policy_gradient"

    @property
    def reads_reference(self) -> bool:
        """Whether a policy gradient's reward or loss may read the reference's log-probabilities."""
        return (self.beta > 0 and self.kl_placement in ("loss", "reward")) or names_file("surrogate", self.surrogate)

    @property
    def reads_covariance(self) -> bool:
        """Whether a policy gradient chooses tokens by the covariance of advantage and log-probability."""
        return self.clip_cov_ratio > 0 or self.kl_cov_ratio < 1

    @property
    def entropy_in_loss(self) -> bool:
        """Whether the loss of a policy gradient may have an entropy bonus."""
        return self.entropy_coef != 0 or self.use_adaptive_entropy

    @property
    def mode_row(self) -> Mode:
        """The row of the distillation."""
        return MODES[self.distillation_mode]

    @property
    def distils(self) -> bool:
        """Whether a teacher acts at all."""
        return self.distillation_weight > 0 and self.loss_type == "policy_gradient"

    @property
    def distils_in_loss(self) -> bool:
        """Whether the teacher has a term of its own in the loss; else it acts through the advantages, if at all."""
        return self.distils and self.mode_row.compute is not None

    @property
    def only_distils(self) -> bool:
        """Whether the loss has the teacher's term in place of the surrogate, so that no reward counts."""
        return self.distils_in_loss and self.distillation_weight == 1

    @property
    def kind(self) -> Kind:
        """What an update learns from."""
        if self.loss_type == "policy_gradient":
            return "learned rewards" if self.reward_weights.get(REWARD_MODEL) else "rewards"
        if self.loss_type in VALUE_LOSSES:
            return "action values"
        if self.loss_type in IMITATIONS:
            return "imitation"
        return "reward model" if self.loss_type == "reward" else "pairs"

    @property
    def rewarded(self) -> bool:
        """Whether it learns from rewards; else from answers that are given or compared."""
        return self.kind in REWARDED

    @property
    def axes_known(self) -> bool:
        """Whether the axes are on record; else they have their defaults here, and another trainer made the run."""
        return self.algorithm != ""


UNKNOWN = Settings(algorithm="")
"""The settings of a run that says nothing of them."""


def row(settings: Settings, name: str) -> Any:
    """The row that `settings` choose for `name`: one of `CHOICES`, or one of the user's functions."""
    word = getattr(settings, name)
    return CHOICES[name][word] if word in CHOICES[name] else own_choice(name, word, settings)

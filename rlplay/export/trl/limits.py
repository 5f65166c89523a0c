"""Settings and tasks that no trainer of TRL supports."""

from __future__ import annotations

from collections.abc import Iterator

from rlplay.algorithms.pair_losses import IMITATED, mixture
from rlplay.algorithms.setting_values import written
from rlplay.algorithms.settings import Settings
from rlplay.algorithms.trl_verl import trainer_of
from rlplay.scenario.schema import Scenario
from rlplay.tasks import load_task
from rlplay.user_code import names_function

_ADVANTAGES = (
    {"multi_objective_aggregation": "sum_then_normalize", "baseline": "group_mean"},
    {"multi_objective_aggregation": "normalize_then_sum", "baseline": "batch_mean", "scale_rewards": "batch"},
)
"""How GRPOTrainer computes advantages: its default, and GDPO."""


def unsupported_task(scenario: Scenario) -> str | None:
    """Why TRL's trainers cannot run a scenario with any settings; None if they can."""
    if scenario.world is not None:
        return "world: the environment replies in the middle of an answer, which TRL does not support"
    if scenario.environment:
        return f"environment={scenario.environment}: it replies in the middle of an answer, which TRL does not support"
    if scenario.task and not names_function(scenario.task) and load_task(scenario.task).environment is not None:
        return f"task={scenario.task}: its environment replies in the middle of an answer, which TRL does not support"
    if scenario.use_peft and len(scenario.stages) > 1:
        return (
            "use_peft in a run with stages: a stage of TRL's saves adapters, and the next would put others beside them"
        )
    return None


def unsupported_setting(settings: Settings, tools: bool = False) -> str | None:
    """The setting that TRL does not support, with the reason, in one line; None if it supports all.

    `tools` says whether the model may call some.
    """
    if tools and (found := trainer_of(settings)) is not None and found[0] != "GRPOTrainer":
        return f"tools: TRL's {found[0]} has none; its GRPOTrainer does"
    return next(_unsupported(settings), None)


def _unsupported(s: Settings) -> Iterator[str]:
    found = trainer_of(s)
    if s.loss_type == "policy_gradient":
        yield from _paid(s, found)
    if s.distils:
        weight = written(s.distillation_weight)
        yield f"distillation_weight={weight}: rlplay writes no scripts for TRL's trainers that distil"
    elif found is None:
        yield _without_trainer(s)
    elif s.loss_type == "policy_gradient":
        yield from _corrections(s, found[0])
    elif s.use_weighting and IMITATED in s.loss_weights:
        yield "use_weighting=on with sft in loss_weights: TRL's DPOTrainer raises an error at the two together"
    if found is not None and found[0] in ("CPOTrainer", "GMPOTrainer") and s.router_aux_loss_coef:
        yield f"router_aux_loss_coef={written(s.router_aux_loss_coef)}: TRL's {found[0]} balances no routers"
    if found is not None and found[0] in ("GRPOTrainer", "GMPOTrainer"):
        yield from _advantages(s)
        if found[0] == "GMPOTrainer":
            yield from _gmpo(s)
    items = s.num_prompts * (s.num_generations if s.loss_type == "policy_gradient" else 1)
    if items % s.num_minibatches:
        what = "completions" if s.loss_type == "policy_gradient" else "prompts"
        yield f"num_minibatches={s.num_minibatches}: TRL needs equal steps, and this does not divide {items} {what}"


def _paid(s: Settings, found: tuple[str, str] | None) -> Iterator[str]:
    """The settings with which TRL pays an answer otherwise."""
    for name, off in (("clip_cov_ratio", 0), ("kl_cov_ratio", 1)):
        if getattr(s, name) != off:
            yield f"{name}={written(getattr(s, name))}: TRL chooses no tokens by their covariance"
    if s.pass_at_k > 1:
        yield f"pass_at_k={s.pass_at_k}: TRL pays each answer for itself"
    for name in ("reward_clip_min", "reward_clip_max"):
        if getattr(s, name) is not None and found != ("RLOOTrainer", ""):
            yield f"{name}={written(getattr(s, name))}: of TRL's trainers only RLOO has bounds of the reward"


def _without_trainer(s: Settings) -> str:
    """The setting for which TRL has no trainer."""
    if "sigmoid" in mixture(s):
        return (
            f"label_smoothing={written(s.label_smoothing)}: TRL's DPOTrainer smooths no labels with loss_type=sigmoid"
        )
    if s.loss_type == "orpo":
        return "loss_type=orpo: TRL's ORPOTrainer also imitates the prompts, which rlplay does not"
    if s.baseline == "value":
        return "baseline=value: TRL has no trainer with a value head"
    if s.importance_sampling_level == "geometric":
        only = "surrogate=ratio and aggregation=seq_mean_token_mean"
        return f"importance_sampling_level=geometric: TRL has it in its GMPOTrainer only, with {only}"
    if s.importance_sampling_level == "sequence_sum":
        return "importance_sampling_level=sequence_sum: TRL has it in RLOO only, as the preset is"
    return f"surrogate={s.surrogate} with aggregation={s.aggregation}: TRL has no trainer with this loss"


def _gmpo(s: Settings) -> Iterator[str]:
    """The settings that GMPOTrainer, unlike GRPOTrainer, ignores or uses otherwise."""
    if s.beta and s.kl_placement == "loss" and s.use_bias_correction_kl:
        yield "use_bias_correction_kl=on: TRL's GMPOTrainer takes the KL as it is"
    if s.top_entropy_quantile < 1:
        quantile = written(s.top_entropy_quantile)
        yield f"top_entropy_quantile={quantile}: TRL's GMPOTrainer leaves tokens out of the ratio, not out of the loss"
    for name, off in (("entropy_coef", 0), ("use_adaptive_entropy", False), ("off_policy_mask_threshold", None)):
        if getattr(s, name) != off:
            yield f"{name}={written(getattr(s, name))}: TRL's GMPOTrainer has no such setting"


def _corrections(s: Settings, trainer: str) -> Iterator[str]:
    """What TRL's trainer does not do about a sampler that is not the policy."""
    mode = s.importance_sampling_mode
    if mode != "none" and trainer != "GRPOTrainer":
        yield f"importance_sampling_mode={mode}: TRL's {trainer} does not correct for the sampler"
    if s.correction_row.level == "geometric":
        yield f"importance_sampling_mode={mode}: TRL's GRPOTrainer takes the ratio of tokens or of their product"
    if s.rollout_rs != "none":
        yield f"rollout_rs={s.rollout_rs}: TRL leaves tokens out by importance_sampling_mode only; verl has this"


def _advantages(s: Settings) -> Iterator[str]:
    """The settings with which GRPOTrainer computes other advantages or another KL."""
    for name, only in (("reward_stream", "outcome"), ("returns", "broadcast")):
        if getattr(s, name) != only:
            yield f"{name}={getattr(s, name)}: TRL's GRPOTrainer supports only {only}"
    wanted = _ADVANTAGES[s.multi_objective_aggregation == "normalize_then_sum"]
    for name, only in wanted.items():
        if getattr(s, name) != only:
            yield f"{name}={getattr(s, name)}: TRL's GRPOTrainer supports only {only} here"
    if s.overlong_buffer and s.multi_objective_aggregation == "normalize_then_sum":
        yield f"overlong_buffer={s.overlong_buffer}: TRL would normalise the length penalty together with the rewards"
    if s.scale_rewards not in ("none", "group", "batch"):
        yield f"scale_rewards={s.scale_rewards}: TRL's GRPOTrainer divides by the std of rewards in the group or batch"
    if s.num_generations == 1:
        yield "num_generations=1: TRL's GRPOTrainer compares 2 or more answers"
    if s.beta and (s.kl_placement, s.kl_anchor) == ("reward", "ref"):
        yield "kl_placement=reward: TRL's GRPOTrainer has the KL in its loss"
    if s.beta and s.kl_placement == "loss" and s.kl_anchor == "old":
        yield "kl_anchor=old: TRL's GRPOTrainer takes the KL to the reference"

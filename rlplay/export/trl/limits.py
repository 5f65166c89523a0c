"""What no trainer of TRL's can be told."""

from __future__ import annotations

from collections.abc import Iterator

from rlplay.algorithms.settings import Settings, written
from rlplay.algorithms.trl_verl import trainer_of
from rlplay.scenario.schema import Scenario
from rlplay.tasks import load_task

_ADVANTAGES = (
    {"multi_objective_aggregation": "sum_then_normalize", "baseline": "group_mean"},
    {"multi_objective_aggregation": "normalize_then_sum", "baseline": "batch_mean", "scale_rewards": "batch"},
)
"""What GRPOTrainer compares a reward with: the first, or GDPO's."""


def unplayable(scenario: Scenario) -> str | None:
    """Why TRL's trainers cannot play a scenario, whatever its settings; None if they can."""
    if scenario.task and load_task(scenario.task).environment is not None:
        return f"task={scenario.task}: its environment speaks in the middle of an answer, which TRL is not told"
    return None


def hindrance(settings: Settings) -> str | None:
    """The setting that keeps TRL from training so, with why, in one line; None if there is none."""
    return next(_hindrances(settings), None)


def _hindrances(s: Settings) -> Iterator[str]:
    found = trainer_of(s)
    if found is None:
        yield _without_trainer(s)
    elif found[0] in ("GRPOTrainer", "GMPOTrainer"):
        yield from _advantages(s)
        if found[0] == "GMPOTrainer":
            yield from _gmpo(s)
    items = s.num_prompts * (s.num_generations if s.loss_type == "policy_gradient" else 1)
    if items % s.num_minibatches:
        what = "completions" if s.loss_type == "policy_gradient" else "prompts"
        yield f"num_minibatches={s.num_minibatches}: TRL's steps are equal, and it does not divide {items} {what}"


def _without_trainer(s: Settings) -> str:
    """The setting for which TRL has no trainer."""
    if s.loss_type == "sigmoid":
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
    """What GRPOTrainer's loss reads and GMPOTrainer's does not, or otherwise."""
    if s.beta and s.kl_placement == "loss" and s.use_bias_correction_kl:
        yield "use_bias_correction_kl=on: TRL's GMPOTrainer takes the KL as it is"
    if s.top_entropy_quantile < 1:
        quantile = written(s.top_entropy_quantile)
        yield f"top_entropy_quantile={quantile}: TRL's GMPOTrainer leaves tokens out of the ratio, not out of the loss"
    for name, off in (("entropy_coef", 0), ("off_policy_mask_threshold", None)):
        if getattr(s, name) != off:
            yield f"{name}={written(getattr(s, name))}: TRL's GMPOTrainer does not know it"


def _advantages(s: Settings) -> Iterator[str]:
    """GRPOTrainer has the loss; whether it computes such advantages and takes the KL there."""
    for name, only in (("reward_stream", "outcome"), ("returns", "broadcast")):
        if getattr(s, name) != only:
            yield f"{name}={getattr(s, name)}: TRL's GRPOTrainer knows {only} alone"
    wanted = _ADVANTAGES[s.multi_objective_aggregation == "normalize_then_sum"]
    for name, only in wanted.items():
        if getattr(s, name) != only:
            yield f"{name}={getattr(s, name)}: TRL's GRPOTrainer knows {only} alone here"
    if s.overlong_buffer and s.multi_objective_aggregation == "normalize_then_sum":
        yield f"overlong_buffer={s.overlong_buffer}: TRL would normalise what long answers pay with the rewards"
    if s.scale_rewards == "whiten":
        yield "scale_rewards=whiten: TRL's GRPOTrainer divides by the spread of rewards, of group or batch"
    if s.num_generations == 1:
        yield "num_generations=1: TRL's GRPOTrainer compares 2 or more"
    if s.beta and (s.kl_placement, s.kl_anchor) == ("reward", "ref"):
        yield "kl_placement=reward: TRL's GRPOTrainer has the KL in its loss"
    if s.beta and s.kl_placement == "loss" and s.kl_anchor == "old":
        yield "kl_anchor=old: TRL's GRPOTrainer takes the KL to the reference"

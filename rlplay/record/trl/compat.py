"""Every name of TRL, transformers and torch that is not documented and that the recorder uses: TRL 1.16.0,
transformers 5.4 to 5.24, torch 2.6 and newer.

If a release drops one, training and recording go on; one line says which name of TRL is gone and which numbers are
missing. `tests/record/test_compat.py` has one case for each, which fails by that name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

SAMPLERS = ("GRPOTrainer", "RLOOTrainer")
ALL = (*SAMPLERS, "DPOTrainer", "KTOTrainer", "SFTTrainer", "RewardTrainer")


@dataclass(frozen=True)
class Name:
    """A name, the trainers of TRL 1.16.0 that have it, how it is used, and what is missing without it."""

    name: str
    trainers: tuple[str, ...]
    use: str
    missing: str


GENERATE = Name(
    "_generate_and_score_completions", SAMPLERS,
    "wrapped: its result holds the answers, their advantages and log-probabilities",
    "answers, rewards, advantages and all numbers of tokens",
)  # fmt: skip
SCORE = Name(
    "_get_per_token_logps_and_entropies", SAMPLERS,
    "wrapped: its result is what the loss is computed from",
    "log-probabilities before each optimizer step, entropies, ratios and derivatives",
)  # fmt: skip
LOGS = Name(
    "_logs", SAMPLERS,
    "read: `rewards` by function, and the columns that reward functions log, in `extra`",
    "rewards",
)  # fmt: skip
METRICS = Name(
    "_metrics", ALL,
    "read: what was measured since the last log, by `train` and name",
    "the metrics of each optimizer step; those that TRL logs are recorded",
)  # fmt: skip
BUFFER = Name(
    "_buffered_inputs", SAMPLERS,
    "read: the micro-batches of a sampling; the recorder's tensor is taken out of them after training",
    "nothing, but a tensor named rlplay_row stays in the last batch",
)  # fmt: skip
EPOCH = Name(
    "_run_epoch", ALL,
    "wrapped, without touching its result: to take away all hooks if training raises",
    "nothing, but hooks stay on a trainer whose training raises",
)  # fmt: skip
FINALIZE = Name(
    "_finalize_training", ALL,
    "wrapped, for the same reason",
    "nothing, but hooks stay on a trainer whose training raises at its end",
)  # fmt: skip
NAMES = (GENERATE, SCORE, LOGS, METRICS, BUFFER, EPOCH, FINALIZE)
CALCULATE = ("_calculate_rewards", "_calculate_rewards_from_functions")
"""Methods of trainers that rlplay does not know, such as SDPOTrainer, A2POTrainer and OnlineDPOTrainer: their arguments
`prompts`, `completions` and `completion_ids_list`, and the rewards that they return. Wrapped where they exist."""

_LOSS = ("compute_loss", "_compute_loss", "training_step", "_prepare_inputs", "get_batch_samples")
_SAMPLED = (
    *_LOSS, "_get_per_token_logps_and_entropies", "get_high_entropy_mask", "get_off_policy_mask", "get_gamma_weights",
    "_generate_and_score_completions",
)  # fmt: skip
_COMPARED = (*_LOSS, "compute_ref_log_probs", "_compute_kl_logps")
METHODS: dict[str, tuple[str, ...]] = {
    "GRPOTrainer": _SAMPLED, "RLOOTrainer": _SAMPLED, "DPOTrainer": _COMPARED, "KTOTrainer": _COMPARED,
    "SFTTrainer": _LOSS, "RewardTrainer": _LOSS,
}  # fmt: skip
"""The trainers whose losses rlplay has, each with the methods that make its loss and its advantages."""


def gone(trainer: Any, kind: str) -> list[Name]:
    """The names that this trainer, a `kind` of TRL, should have and has not."""
    return [each for each in NAMES if kind in each.trainers and not hasattr(trainer, each.name)]


def metrics(trainer: Any) -> Mapping[str, list[float]]:
    """What was measured in the training steps since the last log; without what is no number, such as a rate's pair."""
    found: Mapping[str, list[Any]] = getattr(trainer, METRICS.name, {}).get("train", {})
    return {name: each for name, each in found.items() if all(isinstance(value, int | float) for value in each)}


def logged(trainer: Any, kind: str) -> Mapping[str, Sequence[Any]]:
    """The newest rewards (kind "rewards") or logged columns ("extra") of all processes, by name; the oldest first."""
    found: Mapping[str, Sequence[Any]] = getattr(trainer, LOGS.name, {}).get(kind, {})
    return found


def buffered(trainer: Any) -> Sequence[dict[str, Any]]:
    """The micro-batches that the trainer keeps for later steps."""
    return getattr(trainer, BUFFER.name, None) or []


def compiled(model: Any) -> bool:
    """Whether torch has compiled the model's forward pass; if a release does not say, hooks run inside of it."""
    return getattr(model, "_compiled_call_impl", None) is not None


def log_rates(scheduler: Any, rates: list[float]) -> None:
    """Let TRL log these learning rates, which torch's schedule would say only after its next step."""
    scheduler._last_lr = rates


def exact_forward(trainer: Any, model: Any) -> Callable[..., Any]:
    """The model's forward pass in the precision of its weights: without accelerate's autocast around it."""
    forward, kind = getattr(model, "_original_forward", model.forward), trainer.accelerator.device.type

    def passed(**options: Any) -> Any:
        with torch.autocast(kind, enabled=False):
            return forward(**options)

    return passed


def scoring(trainer: Any) -> Callable[..., Any]:
    """How a trainer that samples computes log-probabilities, without what is wrapped around it."""
    found: Callable[..., Any] = getattr(type(trainer), SCORE.name).__get__(trainer)
    return found

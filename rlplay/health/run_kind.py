"""What a run learns from, as far as its settings, its trainer's name or its metrics say."""

from __future__ import annotations

from collections.abc import Collection, Container
from typing import Literal

from rlplay.algorithms.pair_losses import PAIR_LOSSES
from rlplay.algorithms.settings import Settings

RunKind = Literal["rewards", "action values", "pairs", "kto", "imitation", "reward model", "distillation"]
"""Rewards (by rule or by a reward model); Q-learning or SARSA; a loss of pairs, such as DPO; KTO's of single answers;
fine-tuning on given answers; training a reward model; imitating a teacher's distributions."""

REWARDS: frozenset[RunKind] = frozenset({"rewards"})
REWARDED: frozenset[RunKind] = frozenset({"rewards", "action values"})
PAIRS: frozenset[RunKind] = frozenset({"pairs"})
COMPARED: frozenset[RunKind] = frozenset({"pairs", "kto"})
GIVEN: frozenset[RunKind] = frozenset({"pairs", "kto", "imitation", "reward model"})
"""Learns from answers that are given, none that the policy samples."""
ALL: frozenset[RunKind] = REWARDED | GIVEN | {"distillation"}

_TRAINERS: tuple[tuple[str, RunKind], ...] = (
    ("KTO", "kto"), ("BCO", "kto"), ("DPO", "pairs"), ("CPO", "pairs"), ("ORPO", "pairs"), ("SimPO", "pairs"),
    ("Distill", "distillation"), ("GKD", "distillation"), ("GOLD", "distillation"), ("MiniLLM", "distillation"),
    ("SFT", "imitation"), ("RewardTrainer", "reward model"),
)  # fmt: skip
"""What the names of trainers hold; the first that fits counts."""
_METRICS: tuple[tuple[frozenset[str], RunKind], ...] = (
    (frozenset({"reward"}), "rewards"), (frozenset({"rewards/accuracies"}), "pairs"),
    (frozenset({"kto/kl"}), "kto"), (frozenset({"count/chosen"}), "kto"),
    (frozenset({"rewards/chosen", "kl"}), "kto"), (frozenset({"rewards/chosen"}), "pairs"),
    (frozenset({"mean_token_accuracy"}), "imitation"), (frozenset({"accuracy", "margin"}), "reward model"),
    (frozenset({"completions/mean_length", "loss"}), "distillation"),
)  # fmt: skip
"""Metrics that only such a run has, all of them together; the first that are there count."""
_OF_REWARDS = ("reward", "clip_ratio", "advantage")
"""What names of metrics hold where a run learns from rewards."""


def kind_of(settings: Settings, on_record: Container[str], source: str, metrics: Collection[str]) -> RunKind:
    """What a run learns from; "rewards" where nothing says otherwise.

    Losses alone, of training and of held-out data, are those of fine-tuning.
    """
    if "loss_type" in on_record:
        if settings.loss_type in PAIR_LOSSES and PAIR_LOSSES[settings.loss_type].alone:
            return "kto"
        return "rewards" if settings.kind == "learned rewards" else settings.kind
    names = set(metrics)
    said = [kind for word, kind in _TRAINERS if word in source]
    said += [kind for them, kind in _METRICS if them <= names]
    if not said and "eval_loss" in names and not any(word in name for name in names for word in _OF_REWARDS):
        return "imitation"
    return said[0] if said else "rewards"

"""Which trainer of TRL a trainer is, and whether its loss is that trainer's own."""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass
from typing import Any

_LOSS = ("compute_loss", "_compute_loss", "training_step")
_SAMPLED = (
    *_LOSS, "_get_per_token_logps_and_entropies", "get_high_entropy_mask", "get_off_policy_mask", "get_gamma_weights",
    "_generate_and_score_completions",
)  # fmt: skip
_COMPARED = (*_LOSS, "compute_ref_log_probs", "_compute_kl_logps")
_METHODS: dict[str, tuple[str, ...]] = {
    "GRPOTrainer": _SAMPLED, "RLOOTrainer": _SAMPLED, "DPOTrainer": _COMPARED, "KTOTrainer": _COMPARED,
    "SFTTrainer": _LOSS, "RewardTrainer": _LOSS,
}  # fmt: skip
"""The trainers whose losses rlplay has, each with the methods that make its loss and its advantages."""
_RENAMED = re.compile(r"^_?Unsloth")
"""What unsloth puts before the names of its trainers, which are copies of TRL's."""


@dataclass(frozen=True)
class Known:
    """A trainer: its class, the kind of TRL that it is, "" for any other, and whether its loss is that kind's."""

    name: str
    kind: str
    same_loss: bool


def known(trainer: Any) -> Known:
    """What is known of a trainer by its classes; an override of a method that makes the loss makes it another loss."""
    classes = type(trainer).__mro__
    names = [_RENAMED.sub("", cls.__name__) for cls in classes]
    kind = next((name for name in names if name in _METHODS), "")
    return Known(type(trainer).__name__, kind, bool(kind) and _same_loss(trainer, kind))


def _same_loss(trainer: Any, kind: str) -> bool:
    original = getattr(importlib.import_module("trl"), kind)
    if not isinstance(trainer, original) or callable(getattr(trainer, "compute_loss_func", None)):
        return False
    return all(_method(trainer, name) is _method(original, name) for name in _METHODS[kind])


def _method(owner: Any, name: str) -> Any:
    """The function behind a method, without what wraps it; None if there is none."""
    found = getattr(owner, name, None)
    return None if found is None else getattr(inspect.unwrap(found), "__func__", inspect.unwrap(found))

"""The log-probability that a target asks for, by the policy as it is."""

from __future__ import annotations

import torch
from torch import Tensor

from rlplay.algorithms.settings import Settings
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.engine.log_softmax import widened
from rlplay.engine.model import LanguageModel
from rlplay.trace.targets import check_target as check_ids
from rlplay.trace.teachers import Target


def check_target(target: Target, lm: LanguageModel) -> None:
    """Raises ValueError, one line, if the model has no probability for what the target names."""
    readable = int(lm.policy.get_input_embeddings().weight.shape[0])  # more than it can write, in a world
    check_ids(target, readable, lm.vocabulary, lm.context)


def temperature_of(settings: Settings) -> float:
    """The temperature at which an update's log-probabilities are on record: given answers are read at 1."""
    return settings.temperature if settings.loss_type in ("policy_gradient", *VALUE_LOSSES) else 1.0


def target_value(target: Target, lm: LanguageModel, temperature: float) -> Tensor:
    """q = Σ log π(answer_ids[p] | what is before it) over the target's places, a scalar in float64.

    It carries a gradient to the policy's weights where gradients are enabled. `check_target` has let the target pass.
    """
    first, last = target.places[0], target.places[-1]
    ids = torch.tensor([target.prompt_ids + target.answer_ids[:last]], device=lm.device)
    out = lm.policy(input_ids=ids, use_cache=False, logits_to_keep=last - first + 1)
    rows = torch.tensor([place - first for place in target.places], device=lm.device)
    logits = out.logits[0, rows]
    own = torch.tensor([target.answer_ids[place] for place in target.places], device=lm.device)
    value: Tensor = (widened(logits) / temperature).log_softmax(-1).gather(-1, own[:, None]).cpu().double().sum()
    return value

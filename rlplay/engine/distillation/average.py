"""A teacher that follows the policy: an exponential moving average of its weights, in float32 where those
are in bfloat16."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rlplay.engine.log_softmax import widened
from rlplay.engine.lora import FrozenAdapters, has_adapters
from rlplay.engine.state import State

TEACHER = "teacher."
"""What the names of its weights begin with in a snapshot."""


def new_average(policy: Any) -> Any:
    """The average as it begins: the policy's weights as they are. Of adapters, these alone."""
    if has_adapters(policy):
        adapters = FrozenAdapters(policy)
        adapters.off = False
        return adapters
    found = copy.deepcopy(policy).requires_grad_(False)
    return found.float() if any(p.dtype == torch.bfloat16 for p in found.parameters()) else found


def weights_of(average: Any) -> dict[str, Tensor]:
    """What it has of its own, by the policy's names."""
    return average.adapters if isinstance(average, FrozenAdapters) else dict(average.named_parameters())


def follow(state: State, steps: int) -> None:
    """Move the average towards the policy, after the run has taken `steps` optimizer steps.

    As in TRL: every `teacher_sync_steps`, by `teacher_update_rate` of the way.
    """
    if state.average is not None and steps % state.settings.teacher_sync_steps == 0:
        _move(state, state.settings.teacher_update_rate)


@torch.no_grad()
def _move(state: State, rate: float) -> None:
    held = weights_of(state.average)
    for name, parameter in state.lm.policy.named_parameters():
        if name in held:
            # The master of a weight in bfloat16 has the steps that its eight bits do not show.
            now = state.optimizer.state.get(parameter, {}).get("master", parameter)
            held[name].lerp_(widened(now.detach()).to(held[name].dtype), rate)


def saved(state: State) -> dict[str, Tensor]:
    """Its weights for a snapshot."""
    if state.average is None:
        return {}
    return {f"{TEACHER}{name}": weight.detach() for name, weight in weights_of(state.average).items()}


@torch.no_grad()
def restore_average(state: State, tensors: Mapping[str, Tensor]) -> None:
    """The average that a snapshot holds, whose policy is restored; none if it holds none."""
    held = {n.removeprefix(TEACHER): each for n, each in tensors.items() if n.startswith(TEACHER)}
    state.average = new_average(state.lm.policy) if held else None
    if held:
        for name, weight in weights_of(state.average).items():
            weight.copy_(held[name])

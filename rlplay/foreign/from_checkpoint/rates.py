"""The learning rate from a checkpoint on: its schedule, where that gives the rates that the trainer logged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import get_args

import msgspec

from rlplay.algorithms.schedules import Schedule, share
from rlplay.algorithms.settings import Settings
from rlplay.foreign.from_checkpoint.checkpoint import Checkpoint

_CLOSE = 1e-6
"""Relative difference of two learning rates that are the same: logs hold all digits."""
_COMPARED = 3
"""Logged rates that a schedule has to give, the last ones: an earlier peak may have been another."""


def scheduled(settings: Settings, named: bool, checkpoint: Checkpoint, update: int) -> Settings | None:
    """`settings` with the schedule that gives the logged rates; None if none of rlplay's does.

    `named` says whether the recording names the schedule. TRL's step `n` has place n − 1 in it.
    """
    if update * settings.steps != checkpoint.step:  # the places of rlplay's steps would be others
        return None
    logged = _logged(checkpoint)
    for word in (settings.lr_scheduler_type,) if named else get_args(Schedule):
        tried = msgspec.structs.replace(settings, lr_scheduler_type=word)
        if (logged or named) and all(same(rate_at(tried, checkpoint, step - 1), rate) for step, rate in logged.items()):
            return tried
    return None


def constant(settings: Settings, rate: float) -> Settings:
    """`settings` with this rate from now on."""
    return msgspec.structs.replace(settings, learning_rate=rate, lr_scheduler_type="constant")


def rate_at(settings: Settings, checkpoint: Checkpoint, place: int) -> float:
    """The rate of the optimizer step with this place, from 0, as rlplay's run takes it."""
    steps = updates(settings, checkpoint) * settings.steps
    return settings.learning_rate * share(settings.lr_scheduler_type, place, steps, settings.warmup_steps)


def updates(settings: Settings, checkpoint: Checkpoint) -> int:
    """The updates that the trainer plans."""
    return math.ceil(checkpoint.planned / settings.steps)


def last_logged(checkpoint: Checkpoint) -> float | None:
    """The last rate that was logged; None if there is none."""
    logged = _logged(checkpoint)
    return logged[max(logged)] if logged else None


def same(one: float, other: float) -> bool:
    """Whether two rates are the same but for rounding."""
    return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=0.0)


def _logged(checkpoint: Checkpoint) -> Mapping[int, float]:
    known = sorted(step for step in checkpoint.rates if step <= checkpoint.step)
    return {step: checkpoint.rates[step] for step in known[-_COMPARED:]}

"""The records of settings that change."""

from __future__ import annotations

import msgspec

from rlplay.algorithms.apply import apply, apply_all, in_order
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.settings import Settings
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.engine.fit import check_settings
from rlplay.engine.own_functions import allow_functions
from rlplay.engine.reward_model import payable, rewards_of
from rlplay.engine.state import State
from rlplay.tasks.own_prompts import check_reward_weights, check_sources
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import Changed
from rlplay.trace.settings_timeline import Point

_TAUGHT = [name for name, knob in KNOBS.items() if knob.group == "distillation"]
"""What is read when the teacher is asked."""


def changes_of(state: State, before: Settings, changes: SomeSettings, point: Point) -> list[Changed]:
    """The records of `changes` to the settings `before`, which hold from `point` on.

    Each is a record of its own, in an order in which every step on the way is allowed. What an update learns from
    changes with the next one; Q-learning and SARSA compute their steps as they give credit, and a teacher is asked
    then, so a change after it waits, too. Raises ValueError, one line, if they are not allowed or do not fit together.
    """
    rewards = list(rewards_of(state))
    steps, wanted = in_order(before, changes), apply_all(before, changes)
    if "reward_weights" in changes:
        check_reward_weights(wanted.reward_weights, payable(state))
    check_sources(state.task, wanted, rewards)
    check_settings(wanted, state.lm, state.plain_world)
    allow_functions(wanted)
    records = list[Changed]()
    for name, value in steps:
        after, (update, phase) = apply(before, name, value), point
        waits = after.loss_type != before.loss_type or (after.loss_type in VALUE_LOSSES and phase == "update")
        waits |= phase == "update" and any(getattr(after, each) != getattr(before, each) for each in _TAUGHT)
        if waits and phase != "sample":
            update, phase = update + 1, "sample"
        records.append(_changed(before, after, name, (update, phase)))
        before = after
    return records


def _changed(before: Settings, after: Settings, name: str, point: Point) -> Changed:
    """The record of a change that holds from `point` on, with what else the setting `name` brought along."""
    old, new = msgspec.structs.asdict(before), msgspec.structs.asdict(after)
    also = {key: value for key, value in new.items() if value != old[key] and key != name}
    update, phase = point
    return Changed(update=update, phase=phase, name=name, value=new[name], previous=old[name], also=also)

"""Which settings held when: those at the start of a run, and the changes since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rlplay.trace.records import Changed, Turn
from rlplay.trace.update import PHASES, Phase

_READ_LAST: dict[str, Phase] = {
    **dict.fromkeys(
        ("num_prompts", "num_generations", "max_completion_length", "temperature", "dynamic_sampling", "candidates"),
        "sample",
    ),
    **dict.fromkeys(("reward_weights", "labeller", "label_noise"), "score"),
    **dict.fromkeys(
        (
            "reward_stream", "multi_objective_aggregation", "overlong_buffer", "returns", "baseline", "scale_rewards",
            "gamma", "lam", "vine_samples",
        ),
        "credit",
    ),
    **dict.fromkeys(("kl_ctrl", "target_kl", "kl_horizon"), "after"),
}  # fmt: skip
"""The last phase of an update that reads a setting; for all others that is "update"."""


def settings_at(
    initial: Mapping[str, Any], changes: Iterable[Turn], update: int, phase: Phase = "update"
) -> dict[str, Any]:
    """The settings in `phase` of update `update`; `initial` are those at the start, `changes` come in order."""
    settings = dict(initial)
    for change in changes:
        if _order(change.update, change.phase) <= _order(update, phase):
            settings |= {**change.also, change.name: change.value} if isinstance(change, Changed) else change.settings
    return settings


def effective_from(change: Changed) -> int:
    """The first update in which a change makes a difference: the next one if this one no longer reads the setting."""
    names = (change.name, *change.also) if change.name != "algorithm" else (*change.also, "learning_rate")
    used = any(PHASES.index(_READ_LAST.get(name, "update")) >= PHASES.index(change.phase) for name in names)
    return change.update if used else change.update + 1


def changes_until(changes: Iterable[Turn], update: int) -> list[Turn]:
    """The changes that remain when the run goes back to the end of `update`."""
    return [change for change in changes if _order(change.update, change.phase) <= _order(update + 1, "sample")]


def _order(update: int, phase: str) -> tuple[int, int]:
    return update, PHASES.index(phase)

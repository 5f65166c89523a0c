"""Which settings hold when along a run: those it began with and every change since, by the phase it holds from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import AnyRecord, Changed, Rewound, SettingsChange, Staged, Started
from rlplay.trace.update import PHASES, Phase

Point = tuple[int, Phase]
"""The beginning of a phase of an update."""

_READ_LAST: dict[str, Phase] = {
    **dict.fromkeys(
        ("num_prompts", "num_generations", "max_completion_length", "temperature", "top_p", "top_k", "min_p",
            "repetition_penalty", "sampler_dtype", "sampler_lag", "weight_sync_steps", "max_staleness",
            "logprobs_mode", "old_logprobs_of", "max_tool_calling_iterations", "dynamic_sampling", "retokenize_turns",
            "candidates",
            "squares", "per_device_train_batch_size", "gradient_checkpointing",),
        "sample",
    ),
    **dict.fromkeys(("reward_weights", "labeller", "label_noise"), "score"),
    **dict.fromkeys(
        (
            "reward_stream", "multi_objective_aggregation", "overlong_buffer", "reward_clip_min", "reward_clip_max",
            "pass_at_k", "returns", "baseline", "scale_rewards", "gamma", "lam", "vine_samples",
        ),
        "credit",
    ),
    **dict.fromkeys(("kl_ctrl", "target_kl", "kl_horizon", "observe"), "after"),
}  # fmt: skip
"""The last phase of an update that reads a setting; for all others that is "update"."""


class SettingsTimeline:
    """The settings that a run has begun with and their `changes`, in the order they were made.

    With the seed it is all that a run needs to be done again.
    """

    def __init__(self, begun: Mapping[str, Any], changes: Iterable[SettingsChange] = ()) -> None:
        self.begun = dict(begun)
        self.changes = list(changes)

    def add(self, record: AnyRecord) -> None:
        """Take any record; those that neither change settings nor undo a change are ignored."""
        match record:
            case Started():
                self.begun = dict(record.settings)
            case Changed() | Staged():
                self.changes.append(record)
            case Rewound():
                self.changes = [change for change in self.changes if part_of(change) <= record.update]
            case _:
                pass

    def at(self, update: int, phase: Phase = "update") -> dict[str, Any]:
        """The settings that hold in a phase of an update."""
        return self._with(change for change in self.changes if not _later(change, (update, phase)))

    def latest(self) -> dict[str, Any]:
        """The settings with every change, those that wait for their phase included."""
        return self._with(self.changes)

    def ever(self) -> Iterator[SomeSettings]:
        """The settings at the start, then those that each change has set."""
        yield self.begun
        for change in self.changes:
            yield {change.name: change.value} | change.also if isinstance(change, Changed) else change.settings

    def after(self, update: int) -> list[SettingsChange]:
        """The changes that are undone when the run goes back to the end of `update`."""
        return [change for change in self.changes if part_of(change) > update]

    def _with(self, changes: Iterable[SettingsChange]) -> dict[str, Any]:
        settings = dict(self.begun)
        for change in changes:
            settings |= {**change.also, change.name: change.value} if isinstance(change, Changed) else change.settings
        return settings


def next_point(point: Point) -> Point:
    """The phase that follows: after "after" comes the next update's "sample"."""
    update, phase = point
    index = PHASES.index(phase) + 1
    return (update, PHASES[index]) if index < len(PHASES) else (update + 1, "sample")


def part_of(change: SettingsChange) -> int:
    """The update whose end has a change in it: going back to that one, or a later one, keeps the change."""
    return change.update - 1 if change.phase == "sample" else change.update


def effective_from(change: Changed) -> int:
    """The first update in which a change makes a difference: the next one if this one no longer reads the setting."""
    names = (change.name, *change.also) if change.name != "algorithm" else (*change.also, "learning_rate")
    used = any(PHASES.index(_READ_LAST.get(name, "update")) >= PHASES.index(change.phase) for name in names)
    return change.update if used else change.update + 1


def _later(change: SettingsChange, point: Point) -> bool:
    return (change.update, PHASES.index(change.phase)) > (point[0], PHASES.index(point[1]))

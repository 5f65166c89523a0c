"""The run as it was after an earlier update, in a second state with weights of its own: the run itself stays as it is.

So a question can be answered at any moment between two steps, also within an update.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from rlplay.algorithms.settings import Settings
from rlplay.engine.loop import train
from rlplay.engine.lora import FrozenAdapters
from rlplay.engine.model import LanguageModel, trainable
from rlplay.engine.phases import ends_phase, point_after
from rlplay.engine.preference_pairs import Unlabelled
from rlplay.engine.replays import Interrupted
from rlplay.engine.sampler import Sampler
from rlplay.engine.snapshots import SnapshotStore, opened_moments
from rlplay.engine.stages import stage_at
from rlplay.engine.state import RunPlan, State, new_optimizer
from rlplay.engine.target_value import temperature_of
from rlplay.engine.value_learning import explore
from rlplay.engine.world_policy import WorldPolicy
from rlplay.trace.records import Finished
from rlplay.trace.runfile import RunReader
from rlplay.trace.settings_timeline import Point
from rlplay.trace.update import Update


@dataclass(frozen=True)
class Past:
    """What the run was, as far as its `run` file and snapshots tell; `done` updates of it are finished."""

    state: State
    plan: RunPlan
    store: SnapshotStore
    run: Path
    done: int
    settings_at: Callable[[Point], Settings]
    interrupted: Callable[[], bool]

    def go_on(self) -> None:
        """Raises ValueError, one line, if something else is to be done."""
        if self.interrupted():
            raise Interrupted

    def recorded(self, update: int) -> Update:
        """What is on record of an update, with its answers. Raises ValueError, one line, if they were not kept."""
        if not 1 <= update <= self.done:
            raise ValueError(f"update {update} is not finished; this run has finished {self.done}")
        with RunReader(self.run) as reader:
            found = reader.load(update)
        if found.sampled is None:
            raise ValueError(f"the answers of update {update} were not kept; choose a newer one")
        return found

    @property
    def temperature(self) -> float:
        """The present one, so that in the course of a run nothing but the weights differs."""
        return temperature_of(self.settings_at((self.done + 1, "sample")))

    def after(self, update: int) -> State:
        """The state after `update`, apart from the run's: from the nearest snapshot, and repeated from there.

        Raises ValueError, one line, if a snapshot is damaged, an update cannot be repeated, or for `go_on`.
        """
        state = _apart(self.state, stage_at(self.plan.stages, update))
        state.settings = self.settings_at((self.store.nearest(update) + 1, "sample"))
        self.store.restore(state, update)
        point: Point = (state.update + 1, "sample")
        state.settings = self.settings_at(point)
        explore(state)
        moments = train(state, self.plan)
        while point[0] <= update:
            moment = next(moments)
            self.go_on()
            if isinstance(moment, Unlabelled):
                raise ValueError(f"update {point[0]} cannot be repeated: its labels were not recorded")
            if ends_phase(moment):
                point = point_after(point, moment)
                state.settings = self.settings_at(point)
            if isinstance(moment, Finished) and (stage := stage_at(self.plan.stages, moment.update)) != state.stage:
                state.cross(stage)
        state.batch = None
        return state


@contextmanager
def moments_after(update: int, past: Past) -> Iterator[Callable[[str], dict[str, Tensor]]]:
    """What the optimizer held of a weight after an update whose weights are at hand, by the optimizer's names, on the
    host.

    Raises ValueError, one line, if the snapshot is damaged.
    """
    state = past.state
    if update in past.store.kept():
        with opened_moments(past.store.path(update)) as held:
            yield held
    elif update == state.update:
        yield lambda name: {k: v.cpu() for k, v in state.optimizer.state.get(state.parameters[name], {}).items()}
    else:
        yield lambda _name: {}


def _apart(state: State, stage: int) -> State:
    """A second state with weights of its own, to restore a state of a `stage` into; what never changes is shared."""
    lm = state.lm
    policy, head = copy.deepcopy(lm.policy), copy.deepcopy(state.value_head)
    reference = _reference(lm, policy, stage != state.stage or lm.began is not None)
    own = replace(lm, policy=policy, reference=reference, fixed_steps={}, remarks=[])
    parameters, teaching = trainable(own, head), state.teaching
    if teaching.begun:  # its teacher is a policy of the run's past, too
        assert teaching.model is not None
        teaching = replace(teaching, model=replace(teaching.model, policy=copy.deepcopy(teaching.model.policy)))
    return replace(
        state, lm=own, teaching=teaching, value_head=head, parameters=parameters,
        optimizer=new_optimizer(parameters, state.settings), batch=None, reward_model=None, choices={**state.choices},
        sampler=Sampler(),
    )  # fmt: skip


def _reference(lm: LanguageModel, policy: Any, changes: bool) -> Any:
    """The reference beside a copy of the policy; it is the run's own, unless it `changes`."""
    if isinstance(lm.reference, FrozenAdapters):
        return lm.reference.beside(policy)
    # A world's policies are told how they explore.
    return copy.deepcopy(lm.reference) if changes or isinstance(policy, WorldPolicy) else lm.reference

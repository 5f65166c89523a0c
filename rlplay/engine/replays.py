"""Going back in a run to take updates once more, for an answer that changes nothing of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from rlplay.algorithms.settings import Settings
from rlplay.engine.batch import Batch
from rlplay.engine.credit_phase import credit
from rlplay.engine.loop import Moment
from rlplay.engine.optimize import optimize
from rlplay.engine.policy_gradient import gradients
from rlplay.engine.snapshots import SnapshotStore
from rlplay.engine.state import RunPlan, State
from rlplay.engine.update_end import UpdateEnd
from rlplay.engine.value_learning import explore
from rlplay.trace.records import AnyRecord, Notice, Searched, Stepped
from rlplay.trace.settings_timeline import Point
from rlplay.trace.update import Phase

SettingsOf = Callable[[Phase], Settings]
"""The settings that a phase of an update reads."""
Seen = Callable[[Moment], None]
"""Is told of every moment of a replay, and may end it by raising."""


class Interrupted(ValueError):
    """Something else is to be done first; an answer is given up."""

    def __init__(self) -> None:
        super().__init__("another command came first; ask again")


class Replays:
    """What a question needs of the driver to take updates once more."""

    _state: State
    _plan: RunPlan
    _store: SnapshotStore
    _last_end: UpdateEnd
    _kept: Batch | None  # of the last finished update, unless it is large
    _aside: list[AnyRecord] | None = None  # what happens meanwhile, while nothing of it is the run's

    @property
    @abstractmethod
    def _done(self) -> int: ...

    @property
    @abstractmethod
    def _at_border(self) -> bool: ...

    @abstractmethod
    def _settings_at(self, point: Point) -> Settings: ...

    @abstractmethod
    def _go_to(self, update: int, seen: Seen = ...) -> None: ...

    @abstractmethod
    def _repeat(self, update: int, seen: Seen = ...) -> None: ...

    def _check_border(self) -> None:
        """Raises ValueError, one line, if an update is under way, which going back would give up."""
        if not self._at_border:
            raise ValueError("an update is under way: finish it, then ask")

    @contextmanager
    def _back_afterwards(self) -> Iterator[None]:
        """Whatever happens within, the run is then at the end of the last update, with the weights that it had.

        They are read from a snapshot: an update that is repeated may lead elsewhere, as on a GPU, or fail, as with a
        reward function that needs a network.
        """
        self._last_end.close()
        update, state, kept = self._done, self._state, self._kept
        batch, seen = state.batch, (state.task, state.world, state.painted)
        with self._store.holding(state):
            self._aside = []
            try:
                try:
                    yield
                finally:
                    self._go_to(update)
            finally:
                self._aside, self._kept = None, kept
                state.batch, (state.task, state.world, state.painted) = batch, seen

    def _rewarded(self, update: int) -> bool:
        """Whether an update learned from rewards, by a policy gradient."""
        return self._settings_at((update, "update")).loss_type == "policy_gradient"

    def _batch_of(self, update: int) -> Batch | None:
        """The rewarded answers of `update`, if that is the last finished one and they are at hand."""
        if update != self._done or not self._rewarded(update):
            return None
        return next((each for each in (self._state.batch, self._kept) if each and each.update == update), None)


def unseen(_moment: Moment) -> None:
    """Let a replay go on."""


def stops_if(interrupted: Callable[[], bool]) -> Seen:
    """Raises `Interrupted` at the next moment of a replay if something else is to be done."""

    def seen(_moment: Moment) -> None:
        if interrupted():
            raise Interrupted

    return seen


def as_scored(batch: Batch) -> Batch:
    """A batch as it was sampled and scored, without what was learned from it."""
    return replace(
        batch, advantages=None, returns=None, values=None, ref_logprobs=None, exact_kl=None, anchor=None, passes=None,
        teacher_logprobs=None, teacher_tokens=None, taught=None, step_metrics=[], withheld=None,
    )  # fmt: skip


def learned_again(
    state: State, batch: Batch, settings_of: SettingsOf, seed: int
) -> Iterator[Stepped | Searched | Notice]:
    """Credit and optimizer steps of a batch `as_scored`, as `loop.learn_from_rewards` takes them; `state` is before
    them. The weights have moved once all is taken."""
    state.batch = batch
    state.repaint()
    explore(state)
    state.lm.run_as(state.settings)
    state.settings = settings_of("credit")
    credit(batch, state)
    state.settings = settings_of("update")
    every = len(batch.group)
    yield from optimize(batch, every, lambda rows: gradients(batch, rows, state), state, seed)

"""The weights as they were after an update, for questions about them: nothing is restored, nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from rlplay.engine.model import POLICY, VALUE
from rlplay.engine.snapshots import SnapshotStore, opened
from rlplay.engine.state import State


@dataclass(frozen=True)
class WeightsAfter:
    """What is trained, by the names of `State.parameters`; read one at a time, so that a large model need not fit
    into memory once more."""

    update: int
    names: frozenset[str]
    read: Callable[[str], Tensor]
    """A weight as the model has it."""
    read_exact: Callable[[str], Tensor]
    """The same in float32: of a weight in bfloat16 the master that takes the steps, if it has begun to."""

    def policy(self) -> dict[str, Tensor]:
        """The policy's trained weights by their names in it."""
        return {name.removeprefix(POLICY): self.read(name) for name in self.names if name.startswith(POLICY)}


def at_hand(state: State, store: SnapshotStore) -> list[int]:
    """The updates after which the weights are at hand, in order.

    They are in the snapshots. Where there is none, the model's own are those of the last update until the next one's
    first optimizer step, and in the first stage the reference's are those of update 0.
    """
    here = {state.update} if steps_since(state) == 0 else set[int]()
    first = {0} if state.stage == 0 else set[int]()
    return sorted({*store.kept(), *first, *here})


def steps_since(state: State) -> int:
    """Optimizer steps of the next update that have been made already."""
    return 0 if state.batch is None or state.batch.update == state.update else len(state.batch.step_metrics)


@contextmanager
def weights_after(update: int, state: State, store: SnapshotStore) -> Iterator[WeightsAfter]:
    """The weights after an update of `at_hand`. Raises ValueError, one line, if its snapshot is damaged."""
    if update in store.kept():
        with opened(store.path(update)) as (names, read, read_exact):
            yield WeightsAfter(update, frozenset(names), read, read_exact)
    elif update == state.update:
        yield _own(state)
    else:
        yield _first(state)


def _own(state: State) -> WeightsAfter:
    def exact(name: str) -> Tensor:
        parameter = state.parameters[name]
        master: Tensor | None = state.optimizer.state.get(parameter, {}).get("master")
        return parameter.detach().float() if master is None else master

    return WeightsAfter(
        state.update, frozenset(state.parameters), lambda name: state.parameters[name].detach(), exact
    )  # fmt: skip


def _first(state: State) -> WeightsAfter:
    """Before the first update: those that the reference had then, and a value head that answers 0."""
    tensors = {
        f"{POLICY}{name}": weight
        for name, weight in state.lm.start.named_parameters()
        if f"{POLICY}{name}" in state.parameters
    }
    values = (name for name in state.parameters if name.startswith(VALUE))
    tensors |= {name: torch.zeros_like(state.parameters[name]) for name in values}
    return WeightsAfter(0, frozenset(tensors), lambda name: tensors[name].detach(), lambda name: tensors[name].float())

"""The questions about weights before and after an update: what moved, what each layer says, which tokens are near."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rlplay.engine.layer_readings import read_layers
from rlplay.engine.near_tokens import near_tokens
from rlplay.engine.snapshots import SnapshotStore
from rlplay.engine.state import State
from rlplay.engine.weights_moved import weigh
from rlplay.trace.questions import AnyWeighed, AnyWeights, Neighbours, ReadLayers, Weigh

__all__ = ["AnyWeights", "about_weights"]


def about_weights(
    question: AnyWeights, state: State, store: SnapshotStore, interrupted: Callable[[], bool]
) -> Iterator[AnyWeighed]:
    """The answers to a question; nothing changes. Raises ValueError, one line, if it cannot be answered."""
    match question:
        case Weigh():
            yield from weigh(question, state, store, interrupted)
        case ReadLayers():
            yield read_layers(question, state, store)
        case Neighbours():
            yield near_tokens(question, state, store)

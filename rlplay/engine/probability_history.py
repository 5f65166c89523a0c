"""How likely a token was, at one place of one answer, in the course of the run: by the weights that are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.func import functional_call

from rlplay.engine.probe import Beginning
from rlplay.engine.snapshots import SnapshotStore
from rlplay.engine.state import State
from rlplay.trace.questions import Recall, Recalled


def recall(question: Recall, state: State, store: SnapshotStore, interrupted: Callable[[], bool]) -> Iterator[Recalled]:
    """A `Recalled` after each update whose weights are at hand, with all before it; the last is `done`.

    Weights come from the snapshots. Where there is none, the policy's own are those of the last update, and in the
    first stage the reference's are those of update 0. The policy is not touched: a forward pass is lent the weights.
    Probabilities are at the present temperature, so that nothing but the weights differs.

    Raises ValueError, one line, if the prefix cannot be asked about or a snapshot is damaged.
    """
    beginning = Beginning.of(question.prefix, state)
    if any(not 0 <= token < state.lm.vocabulary for token in question.token_ids):
        raise ValueError(f"a token id is outside the model's vocabulary of {state.lm.vocabulary}")
    updates: list[int] = []
    rows: list[list[float]] = []
    for update, weights in _weights(question.since, state, store):
        if interrupted():
            break
        updates.append(update)
        rows.append(_probabilities(beginning, question.token_ids, weights, state))
        yield Recalled(question.prefix, question.token_ids, updates=updates[:], probabilities=rows[:])
    yield Recalled(question.prefix, question.token_ids, updates=updates, probabilities=rows, done=True)


def _weights(since: int, state: State, store: SnapshotStore) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """Updates from `since` on, in order, each with the policy's weights after it."""
    kept, lm = store.kept(), state.lm
    first = {0} if state.stage == 0 else set[int]()
    for update in sorted(update for update in {*kept, *first, state.update} if update >= since):
        if update in kept:
            yield update, store.policy(update)
        else:
            yield update, dict((lm.policy if update == state.update else lm.reference).named_parameters())


@torch.no_grad()
def _probabilities(beginning: Beginning, tokens: list[int], weights: dict[str, Tensor], state: State) -> list[float]:
    """Of `tokens`, next after a beginning, under the policy with these weights."""
    lm = state.lm
    lent = {name: weight.to(lm.device) for name, weight in weights.items()}
    ids = torch.tensor([beginning.ids], device=lm.device)
    out = functional_call(lm.policy, lent, (), {"input_ids": ids, "use_cache": False, "logits_to_keep": 1})
    probabilities = (out.logits[0, -1].float() / state.settings.temperature).softmax(-1)
    return [float(share) for share in probabilities[tokens]]

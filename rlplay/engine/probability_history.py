"""How likely a token was, at one place of one answer, in the course of the run: by the weights that are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.func import functional_call

from rlplay.engine.probe import Beginning
from rlplay.engine.snapshots import SnapshotStore
from rlplay.engine.state import State
from rlplay.engine.weights_after import at_hand, weights_after
from rlplay.trace.questions import Recall, Recalled


def recall(question: Recall, state: State, store: SnapshotStore, interrupted: Callable[[], bool]) -> Iterator[Recalled]:
    """A `Recalled` after each update whose weights are at hand, with all before it; the last is `done`.

    Weights are those of `at_hand`. The policy is not touched: a forward pass is lent the weights. Probabilities are at
    the present temperature, so that nothing but the weights differs.

    Raises ValueError, one line, if the prefix cannot be asked about or a snapshot is damaged.
    """
    beginning = Beginning.of(question.prefix, state)
    if any(not 0 <= token < state.lm.vocabulary for token in question.token_ids):
        raise ValueError(f"a token id is outside the model's vocabulary of {state.lm.vocabulary}")
    updates: list[int] = []
    rows: list[list[float]] = []
    for update in at_hand(state, store):
        if update < question.since:
            continue
        if interrupted():
            break
        updates.append(update)
        with weights_after(update, state, store) as weights:
            rows.append(_probabilities(beginning, question.token_ids, weights.policy(), state))
        yield Recalled(question.prefix, question.token_ids, updates=updates[:], probabilities=rows[:])
    yield Recalled(question.prefix, question.token_ids, updates=updates, probabilities=rows, done=True)


@torch.no_grad()
def _probabilities(beginning: Beginning, tokens: list[int], weights: dict[str, Tensor], state: State) -> list[float]:
    """Of `tokens`, next after a beginning, under the policy with these weights."""
    lm = state.lm
    lent = {name: weight.to(lm.device) for name, weight in weights.items()}
    ids = torch.tensor([beginning.ids], device=lm.device)
    out = functional_call(lm.policy, lent, (), {"input_ids": ids, "use_cache": False, "logits_to_keep": 1})
    probabilities = (out.logits[0, -1].float() / state.settings.temperature).softmax(-1)
    return [float(share) for share in probabilities[tokens]]

"""Which tokens a model takes for alike: the nearest by the cosine of their embeddings, before and after an update."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlplay.engine.model import POLICY
from rlplay.engine.snapshots import SnapshotStore
from rlplay.engine.state import State
from rlplay.engine.weights_after import WeightsAfter, weights_after
from rlplay.engine.weights_moved import Weight, last_before, trained_weights
from rlplay.engine.world_policy import WorldPolicy
from rlplay.trace.questions import Neighbours, NeighboursFound

NEAREST = 16
"""Tokens that an answer names."""


@torch.no_grad()
def near_tokens(question: Neighbours, state: State, store: SnapshotStore) -> NeighboursFound:
    """The tokens nearest to one after an update, with their cosines before.

    Raises ValueError, one line, if the weights are not at hand, or tokens have no embeddings that are learned.
    """
    lm, token = state.lm, question.token_id
    if not 0 <= token < lm.vocabulary:
        raise ValueError(f"a token id is outside the model's vocabulary of {lm.vocabulary}")
    if isinstance(lm.policy, WorldPolicy):
        raise ValueError("the policy of a world learns no embedding: what it knows of a square is fixed")
    since = last_before(question.update, state, store)
    with weights_after(since, state, store) as old, weights_after(question.update, state, store) as new:
        weight = _embedding(lm.policy, new)
        before, after = (_directions(weight, weights, state) for weights in (old, new))
    cosines = after @ after[token]
    order = cosines.argsort(descending=True)
    ids = order[order != token][:NEAREST]
    known = before @ before[token]
    digits = _digits(state)
    return NeighboursFound(
        token, question.update, since, "",
        ids=ids.tolist(), before=known[ids].tolist(), after=cosines[ids].tolist(),
        turned=float(before[token] @ after[token]), trained=weight is not None,
        digits=(after[digits] @ after[token]).tolist(), pieces={i: lm.piece(i) for i in [token, *ids.tolist()]},
    )  # fmt: skip


def _embedding(policy: Any, weights: WeightsAfter) -> Weight | None:
    """The input embedding; None if it is not trained."""
    own = policy.get_input_embeddings().weight
    name = next(f"{POLICY}{name}" for name, parameter in policy.named_parameters() if parameter is own)
    return next((each for each in trained_weights(policy, POLICY, weights.names)[0] if each.name == name), None)


def _directions(weight: Weight | None, weights: WeightsAfter, state: State) -> Tensor:
    """The embeddings [V, d], each as long as 1."""
    device = state.lm.device
    own = state.lm.policy.get_input_embeddings().weight.detach().float()
    return torch.nn.functional.normalize(own if weight is None else weight.before(weights, device), dim=1)


def _digits(state: State) -> list[int]:
    """The tokens 0 to 9; none unless each digit is one."""
    vocabulary = state.lm.tokenizer.get_vocab()
    ids = [vocabulary.get(str(digit)) for digit in range(10)]
    return [each for each in ids if each is not None] if None not in ids else []

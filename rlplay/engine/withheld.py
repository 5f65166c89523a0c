"""Tokens whose credit is taken away: the gradient of the loss is formed without them, all else stays.

A policy gradient gets an advantage of 0 for them once the advantages are there, so that they still count in every
statistic and denominator; of given answers, the derivative of the loss by their log-probabilities is 0; Q-learning and
SARSA take no step for them. A value loss, an entropy bonus and a KL in the loss are no credit, and stay; so does what a
token adds to the ratio of its whole answer, where the ratio is of that level.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rlplay.engine.batch import Batch
from rlplay.engine.state import Halt, State
from rlplay.engine.transfer import to_device


def withhold(batch: Batch, state: State) -> None:
    """Mark the tokens of a batch whose credit the run takes away; its credit phase begins with it.

    Raises Halt, one line, if the batch has no such tokens.
    """
    tokens = state.withheld.get(batch.update, ())
    batch.withheld = places_of(batch, tokens) if tokens else None


def places_of(batch: Batch, tokens: Sequence[int]) -> Tensor:
    """Where `tokens`, places in the flat token arrays of the batch's update, are: bool [N, L] on the CPU.

    Raises Halt, one line, if one of them is not there, or is not the policy's.
    """
    sampled, inside = (mask.numpy() for mask in batch.known_masks)
    every, chosen = np.argwhere(inside), np.zeros_like(inside)
    if missing := [token for token in tokens if not 0 <= token < len(every)]:
        raise Halt(f"update {batch.update} has {len(every)} tokens and no token {missing[0]} to take credit from")
    rows, columns = every[list(tokens)].T
    chosen[rows, columns] = True
    if (foreign := np.flatnonzero(~sampled[rows, columns])).size:
        raise Halt(f"token {tokens[foreign[0]]} of update {batch.update} is not the policy's and has no credit to take")
    return torch.from_numpy(chosen)


def check_tokens(tokens: Sequence[int]) -> None:
    """Raises ValueError, one line, if these are no places of tokens, whatever the batch."""
    if not tokens or list(tokens) != sorted({*tokens}) or tokens[0] < 0:
        raise ValueError("tokens are places of an update's tokens, from 0, ascending, at least one")


def without_withheld(values: Tensor, batch: Batch, rows: Tensor | None = None) -> Tensor:
    """Advantages or derivatives [R, L] of the completions `rows` (all by default), 0 where credit is taken away."""
    if batch.withheld is None:
        return values
    mask = batch.withheld if rows is None else batch.withheld[rows]
    (there,) = to_device([mask], values.device)
    return values.masked_fill(there, 0.0)

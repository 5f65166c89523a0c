"""Supervised fine-tuning: make the tokens of given answers more likely.

    L(θ) = − Σ_t m_t log π_θ(y_t | y_<t) / Σ_t m_t

with m_t = 1 for a token to be learnt (the assistant's, its end-of-turn token included) and 0 for one that is only
read. It is the policy gradient with every advantage 1, on text that somebody else wrote. This loop pretrains the
pocket model, where it also learns from nothing but answers: prompts are read, never imitated.

Documents are packed end to end into rows of one fixed length, so that no computation goes into padding. Position
ids restart at every document: transformers reads that as a boundary no attention may cross.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec
import torch
from torch import Tensor

_OPEN_ROWS = 8


class Document(msgspec.Struct, frozen=True):
    """One text to learn from: token ids, and for each whether it is to be learnt (1) or only read (0)."""

    token_ids: list[int]
    mask: list[int]


class SupervisedPlan(msgspec.Struct, frozen=True):
    """How to train: `steps` updates on batches of `rows` x `row_length` tokens.

    The learning rate rises linearly over the first `warm_up` share of the steps, then falls to zero along a
    half cosine (Loshchilov and Hutter 2017, arXiv 1608.03983).
    """

    steps: int
    rows: int = 24
    row_length: int = 128
    learning_rate: float = 1.5e-3
    warm_up: float = 0.05
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0


class SupervisedStep(msgspec.Struct, frozen=True):
    """One optimizer step. `loss` is in nats per learnt token, `tokens` counts those; `grad_norm` is unclipped."""

    step: int
    loss: float
    learning_rate: float
    grad_norm: float
    tokens: int


class PackedRow(msgspec.Struct, frozen=True):
    """Documents end to end; all three lists have `row_length` entries, padding repeating position 0."""

    token_ids: list[int]
    mask: list[int]
    positions: list[int]


def supervised(model: Any, documents: Iterable[Document], plan: SupervisedPlan) -> Iterator[SupervisedStep]:
    """Trains `model` (any Hugging Face causal LM, in place) and yields one record per optimizer step.

    Ends early when `documents` does. Raises ValueError for a document longer than a row.
    """
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=plan.learning_rate, weight_decay=plan.weight_decay, betas=(0.9, 0.95), fused=True
    )
    rows = pack(documents, plan.row_length)
    model.train()
    for step in range(plan.steps):
        batch = list(islice(rows, plan.rows))
        if not batch:
            return
        rate = learning_rate(step, plan)
        for group in optimizer.param_groups:
            group["lr"] = rate
        token_ids, mask, positions = _tensors(batch, model.device)
        loss = masked_loss(model(input_ids=token_ids, position_ids=positions, use_cache=False).logits, token_ids, mask)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), plan.max_grad_norm)
        optimizer.step()
        yield SupervisedStep(
            step=step,
            loss=loss.item(),
            learning_rate=rate,
            grad_norm=grad_norm.item(),
            tokens=int(mask[:, 1:].sum()),
        )


def masked_loss(logits: Tensor, token_ids: Tensor, mask: Tensor) -> Tensor:
    """Mean negative log-likelihood of the tokens to be learnt, a scalar in nats.

    `logits` is [rows, length, vocabulary]; `token_ids` and `mask` are [rows, length]. The logits at t judge the
    token at t+1, hence the shift; the first token of a row has no prediction and is never learnt.
    """
    targets = token_ids[:, 1:].masked_fill(mask[:, 1:] == 0, -100)
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), targets.flatten(), ignore_index=-100)


def learning_rate(step: int, plan: SupervisedPlan) -> float:
    """The learning rate of `step`, counted from 0."""
    warm_up_steps = max(1, round(plan.warm_up * plan.steps))
    if step < warm_up_steps:
        return plan.learning_rate * (step + 1) / warm_up_steps
    progress = (step - warm_up_steps) / max(1, plan.steps - warm_up_steps)
    return plan.learning_rate * 0.5 * (1 + math.cos(math.pi * progress))


def pack(documents: Iterable[Document], row_length: int) -> Iterator[PackedRow]:
    """Rows of `row_length` tokens, each made of whole documents.

    Every document goes into the first of a few open rows that has room for it; when none has, the fullest row
    leaves. That fills some 97 % of the rows where taking documents strictly in order would fill 86 %.
    """
    open_rows: list[list[Document]] = []
    for document in documents:
        length = len(document.token_ids)
        if length > row_length:
            raise ValueError(f"a document of {length} tokens does not fit a row of {row_length}: raise row_length")
        row = next((row for row in open_rows if _used(row) + length <= row_length), None)
        if row is None:
            if len(open_rows) == _OPEN_ROWS:
                fullest = max(open_rows, key=_used)
                open_rows.remove(fullest)
                yield _packed(fullest, row_length)
            row = []
            open_rows.append(row)
        row.append(document)
    for row in open_rows:
        yield _packed(row, row_length)


def _used(row: list[Document]) -> int:
    return sum(len(document.token_ids) for document in row)


def _packed(row: list[Document], row_length: int) -> PackedRow:
    spare = [0] * (row_length - _used(row))
    return PackedRow(
        token_ids=[token for document in row for token in document.token_ids] + spare,
        mask=[learnt for document in row for learnt in document.mask] + spare,
        positions=[position for document in row for position in range(len(document.token_ids))] + spare,
    )


def _tensors(batch: list[PackedRow], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    token_ids = torch.tensor([row.token_ids for row in batch], device=device)
    mask = torch.tensor([row.mask for row in batch], device=device)
    positions = torch.tensor([row.positions for row in batch], device=device)
    return token_ids, mask, positions

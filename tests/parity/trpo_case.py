"""TRPO's step against one taken in float64 with the whole Fisher matrix written out, on a model of some 800 weights.

The reference differentiates every log-probability of every distribution by every weight, answer by answer; solves the
natural gradient's equation directly; and tries steps in the line search's order. Only the model itself is shared.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from transformers import GPT2Config, GPT2LMHeadModel

from rlplay.algorithms.apply import resolve
from rlplay.engine import natural_gradient, trpo
from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.model import LanguageModel
from rlplay.engine.objective import Inputs, objective
from rlplay.engine.passes import token_logprobs
from rlplay.tasks.task import Example
from rlplay.trace.records import Searched
from tests.parity.case import Case, Pairs

VOCABULARY, TEMPERATURE = 5, 0.8
PROMPTS = [[0, 1], [1, 3, 0]]
LENGTHS = (4, 2, 3, 4)


def compare(limit: float, dtype: torch.dtype, seed: int) -> Pairs:
    """F v, the change of the weights, the exact KL that it has and the gain that it brings."""
    settings = resolve({"algorithm": "trpo", "max_kl": limit, "cg_iterations": 100})
    lm = _model(dtype, seed)
    batch = _batch(lm, seed)
    weights = batch.mask / batch.mask.sum()
    dense = Dense(lm.policy, batch)
    start = parameters_to_vector(lm.policy.parameters()).detach()
    vector = torch.randn(len(start), generator=torch.Generator().manual_seed(seed), dtype=torch.float32).to(dtype)
    product = trpo.Fisher(lm, list(lm.policy.parameters()), batch).product(vector)

    inputs = Inputs(token_logprobs(lm, lm.policy, batch.tokens(), TEMPERATURE), batch.old_logprobs,
                    batch.old_logprobs, batch.advantages)  # fmt: skip
    objective(inputs, weights, settings, 0.0).loss.backward()
    # CG stops where its answer is good enough to step along; for float64's limit it has to go on.
    with mock.patch.object(natural_gradient, "TOLERANCE", 1e-10):
        records, metrics = _exhausted(trpo.search(batch, SimpleNamespace(settings=settings, lm=lm), weights))
    moved = parameters_to_vector(lm.policy.parameters()).detach() - start
    fractions = [record.step for record in records if record.kind == "line"]

    step = dense.step(limit, settings.cg_damping)
    fraction, divergence, gain = dense.search(step, limit)
    return {
        "F v": (product, dense.fisher @ vector.double()),
        "step": (moved, fraction * step),
        "fraction": (torch.tensor(fractions[-1]), torch.tensor(fraction)),
        "kl": (torch.tensor(metrics["kl_old_exact"]), divergence),
        "gain": (torch.tensor(metrics["surrogate_gain"]), gain),
    }


class Dense:
    """The same problem in float64: `fisher` [P, P] and `gradient` [P] of the surrogate at the old policy."""

    def __init__(self, policy: Any, batch: Batch) -> None:
        self._model, self._batch = copy.deepcopy(policy).double(), batch
        self._start = parameters_to_vector(self._model.parameters()).detach()
        self._old = [row.detach() for row in self._distributions()]
        rows = list(self._distributions())
        count = len(rows)
        jacobian = torch.stack([torch.stack([self._slope(entry) for entry in row]) for row in rows])
        scores = torch.stack(self._old).exp().sqrt()[..., None] * jacobian
        self.fisher = scores.flatten(0, 1).T @ scores.flatten(0, 1) / count
        sampled = jacobian[torch.arange(count), self._ids()]
        self.gradient = self._advantages() @ sampled / count

    def step(self, limit: float, damping: float) -> Tensor:
        """The natural gradient, as long as the quadratic form says that the KL reaches the limit: [P]."""
        eye = torch.eye(len(self.gradient), dtype=torch.double)
        x = torch.linalg.solve(self.fisher + damping * eye, self.gradient)
        return x * (2 * limit / (x @ self.fisher @ x)).sqrt()

    def search(self, step: Tensor, limit: float) -> tuple[float, Tensor, Tensor]:
        """The first of 1, .8, .64 … of the step that keeps the limit and gains: it, its KL and its gain."""
        fraction = 1.0
        while True:
            divergence, gain = self.measured(fraction * step)
            if divergence <= limit and gain > 0:
                return fraction, divergence, gain
            fraction *= 0.8

    @torch.no_grad()
    def measured(self, change: Tensor) -> tuple[Tensor, Tensor]:
        """Mean KL(old ‖ new) and mean gain Σ (w − 1)·A of a change of the weights."""
        vector_to_parameters(self._start + change, self._model.parameters())
        new, old = torch.stack(list(self._distributions())), torch.stack(self._old)
        vector_to_parameters(self._start, self._model.parameters())
        ratio = (new - old).exp()[torch.arange(len(new)), self._ids()]
        return (old.exp() * (old - new)).sum(-1).mean(), ((ratio - 1) * self._advantages()).mean()

    def _distributions(self) -> Iterator[Tensor]:
        """log p of every token of the vocabulary before each sampled one, one answer at a time, without padding."""
        batch = self._batch
        for n, group in enumerate(batch.group.tolist()):
            prompt, ids = PROMPTS[group], batch.ids[n, : batch.lengths[n]].tolist()
            logits = self._model(input_ids=torch.tensor([prompt + ids])).logits[0]
            yield from (logits[len(prompt) - 1 : -1] / TEMPERATURE).log_softmax(-1)

    def _slope(self, value: Tensor) -> Tensor:
        slopes = torch.autograd.grad(value, list(self._model.parameters()), retain_graph=True)
        return torch.cat([slope.flatten() for slope in slopes])

    def _ids(self) -> Tensor:
        return self._batch.ids[self._batch.mask]

    def _advantages(self) -> Tensor:
        assert self._batch.advantages is not None
        return self._batch.advantages[self._batch.mask].double()


def _model(dtype: torch.dtype, seed: int) -> LanguageModel:
    torch.manual_seed(seed)
    ids = {"bos_token_id": 0, "eos_token_id": 2}
    config = GPT2Config(
        vocab_size=VOCABULARY, n_embd=6, n_layer=1, n_head=2, n_positions=8, initializer_range=0.3, **ids
    )
    policy = GPT2LMHeadModel(config).float().to(dtype).eval()
    return LanguageModel(policy, policy, SimpleNamespace(pad_token_id=0), torch.device("cpu"), frozenset({2}))


def _batch(lm: LanguageModel, seed: int) -> Batch:
    """Random answers of random advantages, as a policy has sampled them."""
    generator = torch.Generator().manual_seed(seed)
    shape = len(LENGTHS), max(LENGTHS)
    nothing = torch.zeros(*shape, 0)
    batch = Batch(
        update=1, prompts=Prompts.padded(lm, [Example("", {})] * 2, PROMPTS), group=torch.tensor([0, 0, 1, 1]),
        ids=torch.randint(0, VOCABULARY, shape, generator=generator), lengths=torch.tensor(LENGTHS),
        old_logprobs=nothing, entropy=nothing, top_ids=nothing, top_logprobs=nothing,
        truncated=torch.zeros(len(LENGTHS), dtype=torch.bool), environment=torch.zeros(shape, dtype=torch.bool),
        temperature=TEMPERATURE,
        advantages=torch.randn(shape, generator=generator, dtype=torch.float32).to(nothing.dtype),
    )  # fmt: skip
    batch.old_logprobs = token_logprobs(lm, lm.policy, batch.tokens(), TEMPERATURE).detach()
    return batch


def _exhausted(search: Any) -> tuple[list[Searched], dict[str, float]]:
    records = []
    while True:
        try:
            records.append(next(search))
        except StopIteration as done:
            return records, done.value


def cases() -> list[Case]:
    """A short step, which the quadratic form foresees, and one so long that it has to be shortened."""
    return [
        Case("TRPO's step", "dense Fisher matrix, float64", f"TRPO {limit}", partial(compare, limit))
        for limit in (0.01, 0.1)
    ]  # fmt: skip

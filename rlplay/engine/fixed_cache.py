"""Sampling from a cache of fixed size, whose step a GPU replays as one CUDA graph.

A step of a small model takes a GPU less time than it takes Python to launch the step's kernels one by one; a graph
launches them together. It reads and writes the same memory every time, so the cache, the mask and all that a step needs
have their places for good. `agreement.py` lets a model on a GPU sample like this if it then gives the right numbers.
A CPU gains nothing by it; there the tests run the same step without a graph. Its speed on a GPU is not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlplay.engine.batch import Prompts
from rlplay.engine.compat import cache_of, fill, fixed_cache, with_cache
from rlplay.engine.model import LanguageModel
from rlplay.engine.passes import positions_of

BUCKET = 64
"""Caches have a multiple of so many places, so that batches of other lengths find one."""
KEPT = 2
"""Caches that wait for their next batch, such as an update's and that of held-out prompts; the oldest makes room."""
_WARM_UP = 3
"""Steps before a graph is captured, in which libraries choose their kernels."""


class Fixed:
    """A decoder whose rows all stay to the end: those that are over are computed, and not looked at."""

    def __init__(self, lm: LanguageModel, prompts: Prompts, group: Tensor, length: int) -> None:
        """Of at most `length` tokens a row. Raises NotImplementedError if a layer's cache is not one of keys and values
        for every place before."""
        out = lm.policy(
            input_ids=prompts.ids,
            attention_mask=prompts.mask,
            position_ids=positions_of(prompts.mask),
            use_cache=True,
            logits_to_keep=1,
        )
        places = -(-(prompts.ids.shape[1] + length) // BUCKET) * BUCKET
        self._step = _step_of(lm, len(group), places)
        self._step.begin(cache_of(out), prompts.mask, group)
        self._rows = torch.arange(len(group), device=group.device)
        self.logits: Tensor = out.logits[group, -1]

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows only, in this order."""
        self._rows = self._rows[rows]

    def step(self, tokens: Tensor) -> None:
        """Append one token [rows] to every row."""
        self.logits = self._step.after(self._rows, tokens)[self._rows]


def _step_of(lm: LanguageModel, rows: int, places: int) -> _Step:
    """The step for a batch of this size; a captured one is of use as long as the weights stay where they are."""
    key = rows, places, tuple(p.data_ptr() for p in lm.policy.parameters())
    step = lm.fixed_steps.pop(key, None) or _Step(lm.policy, rows, places)
    lm.fixed_steps[key] = step
    while len(lm.fixed_steps) > KEPT:
        del lm.fixed_steps[next(iter(lm.fixed_steps))]
    return step


class _Step:
    """One token more for each of N rows, in memory that stays; W is the number of places in the cache."""

    def __init__(self, model: Any, rows: int, places: int) -> None:
        self._model, self._device = model, next(model.parameters()).device
        dtype = model.get_input_embeddings().weight.dtype
        self._ids = torch.zeros(rows, 1, dtype=torch.long, device=self._device)
        self._positions = torch.zeros_like(self._ids)
        self._place = torch.zeros(1, dtype=torch.long, device=self._device)
        self._mask = torch.full((rows, 1, 1, places), torch.finfo(dtype).min, dtype=dtype, device=self._device)
        self._places = places
        self._cache: Any = None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._logits: Tensor | None = None

    def begin(self, prompt: Any, mask: Tensor, group: Tensor) -> None:
        """Take over the prompts' cache, each prompt for the rows that answer it; `mask` [G, P] is of the prompts."""
        if self._cache is None:
            self._cache = fixed_cache(prompt, group, self._places)
            if _captures(self._device):
                self._capture(lambda: self._fill(prompt, mask, group))
        self._fill(prompt, mask, group)

    def after(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """The logits [N, V] after one more token in each of `rows`; they are overwritten by the next step."""
        self._ids[rows, 0] = tokens
        if self._graph is None:
            self._compute()
        else:
            self._graph.replay()
        assert self._logits is not None
        return self._logits

    def _fill(self, prompt: Any, mask: Tensor, group: Tensor) -> None:
        length = mask.shape[1]
        fill(self._cache, prompt, group, length)
        self._mask.fill_(torch.finfo(self._mask.dtype).min)
        self._mask[:, 0, 0, :length].masked_fill_(mask[group].bool(), 0.0)
        self._positions[:] = positions_of(mask)[group, -1:]
        self._place.fill_(length)

    def _compute(self) -> None:
        self._mask.index_fill_(-1, self._place, 0.0)
        self._place.add_(1)
        self._positions.add_(1)
        out = self._model(
            input_ids=self._ids,
            attention_mask=self._mask,
            position_ids=self._positions,
            **with_cache(self._model, self._cache),
            use_cache=True,
        )
        if self._logits is None:
            self._logits = torch.empty_like(out.logits[:, -1])
        self._logits.copy_(out.logits[:, -1])

    def _capture(self, begin: Callable[[], None]) -> None:
        """Record a step as a graph; steps on a stream of their own come first, as PyTorch asks for.

        Each follows a new `begin`: there may be places for one token only.
        """
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(_WARM_UP):
                begin()
                self._compute()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._compute()
        self._graph = graph


def _captures(device: torch.device) -> bool:
    return device.type == "cuda"

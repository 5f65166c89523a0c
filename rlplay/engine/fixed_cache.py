"""Sampling from a cache of fixed size, of which a GPU replays a whole position as one CUDA graph.

A step of a small model takes a GPU less time than it takes Python to launch the step's kernels one by one; a graph
launches them together: those that choose the next token and write it down, and those of the model that reads it. All of
them read and write the same memory every time, so the cache, the mask, the slate and all that a step needs have their
places for good. `agreement.py` lets a model on a GPU sample like this if it then gives the right numbers.
A CPU gains nothing by it; there the tests run the same steps without a graph. Its speed on a GPU is not measured.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rlplay.engine.batch import Prompts
from rlplay.engine.compat import cache_of, fill, fixed_cache, tensors_of, with_cache
from rlplay.engine.model import LanguageModel
from rlplay.engine.out_of_memory import is_out_of_memory
from rlplay.engine.passes import positions_of
from rlplay.engine.slate import Slate

BUCKET = 64
"""Caches have a multiple of so many places, so that batches of other lengths find one."""
KEPT = 4
"""Caches that wait for their next batch, such as an update's, a greedy baseline's and that of held-out prompts; the
oldest makes room."""
SHARE = 8
"""All but the newest also make room as soon as they take more than one part in so many of the device's memory, without
what their graphs need in between."""
_WARM_UP = 3
"""Steps before a graph is captured, in which libraries choose their kernels."""

_failed = False  # a capture, after which the allocator may be left in the middle of it


class NotCapturedError(RuntimeError):
    """A GPU could not capture a step as a graph: one line that says why."""


def can_capture() -> bool:
    """Whether no capture has failed in this process, after which none is tried again."""
    return not _failed


class Fixed:
    """A decoder whose rows all stay to the end: those that are over are computed, and not looked at."""

    at: Tensor | None = None

    def __init__(
        self, lm: LanguageModel, prompts: Prompts, group: Tensor, length: int, slate: Slate | None = None
    ) -> None:
        """Of at most `length` tokens a row. With a `slate`, `position` writes to `self.slate`, which begins as it does.

        Raises NotImplementedError if a layer's cache is not one of keys and values for every place before, and
        NotCapturedError if a GPU cannot make a graph of it.
        """
        out = lm.policy(
            input_ids=prompts.ids,
            attention_mask=prompts.mask,
            position_ids=positions_of(prompts.mask),
            use_cache=True,
            logits_to_keep=1,
        )
        places = -(-(prompts.ids.shape[1] + length) // BUCKET) * BUCKET
        begun = _Begun(cache_of(out), prompts.mask, group, out.logits[group, -1], slate)
        weights = tuple(x.data_ptr() for xs in (lm.policy.parameters(), lm.policy.buffers()) for x in xs)
        # The model itself, too: policy and reference may be one model with its adapters on and off.
        key = lm.policy, len(group), places, None if slate is None else slate.kind, weights
        self._lm, self._key = lm, key
        self._step: _Step = lm.fixed_steps.pop(key, None) or _Step(lm.policy, places, begun)
        self._step.begin(begun)
        self._rows = torch.arange(len(group), device=group.device)
        self.slate = self._step.slate

    @property
    def logits(self) -> Tensor:
        """[rows, V], those of the next token of every row still kept."""
        return self._step.logits[self._rows]

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows only, in this order."""
        self._rows = self._rows[rows]

    def step(self, tokens: Tensor) -> None:
        """Append one token [rows] to every row."""
        self._step.append(self._rows, tokens)

    def close(self) -> None:
        """Let its memory wait for the next batch of this size; until then nobody else gets it.

        Whoever asks for completions while others are being sampled needs memory of their own.
        """
        if self._lm.fixed:
            _make_room(self._lm.fixed_steps, self._step.bytes, self._lm.device)
            self._lm.fixed_steps[self._key] = self._step

    def position(self) -> None:
        """Choose the next token of every row, write it to the slate, and append it."""
        self._step.go()


class _Begun(NamedTuple):
    """What sampling begins with: the prompts' cache and mask [G, P], the prompt of each row [N], its logits [N, V]."""

    cache: Any
    mask: Tensor
    group: Tensor
    logits: Tensor
    slate: Slate | None


def _make_room(steps: dict[Hashable, _Step], needed: int, device: torch.device) -> None:
    """Drop the oldest of the waiting steps until one more of `needed` bytes may join them."""
    limit = torch.cuda.mem_get_info(device)[1] // SHARE if _captures(device) else math.inf
    while steps and (len(steps) >= KEPT or needed + sum(step.bytes for step in steps.values()) > limit):
        del steps[next(iter(steps))]


class _Step:
    """One token more for each of N rows, in memory that stays; W is the number of places in the cache.

    With a slate, the token is chosen and written there, too.
    """

    def __init__(self, model: Any, places: int, begun: _Begun) -> None:
        """For batches of this size; captured if the device can. Raises NotCapturedError if it cannot after all."""
        logits, device = begun.logits, begun.logits.device
        rows, dtype = len(begun.group), model.get_input_embeddings().weight.dtype
        self._model, self._places = model, places
        self._graph: torch.cuda.CUDAGraph | None = None
        try:
            self.logits = torch.empty_like(logits)
            self.slate = begun.slate
            self._ids = torch.zeros(rows, 1, dtype=torch.long, device=device)
            self._positions = torch.zeros_like(self._ids)
            self._place = torch.zeros(1, dtype=torch.long, device=device)
            self._mask = torch.full((rows, 1, 1, places), torch.finfo(dtype).min, dtype=dtype, device=device)
            self._cache: Any = fixed_cache(begun.cache, begun.group, places)
            if _captures(device):
                self._capture(begun)
        except RuntimeError as error:
            if not _captures(device) or isinstance(error, NotImplementedError):
                raise
            raise NotCapturedError(_why(error)) from error

    @property
    def bytes(self) -> int:
        """What it holds in memory, without what a graph needs of its own."""
        kept = [self.logits, self._mask, *tensors_of(self._cache)]
        kept += [] if self.slate is None else self.slate.written().values()
        return sum(tensor.nbytes for tensor in kept)

    def begin(self, begun: _Begun) -> None:
        """Take over the prompts' cache, each prompt for the rows that answer it."""
        length = begun.mask.shape[1]
        fill(self._cache, begun.cache, begun.group, length)
        self._mask.fill_(torch.finfo(self._mask.dtype).min)
        self._mask[:, 0, 0, :length].masked_fill_(begun.mask[begun.group].bool(), 0.0)
        self._positions[:] = positions_of(begun.mask)[begun.group, -1:]
        self._place.fill_(length)
        self.logits.copy_(begun.logits)
        if self.slate is not None and begun.slate is not None:
            self.slate.begin(begun.slate.draws, begun.slate.prompted)

    def append(self, rows: Tensor, tokens: Tensor) -> None:
        """Read one token more in each of `rows`."""
        self._ids[rows, 0] = tokens
        self.go()

    def go(self) -> None:
        """Choose and write a token of every row, if there is a slate, and read it."""
        if self._graph is None:
            self._compute()
        else:
            self._graph.replay()

    def _compute(self) -> None:
        if self.slate is not None:
            self._ids[:, 0] = self.slate.position(self.logits, self.slate.every)
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
        self.logits.copy_(out.logits[:, -1])

    def _capture(self, begun: _Begun) -> None:
        """Record a step as a graph; steps on a stream of their own come first, as PyTorch asks for.

        Each follows a new `begin`: there may be places for one token only.
        """
        global _failed  # noqa: PLW0603 - what a failed capture leaves behind belongs to the process
        if _failed:
            raise RuntimeError("a capture has failed before")
        before = torch.cuda.current_stream()
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(before)
        with torch.cuda.stream(aside):
            for _ in range(_WARM_UP):
                self.begin(begun)
                self._compute()
        before.wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads may use the GPU meanwhile
                self._compute()
        except BaseException:
            _failed = True
            torch.cuda.set_stream(before)  # which the block leaves as it is if the end of the capture raises
            raise
        self._graph = graph


def _captures(device: torch.device) -> bool:
    return device.type == "cuda"


def _why(error: RuntimeError) -> str:
    said = "memory is short" if is_out_of_memory(error) else str(error).strip().partition("\n")[0]
    return f"the GPU could not capture the steps of sampling as a graph ({said})"

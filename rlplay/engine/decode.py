"""What the model says next while completions are sampled: from a cache that grows, or from the whole text anew.

The steps are the library's own, so that every model's are right.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from rlplay.engine.batch import Prompts
from rlplay.engine.compat import cache_of, with_cache
from rlplay.engine.fixed_cache import Fixed, NotCapturedError, can_capture
from rlplay.engine.model import LanguageModel
from rlplay.engine.out_of_memory import is_out_of_memory, release
from rlplay.engine.passes import positions_of
from rlplay.engine.slate import Slate

_BITS = 32
"""Of a token's id; above them a number may say which beginning the token follows."""


class Decoder(Protocol):
    """Completions that grow together, one token each at a time."""

    @property
    def logits(self) -> Tensor:
        """[D, V], those of the next token."""

    @property
    def at(self) -> Tensor | None:
        """int64 [rows], which of the D every row still kept has; None: they are the rows'."""

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows only, in this order."""

    def step(self, tokens: Tensor) -> None:
        """Append one token [rows] to every row."""


def decoder(lm: LanguageModel, prompts: Prompts, group: Tensor, length: int, slate: Slate | None) -> Decoder:
    """A decoder of at most `length` tokens after the prompts `group` [rows], in the way that suits the model.

    With a `slate`, a decoder of fixed size writes whole positions to it or to one of its own. Where a GPU cannot
    capture them as a graph, the model is sampled without one from then on, and its remarks say so.
    """
    if not lm.cached:
        return Recomputing(lm, prompts, group, length)
    if lm.fixed:
        try:
            return _fixed(lm, prompts, group, length, slate)
        except NotCapturedError as error:
            lm.remarks.append(f"{error}: sampling launches its kernels one by one from now on, which is slower")
            release(error)
        lm.save_memory()
        if slate is not None:
            slate.begin(slate.draws, slate.prompted)  # what came before the capture wrote to it
    return Cached(lm, prompts, group, length)


def _fixed(lm: LanguageModel, prompts: Prompts, group: Tensor, length: int, slate: Slate | None) -> Fixed:
    """A decoder of fixed size, for which the caches that wait for their next batch make room. Raises as it does."""
    try:
        return Fixed(lm, prompts, group, length, slate)
    except NotCapturedError as error:
        if not (lm.fixed_steps and is_out_of_memory(error) and can_capture()):
            raise
        lm.fixed_steps.clear()
        release(error)
    return Fixed(lm, prompts, group, length, slate)


class Cached:
    """Keeps the model's cache: a step costs one token a row.

    On a CPU, rows that begin alike are one row of the cache until they part: the bundled model's own answers sample a
    fifth faster for it. On a GPU, which does not feel a few rows more, Python would have to wait for their tokens.
    """

    def __init__(self, lm: LanguageModel, prompts: Prompts, group: Tensor, _length: int) -> None:
        self._model = lm.policy
        out = self._model(
            input_ids=prompts.ids,
            attention_mask=prompts.mask,
            position_ids=positions_of(prompts.mask),
            use_cache=True,
            logits_to_keep=1,
        )
        self._cache: Any = cache_of(out)
        self._mask = prompts.mask
        self.logits: Tensor = out.logits[:, -1]
        self.at: Tensor | None = group
        if group.device.type != "cpu":
            self._take(group)
            self.logits, self.at = self.logits[group], None

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows only, in this order."""
        if self.at is None:
            self._take(rows)
        else:
            self.at = self.at[rows]

    def step(self, tokens: Tensor) -> None:
        """Append one token [rows] to every row."""
        if self.at is not None:
            pairs, self.at = torch.unique((self.at << _BITS) + tokens, return_inverse=True)
            tokens, rows = pairs & ((1 << _BITS) - 1), pairs >> _BITS
            if len(rows) != len(self._mask) or not torch.equal(rows, torch.arange(len(rows))):
                self._take(rows)
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(tokens), 1)], dim=1)
        out = self._model(
            input_ids=tokens[:, None],
            attention_mask=self._mask,
            position_ids=positions_of(self._mask)[:, -1:],
            **with_cache(self._model, self._cache),
            use_cache=True,
        )
        self.logits = out.logits[:, -1]

    def _take(self, rows: Tensor) -> None:
        self._cache.reorder_cache(rows)
        self._mask = self._mask[rows]


class Recomputing:
    """Reads the whole text again for every token, prompts of one length at a time: for models without such a cache."""

    at: Tensor | None = None

    def __init__(self, lm: LanguageModel, prompts: Prompts, group: Tensor, _length: int) -> None:
        self._model = lm.policy
        self._ids, self._mask = prompts.ids[group], prompts.mask[group]
        self.logits: Tensor = self._read()

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows only, in this order."""
        self._ids, self._mask = self._ids[rows], self._mask[rows]

    def step(self, tokens: Tensor) -> None:
        """Append one token [rows] to every row."""
        self._ids = torch.cat([self._ids, tokens[:, None]], dim=1)
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(tokens), 1)], dim=1)
        self.logits = self._read()

    def _read(self) -> Tensor:
        lengths = self._mask.sum(-1)
        rows, found = [], []
        for length in torch.unique(lengths).tolist():
            mine = (lengths == length).nonzero().squeeze(-1)
            mask = self._mask[mine, -length:]
            out = self._model(
                input_ids=self._ids[mine, -length:],
                attention_mask=mask,
                position_ids=positions_of(mask),
                use_cache=False,
                logits_to_keep=1,
            )
            rows.append(mine)
            found.append(out.logits[:, -1])
        return torch.cat(found)[torch.argsort(torch.cat(rows))]

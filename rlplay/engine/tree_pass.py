"""A forward pass that computes every distinct beginning of some sequences once.

All nodes of the prefix tree are one row of tokens; each attends to its ancestors. The model's own code runs, but for
the products of queries and keys: these are computed block by block of nodes (`prefix_tree.py`), in place of what
transformers registers as "sdpa". A model that computes attention in another way gives wrong numbers or an error, which
`agreement.py` notices.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AttentionInterface

from rlplay.engine.batch import TokenBatch
from rlplay.engine.checkpointing import checkpointed
from rlplay.engine.gather import rows_at
from rlplay.engine.prefix_tree import Blocks, Ints, PrefixTree, blocks_of, prefix_tree, shape_of
from rlplay.engine.transfer import to_device

ATTENTION = "sdpa"

KEPT = 2
"""Trees of a batch that are kept: reference, policy and the look after an update read the same one."""


@dataclass
class TreePass:
    """What the nodes of a tree need in a pass, on the device.

    `ids`, `positions` int64 [1, M]; `keys` int64 [B * K] and `mask` [B, 1, Q, K] of their attention; `read` int64 [n],
    the nodes that some token stands behind; `places` int64 [R, L], which of these is before each token.
    """

    ids: Tensor
    positions: Tensor
    keys: Tensor
    mask: Tensor
    read: Tensor
    places: Tensor
    masks: dict[tuple[int | None, int, torch.dtype], Tensor] = field(default_factory=dict)

    def seen(self, window: int | None, groups: int, dtype: torch.dtype) -> Tensor:
        """What is added to products of queries and keys, [B, 1, groups * Q, K]: 0 where a node sees a key.

        Each block's queries come `groups` times, and see the last `window` tokens, themselves included; None: all.
        """
        blocks, _, queries, keys = self.mask.shape
        wanted = None if window is None or window >= keys else window, groups, dtype
        if wanted not in self.masks:
            mask = self.mask.to(dtype)
            if wanted[0] is not None:
                own = self.positions.view(blocks, 1, queries, 1)
                far = own - self.positions[0, self.keys].view(blocks, 1, 1, keys) >= wanted[0]
                mask = mask.masked_fill(far, torch.finfo(dtype).min)
            self.masks[wanted] = mask.repeat(1, 1, groups, 1)
        return self.masks[wanted]


def of(tokens: TokenBatch, like: Tensor) -> TreePass | None:
    """The pass over prompts and completions `tokens`, without the last tokens, which nothing follows.

    The mask is like the tensor `like`. The last ones of a batch are kept, for other models to read. None if too little
    begins alike for the length of the texts.
    """
    known, kept = tokens.known, tokens.prompts.trees
    group, ids, lengths = known.group.numpy(), known.ids.numpy(), known.lengths.numpy()
    key = group.tobytes(), ids.tobytes(), lengths.tobytes(), like.dtype, like.device
    kept[key] = kept.pop(key) if key in kept else _laid_out(tokens, group, ids, lengths, like)
    while len(kept) > KEPT:
        del kept[next(iter(kept))]
    laid_out: TreePass | None = kept[key]
    return laid_out


def _laid_out(tokens: TokenBatch, group: Ints, ids: Ints, lengths: Ints, like: Tensor) -> TreePass | None:
    prompts, begun = (each.numpy() for each in tokens.prompts.known)
    begins = begun.sum(-1)[group]
    width, ends = int(lengths.max()), begins + lengths
    # The prompts are padded on the left: what stands there is skipped.
    from_left = (prompts.shape[1] - begins)[:, None] + np.arange(int(ends.max()) - 1)
    joined = np.concatenate([prompts[group], ids[:, :width]], axis=1)
    sequences = np.take_along_axis(joined, np.minimum(from_left, joined.shape[1] - 1), axis=1)
    tree = prefix_tree(sequences, ends - 1)
    after = begins[:, None] + np.arange(width)
    before = np.take_along_axis(tree.paths, np.minimum(after - 1, tree.paths.shape[1] - 1), axis=1)
    before = np.where(after < ends[:, None], before, before[:, :1])
    shape = shape_of(tree)
    return None if shape is None else _placed(tree, blocks_of(tree, shape), before, like)


def _placed(tree: PrefixTree, blocks: Blocks, before: Ints, like: Tensor) -> TreePass:
    """The tree on the device, in one copy; `before` [R, L] is the node before each token."""
    read = np.zeros(len(tree.ids), dtype=bool)
    read[before] = True
    places = (np.cumsum(read) - 1)[before]
    number, size, _ = blocks.visible.shape
    filling = (0, number * size - len(tree.ids))
    parts = [np.pad(tree.ids, filling), np.pad(tree.depths, filling), blocks.keys, np.nonzero(read)[0], places]
    numbers = [torch.from_numpy(part) for part in parts]
    ids, positions, keys, kept, spread, visible = to_device([*numbers, torch.from_numpy(blocks.visible)], like.device)
    mask = torch.zeros(visible.shape, dtype=like.dtype, device=like.device)
    mask.masked_fill_(~visible, torch.finfo(like.dtype).min)
    return TreePass(ids[None], positions[None], keys.flatten(), mask[:, None], kept, spread)


def run(model: Any, tree: TreePass, hidden: bool, again: bool) -> tuple[Tensor, Tensor | None]:
    """Logits [n, V] after the nodes `tree.read`, and the last hidden states [n, H] if `hidden`.

    With `again`, layers keep their inputs alone and are run again for the gradient.
    """
    attending = partial(_attending, tree)
    with checkpointed(model, attending) if again else nullcontext(), attending():
        out = model(
            input_ids=tree.ids,
            attention_mask=tree.mask,
            position_ids=tree.positions,
            use_cache=False,
            logits_to_keep=tree.read,
            output_hidden_states=hidden,
        )
    return out.logits[0], out.hidden_states[-1][0, tree.read] if hidden else None


@contextmanager
def _attending(tree: TreePass) -> Iterator[None]:
    """Within it, whatever asks transformers for its "sdpa" attention attends in `tree`."""
    plain = AttentionInterface()[ATTENTION]
    AttentionInterface.register(ATTENTION, partial(_attention, tree))
    try:
        yield
    finally:
        AttentionInterface.register(ATTENTION, plain)


def _attention(
    tree: TreePass, _module: Any, query: Tensor, key: Tensor, value: Tensor, _mask: Tensor | None,
    *, scaling: float | None = None, sliding_window: int | None = None, **given: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    """In place of transformers' `sdpa_attention_forward`: [1, heads, M, D] -> [1, M, heads, D].

    Queries whose heads share one head of keys and values are asked together, so that none of these is repeated.
    """
    blocks, _, size, _ = tree.mask.shape
    (one, heads, nodes, width), shared = query.shape, key.shape[1]
    unknown = [name for name in ("softcap", "position_bias") if given.get(name) is not None]
    if one != 1 or nodes != blocks * size or unknown:
        raise NotImplementedError(f"attention in a tree with {unknown or tuple(query.shape)}")
    queries = query.view(shared, -1, blocks, size, width).permute(2, 0, 1, 3, 4).reshape(blocks, shared, -1, width)
    found = torch.nn.functional.scaled_dot_product_attention(
        queries,
        _fetched(key, tree.keys, blocks),
        _fetched(value, tree.keys, blocks),
        attn_mask=tree.seen(sliding_window, heads // shared, query.dtype),
        scale=scaling,
    )
    apart = found.view(blocks, shared, heads // shared, size, -1).permute(0, 3, 1, 2, 4)
    return apart.reshape(1, nodes, heads, -1), None


def _fetched(states: Tensor, keys: Tensor, blocks: int) -> Tensor:
    """Those of `states` [1, heads, M, D] at the nodes `keys` [B * K]: [B, heads, K, D]."""
    return rows_at(states[0].transpose(0, 1), keys.view(blocks, -1)).transpose(1, 2)

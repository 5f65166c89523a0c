"""The tree of all beginnings of some sequences: what a pass has to compute if it computes each of them once.

A token's log-probability depends on what stands before it alone, and answers to one prompt often begin alike, as do
prompts: with their chat template. The nodes of the tree are numbered as a walk down its branches meets them, so that a
node's ancestors come before it. All of it is numpy on the host.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PrefixTree:
    """M nodes, each a beginning of one of the R sequences: `ids` and `depths` (from 0) [M] of their last tokens.

    `paths` [R, D] is the node at each depth of a sequence, `lengths` [R] how many it has (beyond them, paths mean
    nothing); node i is on the path of the sequence `owners[i]`.
    """

    ids: Ints
    depths: Ints
    owners: Ints
    paths: Ints
    lengths: Ints


def prefix_tree(sequences: Ints, lengths: Ints) -> PrefixTree:
    """The tree of `sequences` [R, D] of ids from 0; `lengths` [R], at least 1, say how many of each are read."""
    inside = np.arange(sequences.shape[1]) < lengths[:, None]
    padded = np.where(inside, sequences, -1)
    rows = [row.tobytes() for row in padded]
    order = np.array(sorted(range(len(rows)), key=rows.__getitem__))
    arranged, inside = padded[order], inside[order]
    # Neighbours in this order have more in common than any others: what a sequence does not share with the one before
    # it, no earlier one has.
    fresh = inside.copy()
    fresh[1:] &= np.cumsum(arranged[1:] != arranged[:-1], axis=1) > 0
    owners, depths = np.nonzero(fresh)
    paths = np.full(fresh.shape, -1)
    paths[owners, depths] = np.arange(len(owners))
    paths = np.maximum.accumulate(paths, axis=0)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return PrefixTree(arranged[owners, depths], depths, order[owners], paths[back], lengths)


@dataclass(frozen=True)
class Blocks:
    """Nodes in blocks of Q neighbours, with the keys that a block's attention reads: its nodes and their ancestors.

    `keys` [B, K] are nodes, `visible` bool [B, Q, K] says which of them a node sees: itself and its ancestors. The last
    block is filled up with nodes that see themselves alone.
    """

    keys: Ints
    visible: NDArray[np.bool_]


_TOKEN, _KEY = 1000, 12
"""What one more token in a pass costs, and one more key that is fetched for a block: in products of a query and a key.

The first is 6 times the width of a layer, here that of the bundled model. The second is measured on a CPU.
"""
_SIZES = (8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 80, 96, 128, 192, 256)


_LONG, _FETCHED, _COMPARED = 1500, 1.75, 2**25
"""Blocks of so many keys may fetch so many keys for each token of the sequences; and so many pairs of a node and a key
may there be in all.

Long prompts that begin differently would need more: with 4 of 1500 tokens and 4 answers of 32 to each, blocks fetch
1.9, and a pass took 1.6 times as long as one in which each answer has its prompt's cache.
"""


def shape_of(tree: PrefixTree) -> tuple[int, int, int] | None:
    """Number of blocks, nodes and keys of each, of the size that costs least by count: large ones compare more, small
    ones fetch more keys. None if the pass is better made in another way."""
    number, size, keys = min((_tried(tree, size) for size in _SIZES), key=_cost)
    worth = keys <= _LONG or number * keys <= _FETCHED * int(tree.lengths.sum())
    return (number, size, keys) if worth and number * size * keys <= _COMPARED else None


def blocks_of(tree: PrefixTree, shape: tuple[int, int, int]) -> Blocks:
    """The nodes in blocks of a `shape` that `shape_of` gives."""
    number, size, keys = shape
    nodes = np.arange(number * size).reshape(number, size)
    real = nodes < len(tree.ids)
    depths = np.where(real, tree.depths[np.minimum(nodes, len(tree.ids) - 1)], 0)
    first, above = nodes[:, 0], np.arange(keys - size)
    ancestors = tree.paths[tree.owners[first][:, None], np.minimum(above, tree.paths.shape[1] - 1)]
    # In the order of nodes, one at depth d ends what was deeper: of the nodes before a node, those are its ancestors
    # that no node since, itself included, is as high as.
    over = above < np.minimum.accumulate(depths, axis=1)[:, :, None]
    since = np.where(np.tri(size, dtype=bool), tree.paths.shape[1], depths[:, None])
    inside = (np.minimum.accumulate(since, axis=2) > depths[:, :, None]).swapaxes(1, 2) & np.tri(size, dtype=bool)
    visible = np.concatenate([over, inside], axis=2)
    visible[~real] = np.arange(keys) == keys - size + np.nonzero(~real)[1][:, None]
    known = above < depths[:, :1]
    return Blocks(np.concatenate([np.where(known, ancestors, 0), nodes], axis=1), visible)


def _tried(tree: PrefixTree, size: int) -> tuple[int, int, int]:
    """Number of blocks, their nodes, and keys, where they have about `size` nodes; keys are a multiple of 8."""
    number = -(-len(tree.ids) // size)
    size = -(-len(tree.ids) // number)
    number = -(-len(tree.ids) // size)
    above = int(tree.depths[np.arange(number) * size].max())
    return number, size, -(-(above + size) // 8) * 8


def _cost(tried: tuple[int, int, int]) -> int:
    number, size, keys = tried
    return number * (size * _TOKEN + size * keys + keys * _KEY)
